# SPDX-License-Identifier: Apache-2.0

"""Parse untrusted YAML without executing code or exhausting memory.

libyaml parses the YAML, and this module limits the input and the output. Results are nodes, not
values, since a node also contains the string as written, and the line number.
"""

import itertools
import re
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import yaml

from glare_murano.package import errors
from glare_murano.package.errors import quoted
from glare_murano.package.rules import Rule

MAX_DEPTH = 64
MAX_SIZE = 1024 * 1024
# The greatest number of values in a file, after aliases are expanded. A long string counts as
# several values, since an alias takes few characters, and programs read the string each time.
MAX_EXPANDED = 100_000
_CHARACTERS_PER_VALUE = 64
# libyaml compares each of these directives with all before it.
_TAG_DIRECTIVE = re.compile(rb"%TAG[ \t]")
_MAX_TAG_DIRECTIVES = 100

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
# Longer keys are not converted. They may be numbers in base 60, whose conversion takes long.
_MAX_CONVERTED = 1000
_STRINGS = frozenset({STR, YAQL, MERGE})
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}\Z")
_DECIMAL = re.compile(r"[-+]?[0-9]{1,18}\.[0-9]{0,18}([eE][-+]?[0-9]{1,3})?\Z")

_COLLECTIONS = ("map", "omap", "pairs", "seq", "set")
_SCALARS = ("binary", "bool", "float", "int", "merge", "null", "str", "timestamp", "value")
# The tags of YAML and of MuranoPL.
_KNOWN_TAGS = {f"tag:yaml.org,2002:{name}" for name in _COLLECTIONS + _SCALARS} | {YAQL}

# libyaml composes nodes recursively, in C: deep nesting overflows the stack and kills the process.
# In every encoding, each level needs one of the first five characters below, and each of the seven
# characters makes at most three nodes. So a file with few of these characters is safe. In any other
# file, the events of the parser are checked first.
_NODE_CHARACTERS = b"[{-?:,."
_SAFE_COUNT = 4000
_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_NODE = (yaml.ScalarEvent, yaml.AliasEvent, *_OPENING)
_CLOSING = (yaml.MappingEndEvent, yaml.SequenceEndEvent)

