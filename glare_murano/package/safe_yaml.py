# SPDX-License-Identifier: Apache-2.0

"""Parse untrusted YAML without executing code or exhausting memory.

libyaml does the parsing; this module limits its input and its output. Results
are nodes rather than values: a manifest's strings count as written, and a node
has a line number.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import yaml

from glare_murano.package import errors
from glare_murano.package.errors import quoted
from glare_murano.package.rules import Rule

MAX_DEPTH = 64
MAX_SIZE = 1024 * 1024
# The greatest number of nodes in a file, after aliases are expanded.
MAX_EXPANDED = 100_000

NULL = "tag:yaml.org,2002:null"
YAQL = "!yaql"
MERGE = "tag:yaml.org,2002:merge"
STR = "tag:yaml.org,2002:str"
_MAP = "tag:yaml.org,2002:map"
_SEQ = "tag:yaml.org,2002:seq"
_BOOL = "tag:yaml.org,2002:bool"
_INT = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"

_TRUTH = yaml.SafeLoader.bool_values
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}\Z")
_DECIMAL = re.compile(r"[-+]?[0-9]{1,18}\.[0-9]{0,18}([eE][-+]?[0-9]{1,3})?\Z")

_COLLECTIONS = ("map", "omap", "pairs", "seq", "set")
_SCALARS = ("binary", "bool", "float", "int", "merge", "null", "str", "timestamp", "value")
# The tags of YAML and of MuranoPL.
_KNOWN_TAGS = {f"tag:yaml.org,2002:{name}" for name in _COLLECTIONS + _SCALARS} | {YAQL}

# libyaml composes recursively, in C: deep nesting overflows the stack and kills
# the process. In every encoding, a level needs one of the first five characters,
# and there are at most three nodes for each of the seven. So a file with few of
# them is safe, and the others are checked event by event first.
_NODE_CHARACTERS = b"[{-?:,."
_SAFE_COUNT = 4000
_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_NODE = (yaml.ScalarEvent, yaml.AliasEvent, *_OPENING)
_CLOSING = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


# Local names, since the loader needs them for every node.
_SCALAR = yaml.ScalarNode
_MAPPING = yaml.MappingNode
_RESOLVERS = {
    first: [(str(tag), pattern.match) for tag, pattern in resolvers]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


class _Loader(yaml.CSafeLoader):
    """PyYAML's loader with a faster resolver, without the unused path resolvers."""

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:
        pass

    def ascend_resolver(self) -> None:
        pass

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        if kind is not _SCALAR:
            return _MAP if kind is _MAPPING else _SEQ
        if implicit[0] and value[:1] in _RESOLVERS:
            for tag, match in _RESOLVERS[value[:1]]:
                if match(value):
                    return tag
        return STR


def compose(data: bytes, name: str) -> yaml.Node | None:
    """Parse a file with at most one YAML document.

    :param data: the file in UTF-8 or UTF-16.
    :param name: the file's name, for messages.
    :returns: the root node, or None if the document is empty.
    :raises InvalidPackage: as ``compose_all``, or if there are several documents.
    """
    nodes, _ = compose_all(data, name)
    if len(nodes) > 1:
        raise _refusal(Rule.YAML_SYNTAX, name, "expected one document", nodes[1].start_mark)
    return nodes[0] if nodes else None


