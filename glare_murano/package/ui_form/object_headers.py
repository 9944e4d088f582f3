# SPDX-License-Identifier: Apache-2.0

"""Check the versions in the headers of the objects that a form makes.

The dashboard copies the values of a header as YAML reads them: ``classVersion: 1.10`` is the number
1.1. Without this check, the mistake is found only when an engine loads the object.
"""

from collections.abc import Iterator

import yaml

from glare_murano.package import safe_yaml
from glare_murano.package.errors import InvalidRange, quoted
from glare_murano.package.rules import Rule
from glare_murano.package.ui_form.form_report import FormReport, is_null, is_string
from glare_murano.package.versions import VersionSpec

_HEADER = "?"
_KEY = "classVersion"


def check_ranges(report: FormReport, section: yaml.Node) -> None:
    """Check the values of ``classVersion`` in all object headers in a section of a form.

    YAQL expressions and null are not checked.

    :param report: the report to which problems are added.
    :param section: the node of the section.
    """
    # A node that has aliases is found several times, but has to be checked once.
    for node in dict.fromkeys(_ranges(section)):
        if report.is_expression(node) or is_null(node):
            continue
        if reason := _wrong(node):
            report.refuse(Rule.FORM_RANGE, node, f"{_KEY}: {reason}")


def _ranges(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _ranges(each)
    for key, value in _pairs(node):
        if key.value == _HEADER:
            yield from (found for name, found in _pairs(value) if name.value == _KEY)
        yield from _ranges(value)


def _pairs(node: yaml.Node) -> list[tuple[yaml.Node, yaml.Node]]:
    try:
        return safe_yaml.merged_pairs(node)
    except ValueError:
        return []


def _wrong(node: yaml.Node) -> str:
    """Return what is wrong with a value of ``classVersion``; empty if the value is valid."""
    if not isinstance(node, yaml.ScalarNode):
        return f"expected a range of versions, found {safe_yaml.kind(node)}"
    text = str(node.value)
    try:
        VersionSpec.of(text)
    except InvalidRange as error:
        return str(error)
    # A whole number, such as 1, means the same with and without quotes.
    if is_string(node) or text.isdecimal():
        return ""
    return f"YAML reads {quoted(text)} without quotes as another value; write it in quotes"