# Global names are faster than attributes, and the YAML loader uses them for every node.
_SCALAR = yaml.ScalarNode
_MAPPING = yaml.MappingNode
_RESOLVERS = {
    first: [(str(tag), pattern.match) for tag, pattern in resolvers]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


class _Loader(yaml.CSafeLoader):
    """A YAML loader that resolves tags faster than the loader of PyYAML that it extends.

    The loader skips PyYAML's path resolvers, which this project does not use.
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
    """Parse a file with at most one YAML document.

    :param data: the file in UTF-8 or UTF-16.
    :param name: the name of the file, for messages.
    :returns: the root node; None if the file has no document.
    :raises InvalidPackage: as in ``compose_all``, or if there are several documents.
    """
    nodes, _ = compose_all(data, name)
    if len(nodes) > 1:
        raise _refusal(Rule.YAML_SYNTAX, name, "expected one document", nodes[1].start_mark)
    return nodes[0] if nodes else None


def compose_all(data: bytes, name: str) -> tuple[list[yaml.Node], int]:
    """Parse a file with any number of YAML documents.

    :param data: the file in UTF-8 or UTF-16.
    :param name: the name of the file, for messages.
    :returns: the root nodes, without empty documents at the end, and the total number of values
        after aliases are expanded. A string counts as one value more for each 64 characters.
    :raises InvalidPackage: if the file is not valid YAML, is too large, is nested too deep, has an
        unknown tag, has an alias that contains itself, has too many values after aliases are
        expanded, or has too many ``%TAG`` directives.
    """
    if len(data) > MAX_SIZE:
        raise _refusal(Rule.YAML_SIZE, name, f"{len(data)} bytes, at most {MAX_SIZE} are allowed")
    # UTF-16 has a zero byte beside each of these characters.
    if len(_TAG_DIRECTIVE.findall(data.replace(b"\0", b""))) > _MAX_TAG_DIRECTIVES:
        message = f"more than {_MAX_TAG_DIRECTIVES} directives '%TAG'; remove them"
        raise _refusal(Rule.YAML_SIZE, name, message)
    try:
        node_characters = len(data) - len(data.translate(None, _NODE_CHARACTERS))
        if node_characters > _SAFE_COUNT or (b"&" in data and b"*" in data):
            _check_events(data, name)
        nodes = list(yaml.compose_all(data, Loader=_Loader))
    except errors.InvalidPackage:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _refusal(Rule.YAML_SYNTAX, name, f"not valid YAML: {error.problem}", mark) from error
    except (yaml.YAMLError, UnicodeError, ValueError) as error:
        reason = " ".join(str(error).split())
        # The position in an error is a number of bytes.
        line = data.count(b"\n", 0, getattr(error, "position", 0)) + 1
        problem = errors.Problem(Rule.YAML_SYNTAX, name, f"not valid YAML: {reason}", line)
        raise errors.InvalidPackage([problem]) from error
    return nodes, _count_expanded(nodes, name)


def plain(node: yaml.Node) -> Any:
    """Convert a node to dicts, lists, strings, numbers, truth values and None.

    Scalars of other types, such as dates and numbers in base 60, become strings as written.

    :raises ValueError: if a key of a mapping is not a string.
    """
    if isinstance(node, yaml.MappingNode):
        return {key_of(key): plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [plain(item) for item in node.value]
    return _scalar(node.tag, str(node.value))


def strings(node: yaml.Node) -> Any:
    """Convert a node to dicts, lists, strings and None.

    Every scalar except null becomes a string as written. Null becomes None, but is left out of
    lists.

    :raises ValueError: if a key of a mapping is not a string.
    """
    if isinstance(node, yaml.MappingNode):
        return {key_of(key): strings(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [strings(item) for item in node.value if item.tag != NULL]
    return None if node.tag == NULL else str(node.value)


def merged_pairs(node: yaml.Node | None) -> list[tuple[yaml.Node, yaml.Node]]:
    """Resolve the merge keys (``<<``) of a mapping node, and return its pairs.

    The pairs of merged mappings come first. The node is changed in place.

    :raises ValueError: if the node or a merged node is not a mapping.
    """
    if not isinstance(node, yaml.MappingNode):
        raise ValueError(f"expected a mapping, found {kind(node)}")
    try:
        yaml.constructor.SafeConstructor().flatten_mapping(node)
    except yaml.MarkedYAMLError as error:
        raise ValueError(f"'<<': {error.problem}") from error
    return list(node.value)


def repeated_keys(roots: Iterable[yaml.Node]) -> Iterator[tuple[yaml.Node, bool]]:
    """Yield the repeated keys of all mappings in some documents, at any depth.

    Parsers differ: PyYAML, the engine and the dashboard use the value of the last of several equal
    keys, and other parsers use the value of the first.

    :param roots: documents that ``compose_all`` has returned, before any call of ``merged_pairs``.
    :returns: for each repeated key, the node of the key, and whether the earlier equal key has the
        same value.
    """
    # Id of the key's node -> result. The ids are needed, since aliases lead to the same node again.
    found: dict[int, tuple[yaml.Node, bool]] = {}
    collections = [node for node in roots if type(node) is not _SCALAR]
    # The loop appends to the list. Recursive calls would be slower, and class files have many
    # nodes.
    for node in collections:
        if type(node) is not _MAPPING:
            collections += [item for item in node.value if type(item) is not _SCALAR]
            continue
        texts = set()
        for key, value in node.value:
            if type(key) is _SCALAR and key.tag in _STRINGS:
                texts.add(key.value)
            if type(value) is not _SCALAR:
                collections.append(value)
        if len(texts) < len(node.value):
            repeated = _find_repeated(node.value)
            found.update({id(key): (key, is_same) for key, is_same in repeated})
    yield from found.values()


def key_of(node: yaml.Node) -> str:
    """Return a key of a mapping as it is written.

    :param node: the node of the key.
    :raises ValueError: if the key is not a string, or is a merge key.
    """
    if not isinstance(node, yaml.ScalarNode):
        raise ValueError(f"line {line_of(node)}: a key is {kind(node)}, not a string")
    if node.tag == MERGE:
        raise ValueError("merge keys are not supported; write out the merged keys")
    return str(node.value)


def kind(node: yaml.Node | None) -> str:
    """Describe a node: ``a mapping``, ``a sequence``, ``a string`` or ``nothing``.

    Null and a missing node are ``nothing``. Every other scalar is ``a string``.
    """
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a sequence"
    return "nothing" if node is None or node.tag == NULL else "a string"


def line_of(node: yaml.Node | None) -> int:
    """Return the line where a node begins in its file, counted from 1; 0 without a node."""
    return 0 if node is None else int(node.start_mark.line) + 1


def _find_repeated(
    pairs: Iterable[tuple[yaml.Node, yaml.Node]],
) -> Iterator[tuple[yaml.Node, bool]]:
    values: dict[Hashable, yaml.Node] = {}
    for key, value in pairs:
        # PyYAML refuses a mapping or a sequence as a key.
        if isinstance(key, yaml.ScalarNode):
            read = _read_key(key)
            if read in values:
                yield key, _is_same(values[read], value)
            values[read] = value


def _read_key(key: yaml.ScalarNode) -> Hashable:
    """Return a key as PyYAML reads it, so that ``1`` and ``0x1`` are equal.

    A key that PyYAML cannot read is returned as it is written.
    """
    text = str(key.value)
    if key.tag in _STRINGS or len(text) > _MAX_CONVERTED:
        return text
    try:
        read = yaml.constructor.SafeConstructor().construct_object(key)
    # The errors depend on the type, such as KeyError for "!!bool x".
    except Exception:
        return text
    # "!!set" without a value is an empty set.
    return read if isinstance(read, Hashable) else text


def _is_same(first: yaml.Node, second: yaml.Node) -> bool:
    if first is second:
        return True
    if type(first) is not type(second) or first.tag != second.tag:
        return False
    if isinstance(first, yaml.ScalarNode) and isinstance(second, yaml.ScalarNode):
        # Only a string without quotes can be a YAQL expression.
        return first.value == second.value and (not first.style) == (not second.style)
    if len(first.value) != len(second.value):
        return False
    pairs = zip(first.value, second.value, strict=True)
    if isinstance(first, yaml.MappingNode):
        return all(_is_same(a[0], b[0]) and _is_same(a[1], b[1]) for a, b in pairs)
    return all(itertools.starmap(_is_same, pairs))


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
    """Check the nesting, the number of nodes and the aliases of a file, before nodes are composed.

    :raises InvalidPackage: if the file is nested too deep, has too many nodes, or has an alias that
        contains itself.
    """
    count = 0
    # The anchors of the collections that contain the present event; None for one without an anchor.
    anchors: list[str | None] = []
    for event in yaml.parse(data, Loader=yaml.CSafeLoader):
        count += isinstance(event, _NODE)
        if count > MAX_EXPANDED:
            message = f"more than {MAX_EXPANDED} values"
            raise _refusal(Rule.YAML_SIZE, name, message, event.start_mark)
        if isinstance(event, _OPENING):
            anchors.append(event.anchor)
            if len(anchors) > MAX_DEPTH:
                raise _too_deep(name, event.start_mark)
        elif isinstance(event, _CLOSING):
            anchors.pop()
        elif isinstance(event, yaml.AliasEvent) and event.anchor in anchors:
            raise _refusal(Rule.YAML_ALIAS, name, "an alias contains itself", event.start_mark)


def _count_expanded(roots: list[yaml.Node], name: str) -> int:
    """Check the nodes of a file, and return the number of values after aliases are expanded.

    :raises InvalidPackage: if there are too many values, they are nested too deep, or a tag is
        unknown.
    """
    count, level = 0, roots
    for depth in itertools.count():
        texts = (node.value for node in level if type(node) is _SCALAR)
        count += len(level) + sum(len(text) // _CHARACTERS_PER_VALUE for text in texts)
        if count > MAX_EXPANDED:
            message = f"more than {MAX_EXPANDED} values after aliases are expanded"
            raise _refusal(Rule.YAML_ALIAS, name, message, level[-1].start_mark)
        if not _KNOWN_TAGS.issuperset([node.tag for node in level]):
            unknown = next(node for node in level if node.tag not in _KNOWN_TAGS)
            message = f"the tag {quoted(unknown.tag)} is unknown"
            raise _refusal(Rule.YAML_TAG, name, message, unknown.start_mark)
        collections = [node for node in level if type(node) is not _SCALAR]
        if not collections:
            break
        if depth == MAX_DEPTH:
            raise _too_deep(name, collections[0].start_mark)
        # Function calls for each node would be slow, and class files have many nodes.
        children = itertools.chain.from_iterable(
            itertools.chain.from_iterable(node.value) if type(node) is _MAPPING else node.value
            for node in collections
        )
        level = list(itertools.islice(children, MAX_EXPANDED - count + 1))
    return count


def _too_deep(name: str, mark: Any) -> errors.InvalidPackage:
    return _refusal(Rule.YAML_DEPTH, name, f"nested deeper than {MAX_DEPTH} levels", mark)


def _refusal(rule: Rule, name: str, message: str, mark: Any = None) -> errors.InvalidPackage:
    line = 0 if mark is None else mark.line + 1
    return errors.InvalidPackage([errors.Problem(rule, name, message, line)])
