# SPDX-License-Identifier: Apache-2.0

"""YAML that nobody vouches for, read without executing or exhausting anything.

libyaml does the parsing; this module bounds what it is given and what comes
out. It returns nodes, not values, since the text as written counts in a
manifest and a node knows its line.
"""

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from glare_murano.package import errors
from glare_murano.package.errors import quoted
from glare_murano.package.rules import Rule

MAX_DEPTH = 64
MAX_SIZE = 1024 * 1024
# How many nodes a file may have once its aliases are written out.
MAX_EXPANDED = 100_000

NULL = "tag:yaml.org,2002:null"
YAQL = "!yaql"
MERGE = "tag:yaml.org,2002:merge"
_MAP = "tag:yaml.org,2002:map"
_SEQ = "tag:yaml.org,2002:seq"
STR = "tag:yaml.org,2002:str"
_BOOL = "tag:yaml.org,2002:bool"
_INT = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"

_TRUTH = yaml.SafeLoader.bool_values
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}\Z")
_DECIMAL = re.compile(r"[-+]?[0-9]{1,18}\.[0-9]{0,18}([eE][-+]?[0-9]{1,3})?\Z")

_COLLECTIONS = ("map", "omap", "pairs", "seq", "set")
_SCALARS = ("binary", "bool", "float", "int", "merge", "null", "str", "timestamp", "value")
# YAML's own, and what MuranoPL adds.
_KNOWN_TAGS = {f"tag:yaml.org,2002:{name}" for name in _COLLECTIONS + _SCALARS} | {YAQL}

# libyaml's binding composes recursively, in C, and ends the process where
# nesting outgrows the stack. Each level takes one of these characters but the
# last two, in every encoding that YAML has, and beside each of them stand three
# nodes at the most; where they are few, nothing has to be counted more exactly.
_NODE_CHARACTERS = b"[{-?:,."
_SAFE_COUNT = 4000
_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_NODE = (yaml.ScalarEvent, yaml.AliasEvent, *_OPENING)
_CLOSING = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


