# SPDX-License-Identifier: Apache-2.0

"""The directive ``refusal-rules``, which lists the rules of ``glare_murano.package.rules``.

Its arguments are the first words of codes: ``.. refusal-rules:: archive path`` makes a table of
all codes that begin with ``archive-`` or ``path-``.
"""

from typing import Any

from docutils import nodes, statemachine
from docutils.parsers.rst import Directive
from sphinx.pycode import ModuleAnalyzer

from glare_murano.package.rules import Rule


class RefusalRules(Directive):
    """Make a table of codes and their texts."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the table.

        :raises docutils.nodes.SystemMessage: if an argument begins no code.
        """
        lines = [".. list-table::", "   :header-rows: 1", "   :widths: 25 75", ""]
        lines += ["   * - Rule", "     - What is refused, and what to do"]
        texts = ModuleAnalyzer.for_module(Rule.__module__).find_attr_docs()
        for prefix in self.arguments[0].split():
            rules = [rule for rule in Rule if rule.startswith(f"{prefix}-")]
            if not rules:
                raise self.error(f"no rule begins with {prefix}-")
            for rule in rules:
                text = " ".join(texts[Rule.__name__, rule.name]).strip()
                lines += [f"   * - ``{rule}``", f"     - {text}"]
        content = statemachine.StringList(lines, source=Rule.__module__)
        parent = nodes.Element()
        self.state.nested_parse(content, self.content_offset, parent)
        return parent.children


def setup(app: Any) -> dict[str, bool]:
    """Register the directive with Sphinx."""
    app.add_directive("refusal-rules", RefusalRules)
    return {"parallel_read_safe": True}
