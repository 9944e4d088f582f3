# SPDX-License-Identifier: Apache-2.0

"""Check that the dashboard can read the values of a form.

The dashboard uses PyYAML's own parser. This project parses YAML with libyaml, which accepts more.
"""

from typing import Any

import yaml

from glare_murano.package import safe_yaml
from glare_murano.package.errors import InvalidPackage, Problem
from glare_murano.package.rules import Rule
from glare_murano.package.ui_form.form_report import described

# Larger files are not parsed again, since PyYAML's own parser is slow. The largest form of
# Murano's own applications has 9 KiB.
_MAX_PARSED = 64 * 1024
# Longer numbers are not converted. They may be in base 60, and then the conversion takes long.
_MAX_LENGTH = 1000


def check_values(data: bytes, file: str, document: yaml.Node | None) -> None:
    """Check that PyYAML's own parser can parse a form, and that PyYAML can construct its values.

    libyaml accepts more than PyYAML's own parser, such as tabs after a value. A form of more than
    64 KiB is not parsed again, since PyYAML's own parser is slow.

    :param data: the content of the file.
    :param file: the name of the file, for messages.
    :param document: the root node of the form, from libyaml; None if the form is empty.
    :raises InvalidPackage: if PyYAML cannot read the form. The error has only the first mistake.
    """
    try:
        if len(data) <= _MAX_PARSED:
            for _ in yaml.parse(data, Loader=yaml.SafeLoader):
                pass
        if document is not None:
            _Constructor().construct_document(document)
    except yaml.MarkedYAMLError as error:
        line = 0 if error.problem_mark is None else error.problem_mark.line + 1
        message = f"not valid YAML: {error.problem}"
        raise InvalidPackage([Problem(Rule.YAML_SYNTAX, file, message, line)]) from error


class _Constructor(yaml.constructor.SafeConstructor):
    """PyYAML's constructor of values, with errors that name the line of the wrong value."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            return super().construct_object(node, deep)
        if node.tag in (safe_yaml.STR, safe_yaml.YAQL) or len(node.value) > _MAX_LENGTH:
            return node.value
        try:
            return super().construct_object(node, deep)
        # The errors depend on the type, such as KeyError for "!!bool x".
        except Exception as error:
            kind = node.tag.rpartition(":")[2]
            message = f"{described(node)} is not of the type {kind}; quote it"
            raise yaml.constructor.ConstructorError(None, None, message, node.start_mark) from error