def compose_all(data: bytes, name: str) -> tuple[list[yaml.Node], int]:
    """Parse a file with any number of YAML documents.

    :returns: the root nodes, without empty documents at the end, and the total
        number of nodes after aliases are expanded.
    :raises InvalidPackage: if the file is too large, nested too deep or not valid
        YAML, or has tags unknown to MuranoPL or too large aliases.
    """
    if len(data) > MAX_SIZE:
        raise _refusal(Rule.YAML_SIZE, name, f"{len(data)} bytes, at most {MAX_SIZE} are allowed")
    try:
        if len(data) - len(data.translate(None, _NODE_CHARACTERS)) > _SAFE_COUNT:
            _check_events(data, name)
        nodes = list(yaml.compose_all(data, Loader=_Loader))
    except errors.InvalidPackage:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _refusal(Rule.YAML_SYNTAX, name, f"not valid YAML: {error.problem}", mark) from error
    except (yaml.YAMLError, UnicodeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise _refusal(Rule.YAML_SYNTAX, name, f"not valid YAML: {reason}") from error
    if b"&" in data and b"*" in data:
        _check_aliases(nodes, name)
    count = 0
    for level in itertools.chain.from_iterable(_levels(node, name) for node in nodes):
        count += len(level)
        if b"!" in data and not _KNOWN_TAGS.issuperset([node.tag for node in level]):
            unknown = next(node for node in level if node.tag not in _KNOWN_TAGS)
            message = f"the tag {quoted(unknown.tag)} is unknown"
            raise _refusal(Rule.YAML_TAG, name, message, unknown.start_mark)
    return nodes, count


def plain(node: yaml.Node) -> Any:
    """Return a node as dicts, lists, strings, numbers, truth values and None.

    Scalars of other types (a date, a number to the base of 60) are strings as
    written.

    :raises ValueError: if a key of a mapping is not a string.
    """
    if isinstance(node, yaml.MappingNode):
        return {key_of(key): plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [plain(item) for item in node.value]
    return _scalar(node.tag, str(node.value))


def strings(node: yaml.Node) -> Any:
    """Return a node like ``plain``, but with all scalars except null as strings as written.

    Null is omitted from lists.

    :raises ValueError: if a key of a mapping is not a string.
    """
    if isinstance(node, yaml.MappingNode):
        return {key_of(key): strings(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [strings(item) for item in node.value if item.tag != NULL]
    return None if node.tag == NULL else str(node.value)


def key_of(node: yaml.Node) -> str:
    """Return the key of a mapping, as written.

    :raises ValueError: if the key is not a string, or is a merge key.
    """
    if not isinstance(node, yaml.ScalarNode):
        raise ValueError(f"line {line_of(node.start_mark)}: a key is {kind(node)}, not a string")
    if node.tag == MERGE:
        raise ValueError("merge keys are not supported; write out the merged keys")
    return str(node.value)


def kind(node: yaml.Node | None) -> str:
    """Describe a node: ``nothing``, ``a mapping``, ``a sequence`` or ``a string``."""
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a sequence"
    return "nothing" if node is None or node.tag == NULL else "a string"


def line_of(mark: Any) -> int:
    """Return the line of a mark in a document, counted from 1; 0 without a mark."""
    return int(mark.line) + 1 if mark is not None else 0


def _scalar(tag: str, text: str) -> Any:
    if tag == NULL:
        return None
    if tag == _BOOL:
        return _TRUTH.get(text.lower(), text)
    if tag == _INT and _INTEGER.match(text):
        return int(text)
    if tag == _FLOAT and _DECIMAL.match(text):
        return float(text)
    return text


def _check_events(data: bytes, name: str) -> None:
    """Refuse deep nesting and many nodes before libyaml composes them."""
    depth = count = 0
    for event in yaml.parse(data, Loader=yaml.CSafeLoader):
        count += isinstance(event, _NODE)
        if count > MAX_EXPANDED:
            message = f"more than {MAX_EXPANDED} values"
            raise _refusal(Rule.YAML_SIZE, name, message, event.start_mark)
        if isinstance(event, _OPENING):
            depth += 1
            if depth > MAX_DEPTH:
                raise _too_deep(name, event.start_mark)
        elif isinstance(event, _CLOSING):
            depth -= 1


def _check_aliases(roots: Sequence[yaml.Node], name: str) -> None:
    """Refuse recursive aliases, and aliases with too many nodes."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, done = stack.pop()
        key = id(node)
        if done:
            sizes[key] = 1 + sum(sizes[id(child)] for child in _children(node))
            open_nodes.discard(key)
            if sizes[key] > MAX_EXPANDED:
                raise _too_many(name, node)
        elif key in open_nodes:
            raise _refusal(Rule.YAML_ALIAS, name, "an alias contains itself", node.start_mark)
        elif key not in sizes:
            open_nodes.add(key)
            stack.append((node, True))
            stack.extend((child, False) for child in _children(node))
    total = 0
    for root in roots:
        total += sizes[id(root)]
        if total > MAX_EXPANDED:
            raise _too_many(name, root)


def _levels(root: yaml.Node, name: str) -> Iterator[list[yaml.Node]]:
    """Return the nodes of a document by their depth, the root first.

    :raises InvalidPackage: if the document is nested too deep.
    """
    level = [root]
    for _ in range(MAX_DEPTH + 1):
        yield level
        collections = [node for node in level if type(node) is not _SCALAR]
        if not collections:
            return
        # No call for each node: there are many in every class.
        level = list(
            itertools.chain.from_iterable(
                itertools.chain.from_iterable(node.value) if type(node) is _MAPPING else node.value
                for node in collections
            )
        )
    raise _too_deep(name, collections[0].start_mark)


def _children(node: yaml.Node) -> Iterable[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else ()


def _too_many(name: str, node: yaml.Node) -> errors.InvalidPackage:
    message = f"aliases expand to more than {MAX_EXPANDED} nodes"
    return _refusal(Rule.YAML_ALIAS, name, message, node.start_mark)


def _too_deep(name: str, mark: Any) -> errors.InvalidPackage:
    return _refusal(Rule.YAML_DEPTH, name, f"nested deeper than {MAX_DEPTH} levels", mark)


def _refusal(rule: Rule, name: str, message: str, mark: Any = None) -> errors.InvalidPackage:
    return errors.InvalidPackage([errors.Problem(rule, name, message, line_of(mark))])
