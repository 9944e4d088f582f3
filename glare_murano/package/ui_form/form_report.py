# SPDX-License-Identifier: Apache-2.0

"""Collect the problems and warnings of a form, and read its nodes as the dashboard does."""

import re
from collections.abc import Callable
from typing import TypeGuard

import yaml

from glare_murano.package import safe_yaml
from glare_murano.package.errors import Problem, quoted
from glare_murano.package.patterns import PatternCheck
from glare_murano.package.rules import Rule

# Strings that are not YAQL. The dashboard tries to read any other unquoted string as YAQL.
_WORDS = re.compile(r"[\s\w.:]*\Z")
# A word or a number in a string such as my-host. Without quotes, such a string is valid YAQL. But
# its evaluation fails, since the words are not numbers.
_OPERAND = r"(?!(?:and|in|mod|not|or)\b)(?:[A-Za-z]\w*|\d+)\b"
_ARITHMETIC = re.compile(rf"(?=\D){_OPERAND}(?:\s*[-/]\s*{_OPERAND})+\Z", re.ASCII)
_CAPITAL = re.compile(r"(?<=[^A-Z])(?=[A-Z])")

# A function that returns whether a string is valid YAQL.
IsYaql = Callable[[str], bool]

# Key -> the nodes of the key and of its value.
Entries = dict[str, tuple[yaml.Node, yaml.Node]]


class FormReport:
    """The mistakes that were found in a form.

    :ivar problems: mistakes because of which the dashboard cannot show or use the form.
    :ivar warnings: mistakes that the dashboard ignores.
    :ivar patterns: the check for all regular expressions in the form.
    """

    def __init__(self, file: str, is_yaql: IsYaql | None) -> None:
        self.file = file
        self._is_yaql = is_yaql
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self.patterns = PatternCheck()

    def refuse(self, rule: Rule, node: yaml.Node | None, message: str) -> None:
        """Add a problem at the line of a node."""
        self.problems.append(Problem(rule, self.file, message, safe_yaml.line_of(node)))

    def warn(self, rule: Rule, node: yaml.Node | None, message: str) -> None:
        """Add a warning at the line of a node."""
        self.warnings.append(Problem(rule, self.file, message, safe_yaml.line_of(node)))

    def is_expression(self, node: yaml.Node, by_default: bool = True) -> bool:
        """Return whether the dashboard reads a node as a YAQL expression.

        A node with the tag ``!yaql`` is always an expression. Any other node is an expression only
        if it is a string without quotes. For such a string, the first case that applies decides:

        1. A string of words, numbers, dots and colons is not an expression.
        2. A string such as ``my-host`` is an expression; see ``is_arithmetic``.
        3. Any other string is an expression if it is valid YAQL.

        :param by_default: the result for the third case, if this report has no function that checks
            whether a string is valid YAQL.
        """
        if node.tag == safe_yaml.YAQL:
            return True
        if not is_string(node) or node.style or _WORDS.match(text := str(node.value)):
            return False
        if is_arithmetic(node):
            return True
        return by_default if self._is_yaql is None else self._is_yaql(text)

    def entries(
        self, rule: Rule, node: yaml.Node, subject: str, is_evaluated: bool = False
    ) -> Entries | None:
        """Return the entries of a mapping. A key that is not a string is reported as a problem.

        :param rule: the rule that a wrong key or a wrong node breaks.
        :param node: the mapping.
        :param subject: the name of the mapping, for messages.
        :param is_evaluated: whether a key may also be an expression.
        :returns: the entries with valid keys; None if the node is not a mapping, which is reported
            as a problem.
        """
        try:
            pairs = safe_yaml.merged_pairs(node)
        except ValueError as error:
            self.refuse(rule, node, f"{subject}: {error}")
            return None
        found: Entries = {}
        for key, value in pairs:
            is_key = is_evaluated or not self.is_expression(key, by_default=False)
            if is_string(key) and is_key:
                found[str(key.value)] = (key, value)
            else:
                message = f"{subject}: the key {described(key)} is not a string; quote it"
                self.refuse(rule, key, message)
        return found


def is_string(node: yaml.Node) -> TypeGuard[yaml.ScalarNode]:
    """Return whether a node is a string or a YAQL expression."""
    return isinstance(node, yaml.ScalarNode) and node.tag in (safe_yaml.STR, safe_yaml.YAQL)


def is_null(node: yaml.Node) -> bool:
    """Return whether a node is null."""
    return node.tag == safe_yaml.NULL


def is_arithmetic(node: yaml.Node) -> bool:
    """Return whether a node is an unquoted string that YAQL reads as a subtraction or a division.

    Examples are ``my-host`` and ``TCP/UDP``.
    """
    is_plain = isinstance(node, yaml.ScalarNode) and node.tag == safe_yaml.STR and not node.style
    return is_plain and _ARITHMETIC.match(str(node.value)) is not None


def snake_case(key: str) -> str:
    """Return a key in the dashboard's spelling: ``maxLength`` becomes ``max_length``."""
    return _CAPITAL.sub("_", key).lower()


def described(node: yaml.Node) -> str:
    """Return a description of a node, for a message: its value in quotes, or only its kind.

    For a mapping, a sequence or null, the result is the kind, such as ``a mapping``.
    """
    if isinstance(node, yaml.ScalarNode) and not is_null(node):
        return quoted(str(node.value))
    return safe_yaml.kind(node)
