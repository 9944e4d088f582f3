# SPDX-License-Identifier: Apache-2.0

"""The directive ``module-map``, which lists the modules of a package by their first sentences."""

import ast
import pathlib
from typing import Any

from docutils import nodes, statemachine
from docutils.parsers.rst import Directive

ROOT = pathlib.Path(__file__).parents[2]


class ModuleMap(Directive):
    """Make a list of the modules below a directory of the repository."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the list."""
        paths = sorted((ROOT / self.arguments[0]).rglob("*.py"), key=lambda p: (p.parent, p.name))
        lines = [f"* ``{path.relative_to(ROOT)}``: {_first_sentence(path)}" for path in paths]
        parent = nodes.Element()
        self.state.nested_parse(statemachine.StringList(lines, "modules"), 0, parent)
        return parent.children


def _first_sentence(path: pathlib.Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(docstring.partition("\n\n")[0].split())


def setup(app: Any) -> dict[str, bool]:
    """Register the directive with Sphinx."""
    app.add_directive("module-map", ModuleMap)
    return {"parallel_read_safe": True}
