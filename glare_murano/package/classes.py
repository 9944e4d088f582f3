# SPDX-License-Identifier: Apache-2.0

"""Read the names and base classes from MuranoPL class files.

The engine's rules apply (document "MuranoPL reference", "Common class structure"):

* A file may have several YAML documents.
* ``Namespaces`` applies to its own document and to the following documents, up to the next
  ``Namespaces``.
* One class in a file may omit its name.

Properties and methods are not read; a ``ClassSource`` contains their YAML nodes.
"""

import dataclasses
import graphlib
import re
from collections.abc import Iterable, Mapping

import yaml

from glare_murano.package import safe_yaml
from glare_murano.package.errors import Problem, quoted
from glare_murano.package.rules import Rule
from glare_murano.package.safe_yaml import kind

_MAX_NAME = 255
MAX_BASES = 64
_MAX_LISTED = 5
_PREFIX = re.compile(r"([a-zA-Z_]\w*|=)\Z")
_NAMESPACE = re.compile(r"([a-zA-Z_]\w*(\.[a-zA-Z_]\w*)*)?\Z")
_TYPE_NAME = re.compile(r"([a-zA-Z_]\w*:|:)?[a-zA-Z_]\w*(\.[a-zA-Z_]\w*)*\Z")


@dataclasses.dataclass(frozen=True)
class ClassDefinition:
    """The name and the base classes of a MuranoPL class.

    :param name: the fully qualified name of the class; empty if the file omits it.
    :param extends: the fully qualified names of the base classes.
    :param namespace: the namespace that the document applies to names without a prefix.
    :param line: the line of ``Extends`` in the file; 0 if unknown.
    """

    name: str
    extends: tuple[str, ...]
    namespace: str = dataclasses.field(default="", repr=False, compare=False)
    line: int = dataclasses.field(default=0, repr=False, compare=False)


class _WrongNode(ValueError):
    """A mistake in a class file.

    :ivar line: the number of the line with the mistake.
    """

    def __init__(self, message: str, node: yaml.Node) -> None:
        super().__init__(message)
        self.line = safe_yaml.line_of(node)


@dataclasses.dataclass(frozen=True)
class ClassSource:
    """A MuranoPL class with the YAML of its document.

    :param keys: the keys of the document, such as ``Properties`` -> the YAML nodes of their values.
    :param namespaces: the namespaces that apply to the document: prefix -> namespace.
    """

    definition: ClassDefinition
    keys: Mapping[str, yaml.Node]
    namespaces: Mapping[str, str]


def read_classes(
    nodes: Iterable[yaml.Node], file: str, names: Iterable[str]
) -> tuple[list[ClassDefinition], list[Problem]]:
    """Read the classes that the manifest assigns to a file.

    :param nodes: the YAML documents of the file.
    :param file: the path of the file, for messages.
    :param names: the names of the classes that the manifest assigns to the file.
    :returns: the definitions of the classes that were found, and the problems.
    """
    sources, problems = read_sources(nodes, file, names)
    return [source.definition for source in sources], problems


def read_sources(
    nodes: Iterable[yaml.Node], file: str, names: Iterable[str]
) -> tuple[list[ClassSource], list[Problem]]:
    """Read the classes that the manifest assigns to a file, with their YAML.

    The parameters are those of ``read_classes``.

    :returns: the classes that were found, and the problems.
    """
    found, problems = _sources(nodes, file)
    named = {source.definition.name: source for source in found if source.definition.name}
    unnamed = [source for source in found if not source.definition.name]
    if len(unnamed) > 1:
        # The engine loads no class from such a file, not even a class with a name.
        message = f"{len(unnamed)} classes have no name; at most one may omit it"
        return [], [*problems, Problem(Rule.CLASS_NAME, file, message, _line(unnamed[1]))]
    defined = ", ".join(list(named)[:_MAX_LISTED]) or "none"
    if len(named) > _MAX_LISTED:
        defined += f" and {len(named) - _MAX_LISTED} more"
    result = []
    for name in names:
        if name in named:
            result.append(named[name])
        elif unnamed and ("." in name or not unnamed[0].definition.namespace):
            definition = dataclasses.replace(unnamed[0].definition, name=name)
            result.append(dataclasses.replace(unnamed[0], definition=definition))
        else:
            message = f"does not define class {name}; it defines {defined}"
            line = _line(found[0]) if found else 0
            problems.append(Problem(Rule.CLASS_MISSING, file, message, line))
    return result, problems


def find_cycle(definitions: Iterable[ClassDefinition]) -> list[ClassDefinition]:
    """Find classes that extend each other in a cycle.

    The engine looks for a base class in the package first. So if a class of the package has the
    name of a base class, the class of the package is the base class.

    :param definitions: the classes of a package.
    :returns: the classes of one cycle: each extends the next class, and the last extends the first.
        The list is empty if there is no cycle.
    """
    named = {definition.name: definition for definition in definitions}
    # The classes are sorted, so that the same cycle is found each time.
    bases = {
        name: [base for base in named[name].extends if base in named] for name in sorted(named)
    }
    try:
        graphlib.TopologicalSorter(bases).prepare()
    except graphlib.CycleError as error:
        # The first class of this list is repeated at its end.
        return [named[name] for name in reversed(error.args[1][1:])]
    return []


