# SPDX-License-Identifier: Apache-2.0

"""Directives that list rules with the strings below their codes.

``refusal-rules`` lists those of ``glare_murano.package.rules``, ``check-rules`` those of
``loader.authoring.check_rules``, and ``compatibility-rules`` those
of ``loader.compatibility.changes``, with the part of the version that they raise. Their arguments
are the first words of codes: ``.. refusal-rules:: archive path`` makes a table of all codes that
begin with ``archive-`` or ``path-``.
"""

import enum
from collections.abc import Sequence
from typing import Any, ClassVar

from docutils import nodes, statemachine
from docutils.parsers.rst import Directive
from sphinx.pycode import ModuleAnalyzer

from glare_murano.package import rules
from loader.authoring import check_rules
from loader.compatibility import changes


class RuleTable(Directive):
    """Make a table of codes and their texts."""

    required_arguments = 1
    final_argument_whitespace = True

    rules: ClassVar[type[enum.StrEnum]]
    header: ClassVar[Sequence[str]]
    widths: ClassVar[str]

    def run(self) -> list[nodes.Node]:
        """Return the table.

        :raises docutils.nodes.SystemMessage: if an argument begins no code.
        """
        lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {self.widths}", ""]
        lines += _row(self.header)
        texts = ModuleAnalyzer.for_module(self.rules.__module__).find_attr_docs()
        for prefix in self.arguments[0].split():
            found = [rule for rule in self.rules if rule.startswith(f"{prefix}-")]
            if not found:
                raise self.error(f"no rule begins with {prefix}-")
            for rule in found:
                text = " ".join(texts[self.rules.__name__, rule.name]).strip()
                lines += _row([f"``{rule}``", *self.columns(rule), text])
        content = statemachine.StringList(lines, source=self.rules.__module__)
        parent = nodes.Element()
        self.state.nested_parse(content, self.content_offset, parent)
        return parent.children

    def columns(self, rule: Any) -> Sequence[str]:
        """Return the columns between the code and the text."""
        return ()


class RefusalRules(RuleTable):
    """Make a table of the rules by which packages are refused."""

    rules = rules.Rule
    header = ("Rule", "What is refused, and what to do")
    widths = "25 75"


class CheckRules(RuleTable):
    """Make a table of the rules of a check before an upload."""

    rules = check_rules.CheckRule
    header = ("Rule", "What was found, and what to do")
    widths = "25 75"


class CompatibilityRules(RuleTable):
    """Make a table of the rules by which two versions are compared."""

    rules = changes.Rule
    header = ("Rule", "Part", "What was changed, and why it counts")
    widths = "25 10 65"

    def columns(self, rule: changes.Rule) -> Sequence[str]:
        """Return the part of the version."""
        return (str(rule.part),)


def _row(cells: Sequence[str]) -> list[str]:
    first, *others = cells
    return [f"   * - {first}", *(f"     - {each}" for each in others)]


def setup(app: Any) -> dict[str, bool]:
    """Register the directives with Sphinx."""
    app.add_directive("refusal-rules", RefusalRules)
    app.add_directive("check-rules", CheckRules)
    app.add_directive("compatibility-rules", CompatibilityRules)
    return {"parallel_read_safe": True}
