# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What a file of MuranoPL says of the classes in it: names and base classes.

It reads as much as a catalogue needs, by the engine's own rules: several
documents in one file, ``Namespaces`` carried on from one to the next, and one
class without a name, which takes the name that it is asked for (document
"MuranoPL reference", "Common class structure"). It does not look at
properties or methods.
"""

import dataclasses
import re
from collections.abc import Iterable
from collections.abc import Mapping

import yaml

from glare_murano.package import documents
from glare_murano.package import errors
from glare_murano.package.documents import kind
from glare_murano.package.errors import quoted

_TYPE_NAME = re.compile(r"([a-zA-Z_]\w*:|:)?[a-zA-Z_]\w*(\.[a-zA-Z_]\w*)*\Z")


@dataclasses.dataclass(frozen=True)
class ClassDefinition:
    """One class.

    :param name: its fully qualified name; empty if the file gives none.
    :param extends: fully qualified names of its base classes, as far as the
        file names them.
    """

    name: str
    extends: tuple[str, ...]


def read_classes(
    data: bytes, file: str, names: Iterable[str]
) -> tuple[list[ClassDefinition], list[errors.Problem]]:
    """Read the classes that a file is said to define.

    :param file: the file's path, for messages.
    :param names: the names that the manifest gives to this file.
    :returns: the definitions, one a name, and what is wrong.
    """
    try:
        found, problems = _definitions(documents.compose_all(data, file), file)
    except errors.InvalidPackage as error:
        return [], list(error.problems)
    named = {definition.name: definition for definition in found}
    unnamed = [definition for definition in found if not definition.name]
    result = []
    for name in names:
        if name in named:
            result.append(named[name])
        elif len(unnamed) == 1:
            result.append(dataclasses.replace(unnamed[0], name=name))
        elif unnamed:
            message = f"class {name} cannot be told: {len(unnamed)} classes have no name"
            problems.append(errors.Problem("class-name", file, message))
        else:
            there = ", ".join(filter(None, named)) or "none"
            message = f"does not define class {name}; it defines {there}"
            problems.append(errors.Problem("class-missing", file, message))
    return result, problems


def _definitions(
    nodes: Iterable[yaml.Node], file: str
) -> tuple[list[ClassDefinition], list[errors.Problem]]:
    found = []
    problems = []
    namespaces: Mapping[str, str] = {}
    for node in nodes:
        if not isinstance(node, yaml.MappingNode):
            if kind(node) != "nothing":
                problems.append(_problem(file, f"expected a mapping, found {kind(node)}", node))
            continue
        keys = {key.value: value for key, value in node.value if isinstance(key.value, str)}
        try:
            if "Namespaces" in keys:
                namespaces = _namespaces(keys["Namespaces"])
            if keys.keys() != {"Namespaces"}:
                found.append(_definition(keys, namespaces))
        except ValueError as error:
            problems.append(_problem(file, str(error), node))
    return found, problems


def _definition(keys: Mapping[str, yaml.Node], namespaces: Mapping[str, str]) -> ClassDefinition:
    name = keys.get("Name")
    return ClassDefinition(
        name=_resolve(name, namespaces) if kind(name) != "nothing" else "",
        extends=tuple(_resolve(base, namespaces) for base in _listed(keys.get("Extends"))),
    )


def _listed(node: yaml.Node | None) -> list[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    return [] if node is None or kind(node) == "nothing" else [node]


def _namespaces(node: yaml.Node) -> dict[str, str]:
    if kind(node) == "nothing":
        return {}
    if not isinstance(node, yaml.MappingNode):
        raise ValueError(f"Namespaces: expected a mapping, found {kind(node)}")
    return {
        _text(prefix, "Namespaces"): _text(value, "Namespaces") if kind(value) != "nothing" else ""
        for prefix, value in node.value
    }


def _resolve(node: yaml.Node | None, namespaces: Mapping[str, str]) -> str:
    """The fully qualified name that a name in a class file stands for."""
    name = _text(node, "a class")
    if not _TYPE_NAME.match(name):
        raise ValueError(f"{quoted(name)} is no name of a class")
    prefix, colon, rest = name.rpartition(":")
    if not colon and "." in name:
        return name
    prefix = prefix or "="
    if prefix not in namespaces and prefix != "=":
        raise ValueError(f"{quoted(name)}: the namespace prefix {quoted(prefix)} is not declared")
    namespace = namespaces.get(prefix, "")
    return f"{namespace}.{rest}" if namespace else rest


def _text(node: yaml.Node | None, what: str) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise ValueError(f"{what}: expected a text, found {kind(node)}")
    return str(node.value)


def _problem(file: str, message: str, node: yaml.Node) -> errors.Problem:
    return errors.Problem("class-syntax", file, message, documents.line_of(node.start_mark))
