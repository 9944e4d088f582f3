# SPDX-License-Identifier: Apache-2.0

"""Read the declarations of a MuranoPL class from its YAML.

Declarations that the engine would refuse are skipped: this module does not check packages.
"""

import types
from collections.abc import Collection

import yaml

from glare_murano.package import safe_yaml
from glare_murano.package.classes import ClassSource, resolve
from loader.compatibility.changes import Place
from loader.compatibility.declarations import Class, Declaration, Method
from loader.compatibility.nodes import Entry, entries, frozen, text, values

ROOT_CLASS = "io.murano.Object"
# Only the engine calls these methods. Each has two possible names. If a class has methods with both
# names, the engine calls the last of them.
_INITIALIZERS = ("initialize", ".init")
_DESTRUCTORS = ("destroy", ".destroy")
_TARGETS = frozenset({"Package", "Type", "Property", "Method", "Argument"})
_NULL = frozen(yaml.ScalarNode(safe_yaml.NULL, ""))


def read_class(source: ClassSource, file: str, is_old: bool) -> Class:
    """Read the declarations of a class.

    :param file: the path of the class file in the package.
    :param is_old: whether the file belongs to the older version, for the places of declarations.
    """
    return _ClassReader(source, file, is_old).read()


class _ClassReader:
    """Reads the declarations in one document of a class file."""

    def __init__(self, source: ClassSource, file: str, is_old: bool) -> None:
        self._source = source
        self._file = file
        self._is_old = is_old

    def read(self) -> Class:
        """Read the class with its members."""
        keys, definition = self._source.keys, self._source.definition
        methods = entries(keys.get("Methods")) or entries(keys.get("Workflow"))
        initializers = [methods.pop(name) for name in list(methods) if name in _INITIALIZERS]
        for name in _DESTRUCTORS:
            methods.pop(name, None)
        properties = entries(keys.get("Properties"))
        return Class(
            name=definition.name,
            bases=tuple(base for base in definition.extends if base != ROOT_CLASS),
            usage=text(keys.get("Usage"), "Class"),
            targets=_targets(keys.get("Applies")),
            has_many=text(keys.get("Cardinality"), "One") == "Many",
            is_inherited=frozen(keys.get("Inherited")) == ("bool", True),
            properties=types.MappingProxyType(
                {name: self._declaration(name, entry, "In") for name, entry in properties.items()}
            ),
            methods=types.MappingProxyType(
                {name: self._method(name, entry) for name, entry in methods.items()}
            ),
            initializer=types.MappingProxyType(
                self._arguments(initializers[-1][1]) if initializers else {}
            ),
            metadata=self._metadata(keys.get("Meta")),
            place=self._place(keys.get("Name") or next(iter(keys.values()), None)),
        )

    def _method(self, name: str, entry: Entry) -> Method:
        keys = values(entry[1])
        usage = text(keys.get("Usage"), "Runtime")
        return Method(
            name=name,
            usage="Runtime" if usage == "Action" else usage,
            is_public=usage == "Action" or text(keys.get("Scope"), "Session") == "Public",
            arguments=tuple(self._arguments(entry[1]).values()),
            metadata=self._metadata(keys.get("Meta")),
            place=self._place(entry[0]),
        )

    def _arguments(self, method: yaml.Node) -> dict[str, Declaration]:
        """Return a method's arguments by name, in order; the last one counts if a name repeats."""
        node = values(method).get("Arguments")
        return {
            name: self._declaration(name, entry, "Standard")
            for each in (node.value if isinstance(node, yaml.SequenceNode) else [node])
            for name, entry in entries(each).items()
        }

    def _declaration(self, name: str, entry: Entry, usage: str) -> Declaration:
        keys = values(entry[1])
        return Declaration(
            name=name,
            usage=text(keys.get("Usage"), usage),
            contract=keys.get("Contract"),
            default=keys.get("Default"),
            namespaces=self._source.namespaces,
            metadata=self._metadata(keys.get("Meta")),
            place=self._place(entry[0]),
        )

    def _metadata(self, node: yaml.Node | None) -> Collection[object]:
        """Return the attached metadata: pairs of a full class name and an object's properties."""
        if node is None:
            return frozenset()
        found = []
        for each in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if isinstance(each, yaml.MappingNode):
                given = values(each).items()
                found += [(self._resolve(name), frozen(value)) for name, value in given]
            elif isinstance(each, yaml.ScalarNode) and each.tag != safe_yaml.NULL:
                found.append((self._resolve(each.value), _NULL))
        return frozenset(found)

    def _resolve(self, name: str) -> str:
        try:
            return resolve(name, self._source.namespaces)
        except ValueError:
            return name

    def _place(self, node: yaml.Node | None) -> Place:
        return Place(self._file, safe_yaml.line_of(node), self._is_old)


def _targets(node: yaml.Node | None) -> frozenset[str]:
    """Return the targets of a metadata class; by default, all targets are allowed.

    :param node: the value of ``Applies``, which is a name or a list of names.
    """
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
    names = frozenset(text(each, "All") for each in nodes)
    return _TARGETS if "All" in names else names