# What the loader looks up for every node.
_SCALAR = yaml.ScalarNode
_MAPPING = yaml.MappingNode
_RESOLVERS = {
    first: [(str(tag), pattern.match) for tag, pattern in resolvers]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


class _Loader(yaml.CSafeLoader):
    """PyYAML's own, with its resolver freed of paths, which nothing here has.

    The resolver is called for every node, in Python, and takes a good part of
    the time.
    """

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
    """Parse the one YAML document of a file.

    :param data: the file's bytes, UTF-8 or UTF-16 as YAML has it.
    :param name: the file's name, for messages.
    :returns: the root node, or None if the document is empty.
    :raises InvalidPackage: as ``compose_all``, or if there are several.
    """
    nodes, _ = compose_all(data, name)
    if len(nodes) > 1:
        raise _refusal(Rule.YAML_SYNTAX, name, "expected one document", nodes[1].start_mark)
    return nodes[0] if nodes else None


def compose_all(data: bytes, name: str) -> tuple[list[yaml.Node], int]:
    """Parse the YAML documents of a file.

    :returns: their root nodes, without empty documents at the end, and how
        many nodes they have in all, with their aliases written out.
    :raises InvalidPackage: if the file is too big, nested too deep, no YAML,
        has tags that MuranoPL does not know, or aliases that grow.
    """
    if len(data) > MAX_SIZE:
        raise _refusal(Rule.YAML_SIZE, name, f"{len(data)} bytes, at most {MAX_SIZE} are allowed")
    try:
        if _count(data, _NODE_CHARACTERS) > _SAFE_COUNT:
            _check_events(data, name)
        nodes = list(yaml.compose_all(data, Loader=_Loader))
    except errors.InvalidPackage:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _refusal(Rule.YAML_SYNTAX, name, f"no YAML: {error.problem}", mark) from error
    except (yaml.YAMLError, UnicodeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise _refusal(Rule.YAML_SYNTAX, name, f"no YAML: {reason}") from error
    if b"&" in data and b"*" in data:
        _check_growth(nodes, name)
    count = 0
    for node in nodes:
        count += _count_nodes(node, name)
        if b"!" in data:
            _check_tags(node, name)
    return nodes, count


def plain(node: yaml.Node) -> Any:
    """The value of a node as Python's own dicts, lists, texts, numbers and None.

    What YAML would make of a text beside numbers, truth values and null (a
    date, a number to the base of 60) stays the text as written.

    :raises ValueError: if a key of a mapping is no text.
    """
    if isinstance(node, yaml.MappingNode):
        return {key_of(key): plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [plain(item) for item in node.value]
    return _scalar(node.tag, str(node.value))


def texts(node: yaml.Node) -> Any:
    """As ``plain``, but with every scalar as the text that is written, or None.

    In a list, what is null is left out.

    :raises ValueError: if a key of a mapping is no text.
    """
    if isinstance(node, yaml.MappingNode):
        return {key_of(key): texts(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [texts(item) for item in node.value if item.tag != NULL]
    return None if node.tag == NULL else str(node.value)


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


def key_of(node: yaml.Node) -> str:
    """The key of a mapping, as the text that is written.

    :raises ValueError: if it is no text, or a merge key.
    """
    if not isinstance(node, yaml.ScalarNode):
        raise ValueError(f"line {line_of(node.start_mark)}: a key is {kind(node)}, not a text")
    if node.tag == MERGE:
        raise ValueError("merge keys are not understood; write out what is merged")
    return str(node.value)


def kind(node: yaml.Node | None) -> str:
    """What a node is, in words: ``nothing``, ``a mapping``, ``a sequence``, ``a text``."""
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a sequence"
    return "nothing" if node is None or node.tag == NULL else "a text"


def line_of(mark: Any) -> int:
    """The line of a place in a document, counted from 1; 0 if it has no place."""
    return int(mark.line) + 1 if mark is not None else 0


def _count(data: bytes, characters: bytes) -> int:
    return len(data) - len(data.translate(None, characters))


def _check_events(data: bytes, name: str) -> None:
    depth = count = 0
    for event in yaml.parse(data, Loader=yaml.CSafeLoader):
        count += isinstance(event, _NODE)
        if count > MAX_EXPANDED:
            raise _refusal(
                Rule.YAML_SIZE, name, f"more than {MAX_EXPANDED} values", event.start_mark
            )
        if isinstance(event, _OPENING):
            depth += 1
            if depth > MAX_DEPTH:
                raise _too_deep(name, event.start_mark)
        elif isinstance(event, _CLOSING):
            depth -= 1


def _count_nodes(root: yaml.Node, name: str) -> int:
    """How many nodes a document has, none of which is nested too deep."""
    level = [root]
    count = depth = 0
    while level:
        count += len(level)
        level = [node for node in level if type(node) is not _SCALAR]
        if depth == MAX_DEPTH and level:
            raise _too_deep(name, level[0].start_mark)
        depth += 1
        level = [*_below(level)]
    return count


def _check_tags(root: yaml.Node, name: str) -> None:
    level = [root]
    while level:
        if not _KNOWN_TAGS.issuperset([node.tag for node in level]):
            unknown = next(node for node in level if node.tag not in _KNOWN_TAGS)
            message = f"the tag {quoted(unknown.tag)} is unknown"
            raise _refusal(Rule.YAML_TAG, name, message, unknown.start_mark)
        level = [*_below(level)]


def _below(level: Iterable[yaml.Node]) -> Iterator[yaml.Node]:
    """The nodes right below; without a call for each, since every class has many."""
    return itertools.chain.from_iterable(
        itertools.chain.from_iterable(node.value) if type(node) is _MAPPING else node.value
        for node in level
        if type(node) is not _SCALAR
    )


def _check_growth(roots: Iterable[yaml.Node], name: str) -> None:
    """Refuse aliases that hold themselves, or that written out are too many nodes."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    total = 0
    for root in roots:
        total += _size(root, name, sizes, open_nodes)
        if total > MAX_EXPANDED:
            raise _grown(name, root)


def _size(root: yaml.Node, name: str, sizes: dict[int, int], open_nodes: set[int]) -> int:
    stack = [(root, False)]
    while stack:
        node, done = stack.pop()
        key = id(node)
        if done:
            sizes[key] = 1 + sum(sizes[id(child)] for child in _children(node))
            open_nodes.discard(key)
            if sizes[key] > MAX_EXPANDED:
                raise _grown(name, node)
        elif key in open_nodes:
            raise _refusal(Rule.YAML_ALIAS, name, "an alias holds itself", node.start_mark)
        elif key not in sizes:
            open_nodes.add(key)
            stack.append((node, True))
            stack.extend((child, False) for child in _children(node))
    return sizes[id(root)]


def _grown(name: str, node: yaml.Node) -> errors.InvalidPackage:
    message = f"aliases grow to more than {MAX_EXPANDED} nodes"
    return _refusal(Rule.YAML_ALIAS, name, message, node.start_mark)


def _children(node: yaml.Node) -> Iterable[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else ()


def _too_deep(name: str, mark: Any) -> errors.InvalidPackage:
    return _refusal(Rule.YAML_DEPTH, name, f"nested deeper than {MAX_DEPTH} levels", mark)


def _refusal(rule: Rule, name: str, message: str, mark: Any = None) -> errors.InvalidPackage:
    return errors.InvalidPackage([errors.Problem(rule, name, message, line_of(mark))])