def _sources(nodes: Iterable[yaml.Node], file: str) -> tuple[list[ClassSource], list[Problem]]:
    found = []
    problems = []
    namespaces: Mapping[str, str] = {}
    without_namespaces = False
    for node in nodes:
        try:
            if kind(node) == "nothing":
                continue
            pairs = safe_yaml.merged_pairs(node)
            keys = {key.value: value for key, value in pairs if isinstance(key.value, str)}
            if without_namespaces:
                raise ValueError("the engine reads no document after one with empty Namespaces")
            if "Namespaces" in keys:
                namespaces = _namespaces(keys["Namespaces"])
                without_namespaces = kind(keys["Namespaces"]) == "nothing"
            if keys and keys.keys() != {"Namespaces"}:
                found.append(ClassSource(_definition(keys, namespaces), keys, namespaces))
        except _WrongNode as error:
            problems.append(Problem(Rule.CLASS_SYNTAX, file, str(error), error.line))
        except ValueError as error:
            problems.append(Problem(Rule.CLASS_SYNTAX, file, str(error), safe_yaml.line_of(node)))
    return found, problems


def _line(source: ClassSource) -> int:
    """Return the line of the name of a class.

    If the class has no name, return the line of the first value in its document.
    """
    first = next(iter(source.keys.values()))
    return safe_yaml.line_of(source.keys.get("Name", first))


def _definition(keys: Mapping[str, yaml.Node], namespaces: Mapping[str, str]) -> ClassDefinition:
    name, extends = keys.get("Name"), keys.get("Extends")
    bases: list[yaml.Node] = []
    if isinstance(extends, yaml.SequenceNode):
        bases = extends.value
    elif extends is not None and not _is_empty(extends):
        bases = [extends]
    if len(bases) > MAX_BASES:
        message = f"{len(bases)} base classes, at most {MAX_BASES} are allowed"
        raise _WrongNode(message, bases[MAX_BASES])
    return ClassDefinition(
        name="" if name is None or _is_empty(name) else _resolve(name, namespaces),
        extends=tuple(_resolve(base, namespaces) for base in bases),
        namespace=namespaces.get("=", ""),
        line=safe_yaml.line_of(extends),
    )


def _is_empty(node: yaml.Node) -> bool:
    return kind(node) == "nothing" or node.value == ""


def _namespaces(node: yaml.Node) -> dict[str, str]:
    if kind(node) == "nothing":
        return {}
    if not isinstance(node, yaml.MappingNode):
        raise _WrongNode(f"Namespaces: expected a mapping, found {kind(node)}", node)
    found = {}
    for key, value in safe_yaml.merged_pairs(node):
        prefix = _string(key, "Namespaces")
        if not _PREFIX.match(prefix):
            raise _WrongNode(f"Namespaces: {quoted(prefix)} is not a valid prefix", key)
        namespace = "" if kind(value) == "nothing" else _string(value, "Namespaces")
        if not _NAMESPACE.match(namespace):
            raise _WrongNode(f"Namespaces: {quoted(namespace)} is not a valid namespace", value)
        found[prefix] = namespace
    return found


def resolve(name: str, namespaces: Mapping[str, str]) -> str:
    """Convert a name in a class file to the fully qualified name of a class.

    :param name: the name in the file, such as ``std:Application``.
    :param namespaces: the namespaces that apply to the name: prefix -> namespace.
    :raises ValueError: if the name is not valid, or its prefix is not declared.
    """
    if not _TYPE_NAME.match(name):
        raise ValueError(f"{quoted(name)} is not a valid class name")
    prefix, colon, rest = name.rpartition(":")
    if colon or "." not in name:
        prefix = prefix or "="
        if prefix not in namespaces and prefix != "=":
            raise ValueError(
                f"{quoted(name)}: the namespace prefix {quoted(prefix)} is not declared"
            )
        namespace = namespaces.get(prefix, "")
        name = f"{namespace}.{rest}" if namespace else rest
    if len(name) > _MAX_NAME:
        raise ValueError(f"{quoted(name)} is longer than {_MAX_NAME} characters")
    return name


def _resolve(node: yaml.Node, namespaces: Mapping[str, str]) -> str:
    if kind(node) == "nothing":
        raise _WrongNode("a class name: expected a string, found nothing", node)
    name = _string(node, "a class name")
    if node.tag not in (safe_yaml.STR, safe_yaml.YAQL):
        # The engine would use the value that YAML reads, such as True for yes.
        raise _WrongNode(f"{quoted(name)} is not a string in YAML; write it in quotes", node)
    try:
        return resolve(name, namespaces)
    except ValueError as error:
        raise _WrongNode(str(error), node) from error


def _string(node: yaml.Node, label: str) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise _WrongNode(f"{label}: expected a string, found {kind(node)}", node)
    return str(node.value)
