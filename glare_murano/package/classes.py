# SPDX-License-Identifier: Apache-2.0

"""What a file of MuranoPL says of the classes in it: names and base classes.

It reads as much as a catalogue needs, by the engine's own rules: several
documents in one file, ``Namespaces`` carried on from one to the next, and one
class without a name, which takes the name that it is asked for (document
"MuranoPL reference", "Common class structure"). It does not look at
properties or methods.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping

import yaml

from glare_murano.package import errors, safe_yaml
from glare_murano.package.errors import quoted
from glare_murano.package.rules import Rule
from glare_murano.package.safe_yaml import kind

_MAX_NAME = 255
_MAX_BASES = 64
_MAX_LISTED = 5
_PREFIX = re.compile(r"([a-zA-Z_]\w*|=)\Z")
_NAMESPACE = re.compile(r"([a-zA-Z_]\w*(\.[a-zA-Z_]\w*)*)?\Z")
_TYPE_NAME = re.compile(r"([a-zA-Z_]\w*:|:)?[a-zA-Z_]\w*(\.[a-zA-Z_]\w*)*\Z")


@dataclasses.dataclass(frozen=True)
class ClassDefinition:
    """One class.

    :param name: its fully qualified name; empty if the file gives none.
    :param extends: fully qualified names of its base classes, as far as the
        file names them.
    :param namespace: where its name would be, if the file gave one.
    """

    name: str
    extends: tuple[str, ...]
    namespace: str = dataclasses.field(default="", repr=False, compare=False)


def read_classes(
    nodes: Iterable[yaml.Node], file: str, names: Iterable[str]
) -> tuple[list[ClassDefinition], list[errors.Problem]]:
    """Read the classes that a file is said to define.

    :param nodes: the file's YAML documents.
    :param file: the file's path, for messages.
    :param names: the names that the manifest gives to this file.
    :returns: the definitions, one a name, and what is wrong.
    """
    found, problems = _definitions(nodes, file)
    named = {definition.name: definition for definition in found}
    unnamed = [definition for definition in found if not definition.name]
    result = []
    if len(unnamed) > 1:
        # The engine loads no class of such a file, even if another has its name.
        message = f"{len(unnamed)} classes have no name, so that none can be told by it"
        return [], [*problems, errors.Problem(Rule.CLASS_NAME, file, message)]
    listed = list(filter(None, named))
    there = ", ".join(listed[:_MAX_LISTED]) or "none"
    if len(listed) > _MAX_LISTED:
        there += f" and {len(listed) - _MAX_LISTED} more"
    for name in names:
        if name in named:
            result.append(named[name])
        elif unnamed and ("." in name or not unnamed[0].namespace):
            result.append(dataclasses.replace(unnamed[0], name=name))
        else:
            message = f"does not define class {name}; it defines {there}"
            problems.append(errors.Problem(Rule.CLASS_MISSING, file, message))
    return result, problems


def _definitions(
    nodes: Iterable[yaml.Node], file: str
) -> tuple[list[ClassDefinition], list[errors.Problem]]:
    found = []
    problems = []
    namespaces: Mapping[str, str] = {}
    without_namespaces = False
    for node in nodes:
        if not isinstance(node, yaml.MappingNode):
            if kind(node) != "nothing":
                problems.append(_problem(file, f"expected a mapping, found {kind(node)}", node))
            continue
        try:
            keys = {key.value: value for key, value in _merged(node) if isinstance(key.value, str)}
            if without_namespaces:
                raise ValueError("the engine reads no document after one with empty Namespaces")
            if "Namespaces" in keys:
                namespaces = _namespaces(keys["Namespaces"])
                without_namespaces = kind(keys["Namespaces"]) == "nothing"
            if keys and keys.keys() != {"Namespaces"}:
                found.append(_definition(keys, namespaces))
        except ValueError as error:
            problems.append(_problem(file, str(error), node))
    return found, problems


def _definition(keys: Mapping[str, yaml.Node], namespaces: Mapping[str, str]) -> ClassDefinition:
    name = keys.get("Name")
    bases = _listed(keys.get("Extends"))
    if len(bases) > _MAX_BASES:
        raise ValueError(f"{len(bases)} base classes, at most {_MAX_BASES} are allowed")
    return ClassDefinition(
        name="" if _is_nothing(name) else _resolve(name, namespaces),
        extends=tuple(_resolve(base, namespaces) for base in bases),
        namespace=namespaces.get("=", ""),
    )


def _is_nothing(node: yaml.Node | None) -> bool:
    return node is None or kind(node) == "nothing" or node.value == ""


def _merged(node: yaml.MappingNode) -> list[tuple[yaml.Node, yaml.Node]]:
    """The pairs of a mapping, those that it merges first."""
    if not any(key.tag == safe_yaml.MERGE for key, _ in node.value):
        return list(node.value)
    pairs: list[tuple[yaml.Node, yaml.Node]] = []
    for key, value in node.value:
        if key.tag != safe_yaml.MERGE:
            continue
        merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
        for base in reversed(merged):
            if not isinstance(base, yaml.MappingNode):
                raise ValueError(f"<<: expected a mapping, found {kind(base)}")
            pairs += _merged(base)
    return pairs + [pair for pair in node.value if pair[0].tag != safe_yaml.MERGE]


def _listed(node: yaml.Node | None) -> list[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    return [] if node is None or _is_nothing(node) else [node]


def _namespaces(node: yaml.Node) -> dict[str, str]:
    if kind(node) == "nothing":
        return {}
    if not isinstance(node, yaml.MappingNode):
        raise ValueError(f"Namespaces: expected a mapping, found {kind(node)}")
    return {_prefix(prefix): _namespace(value) for prefix, value in _merged(node)}


def _prefix(node: yaml.Node) -> str:
    text = _text(node, "Namespaces")
    if not _PREFIX.match(text):
        raise ValueError(f"Namespaces: {quoted(text)} is no prefix")
    return text


def _namespace(node: yaml.Node) -> str:
    text = "" if kind(node) == "nothing" else _text(node, "Namespaces")
    if not _NAMESPACE.match(text):
        raise ValueError(f"Namespaces: {quoted(text)} is no namespace")
    return text


def _resolve(node: yaml.Node | None, namespaces: Mapping[str, str]) -> str:
    """The fully qualified name that a name in a class file stands for."""
    if kind(node) == "nothing":
        raise ValueError("a class: expected a text, found nothing")
    name = _text(node, "a class")
    if node is not None and node.tag not in (safe_yaml.STR, safe_yaml.YAQL):
        # The engine would take the value, such as True for yes.
        raise ValueError(f"{quoted(name)} is no text for YAML; write it in quotes")
    if not _TYPE_NAME.match(name):
        raise ValueError(f"{quoted(name)} is no name of a class")
    prefix, colon, rest = name.rpartition(":")
    if not colon and "." in name:
        return _checked(name)
    prefix = prefix or "="
    if prefix not in namespaces and prefix != "=":
        raise ValueError(f"{quoted(name)}: the namespace prefix {quoted(prefix)} is not declared")
    namespace = namespaces.get(prefix, "")
    return _checked(f"{namespace}.{rest}" if namespace else rest)


def _checked(name: str) -> str:
    if len(name) > _MAX_NAME:
        raise ValueError(f"{quoted(name)} is longer than {_MAX_NAME} characters")
    return name


def _text(node: yaml.Node | None, what: str) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise ValueError(f"{what}: expected a text, found {kind(node)}")
    return str(node.value)


def _problem(file: str, message: str, node: yaml.Node) -> errors.Problem:
    return errors.Problem(Rule.CLASS_SYNTAX, file, message, safe_yaml.line_of(node.start_mark))
