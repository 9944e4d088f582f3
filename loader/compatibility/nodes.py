# SPDX-License-Identifier: Apache-2.0

"""Read YAML nodes for a comparison; the order of keys has no effect, and merge keys are applied."""

import re
from collections.abc import Mapping
from typing import Any

import yaml

from glare_murano.package import safe_yaml

# This matches strings that are not expressions. The engine reads any other plain string as an
# expression if it is valid YAQL.
_PLAIN = re.compile(r"[\s\w.]*\Z")

# A key and its value.
Entry = tuple[yaml.Node, yaml.Node]


def entries(node: yaml.Node | None) -> dict[str, Entry]:
    """Return the entries of a mapping by key; each is a pair of the key's and the value's node.

    :returns: an empty mapping if the node is missing, or is not a mapping.
    """
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {
        str(key.value): (key, value)
        for key, value in pairs(node)
        if isinstance(key, yaml.ScalarNode)
    }


def values(node: yaml.Node | None) -> Mapping[str, yaml.Node]:
    """Return the values of a mapping by key.

    :returns: an empty mapping if the node is missing, or is not a mapping.
    """
    return {name: value for name, (_, value) in entries(node).items()}


def text(node: yaml.Node | None, default: str) -> str:
    """Return a scalar as it is written.

    :param default: the result if the node is missing, empty, null or not a scalar.
    """
    is_written = isinstance(node, yaml.ScalarNode) and node.tag != safe_yaml.NULL
    return str(node.value) if node is not None and is_written and node.value else default


def pairs(node: yaml.MappingNode) -> list[Entry]:
    """Return the keys and values of a mapping, including those that merge keys (``<<``) add."""
    if any(key.tag == safe_yaml.MERGE for key, _ in node.value):
        try:
            return safe_yaml.merged_pairs(node)
        except ValueError:
            pass
    return list(node.value)


def is_null(node: yaml.Node | None) -> bool:
    """Return whether a node is missing or null."""
    return node is None or node.tag == safe_yaml.NULL


def frozen(node: yaml.Node | None) -> Any:
    """Return a hashable value that is equal for equal nodes, whatever the order of their keys."""
    if node is None:
        return None
    if isinstance(node, yaml.MappingNode):
        return frozenset((frozen(key), frozen(value)) for key, value in pairs(node))
    if isinstance(node, yaml.SequenceNode):
        return tuple(map(frozen, node.value))
    if is_expression(node):
        return safe_yaml.YAQL, node.value
    value = safe_yaml.plain(node)
    return type(value).__name__, value


def is_expression(node: yaml.Node) -> bool:
    """Return whether the engine tries to parse a node as YAQL."""
    if node.tag == safe_yaml.YAQL:
        return True
    is_plain = isinstance(node, yaml.ScalarNode) and node.tag == safe_yaml.STR and not node.style
    return is_plain and not _PLAIN.match(str(node.value))


def flow(node: yaml.Node) -> str:
    """Return a YAML node as one line, for messages."""
    if isinstance(node, yaml.MappingNode):
        return "{" + ", ".join(f"{flow(key)}: {flow(value)}" for key, value in pairs(node)) + "}"
    if isinstance(node, yaml.SequenceNode):
        return f"[{', '.join(map(flow, node.value))}]"
    is_quoted = isinstance(node, yaml.ScalarNode) and node.style
    return repr(node.value) if is_quoted else str(node.value)
