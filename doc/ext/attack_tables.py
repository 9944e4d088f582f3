# SPDX-License-Identifier: Apache-2.0

"""Directives that list the attacks of the tests by subject.

``attacks`` without arguments makes a section for each YAML file in ``tests/integration/attacks``,
whose ``__init__`` describes the files. ``break-outs`` makes a table of each group of programs in
``tests/integration/break_outs.yaml``.
"""

import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from docutils import nodes, statemachine
from docutils.parsers.rst import Directive

TESTS = pathlib.Path(__file__).parents[2] / "tests" / "integration"
FOLDER = TESTS / "attacks"
PROGRAMS = TESTS / "break_outs.yaml"
_TABLE = """\
.. list-table::
   :header-rows: 1
   :widths: 40 20 40

   * - Attack
     - Stopped
     - Message
"""


_PROGRAMS_TABLE = """\
.. list-table::
   :header-rows: 1
   :widths: 40 30 30

   * - Program
     - Stopped by
     - Without Landlock by
"""


class Attacks(Directive):
    """Make the tables of all attacks."""

    def run(self) -> list[nodes.Node]:
        """Return a section for each subject."""
        found: list[nodes.Node] = []
        for path in sorted(FOLDER.glob("*.yaml")):
            subject = yaml.safe_load(path.read_text())
            section = nodes.section(ids=[f"attacks-{path.stem}"])
            section += nodes.title(text=subject["title"])
            content = statemachine.StringList([*_lines(path.stem, subject)], source=str(path))
            self.state.nested_parse(content, self.content_offset, section)
            found.append(section)
        return found


def _lines(stem: str, subject: Mapping[str, Any]) -> Iterator[str]:
    yield f"The module ``{subject['module']}`` stops them, unless a row names another one."
    yield ""
    yield from _TABLE.splitlines()
    for attack in subject["attacks"]:
        name, message = attack["name"], attack.get("message", ())
        messages = [message] if isinstance(message, str) else message
        slug = re.sub(r"\W+", "_", name).strip("_").lower()
        module = f" by ``{attack['module']}``" if "module" in attack else ""
        yield f"   * - **{name}** ({attack['by']}). {attack['tries']}"
        yield f"       ``test_attack[{slug}]``"
        yield f"     - {attack['stopped']}{module}"
        yield f"     - {' or '.join(f'``{each}``' for each in messages)}"


class BreakOuts(Directive):
    """Make the tables of all programs that have broken out of YAQL."""

    def run(self) -> list[nodes.Node]:
        """Return a section for each group."""
        found: list[nodes.Node] = []
        for number, group in enumerate(yaml.safe_load(PROGRAMS.read_text())):
            section = nodes.section(ids=[f"break-outs-{number}"])
            section += nodes.title(text=group["title"])
            lines = [*_PROGRAMS_TABLE.splitlines()]
            for program in group["programs"]:
                without = program.get("without", program["stopped"])
                lines += [f"   * - {program['name']}", f"     - {program['stopped']}"]
                lines.append(f"     - {'**nothing**' if without == 'nothing' else without}")
            content = statemachine.StringList(lines, source=str(PROGRAMS))
            self.state.nested_parse(content, self.content_offset, section)
            found.append(section)
        return found


def setup(app: Any) -> dict[str, bool]:
    """Register the directives with Sphinx."""
    app.add_directive("attacks", Attacks)
    app.add_directive("break-outs", BreakOuts)
    return {"parallel_read_safe": True}
