# SPDX-License-Identifier: Apache-2.0

"""Read the operator's file of reserved names, which says which project may use which names.

The file is YAML. It maps each prefix to the ids of the projects that may publish names under the
prefix. ::

    io.murano: [6e3f5a0c2d714b0f9f3e6c1d2a4b5c7d]
    org.example: [0f1e2d3c4b5a69788796a5b4c3d2e1f0, 11aa22bb33cc44dd55ee66ff77008899]
    com.example.internal: []

A prefix covers the name itself and every name below it: ``org.example`` and ``org.example.`` both
cover ``org.example`` and ``org.example.db``, but not ``org.examples``. If several prefixes cover a
name, the longest prefix applies. If the list of projects is empty, nobody may publish under the
prefix; packages with such names come only from directories on the engines' hosts. Glare, Glance and
the engine read the same file, and each of them enforces it.
"""

import dataclasses
import functools
import pathlib
import types
from collections.abc import Iterator, Mapping
from typing import Self

import yaml

from glare_murano.package import safe_yaml
from glare_murano.package.errors import GlareMuranoError, InvalidName, InvalidPackage, quoted
from glare_murano.package.manifest import check_required_name

_MAX_PROJECT = 255


class InvalidReservedNames(GlareMuranoError, ValueError):
    """The file of reserved names is missing, unreadable or not valid.

    The message names the file. For a mistake in the content, it also names the line.
    """


@dataclasses.dataclass(frozen=True)
class Reservation:
    """A reserved prefix of names.

    :param prefix: the prefix, without a dot at the end.
    :param projects: the ids of the projects that may publish under the prefix.
    """

    prefix: str
    projects: frozenset[str]

    def __str__(self) -> str:
        return f"the prefix {self.prefix}, which is reserved for {self.owners}"

    @property
    def owners(self) -> str:
        """A description of the projects that may publish under the prefix, for messages."""
        listed = ", ".join(sorted(self.projects))
        match len(self.projects):
            case 0:
                return "the operator"
            case 1:
                return f"project {listed}"
            case _:
                return f"the projects {listed}"


@dataclasses.dataclass(frozen=True)
class ReservedNames:
    """All reserved prefixes of names.

    >>> reserved = ReservedNames.parse(b"org.example: [our-project]", "reserved-names.yaml")
    >>> reserved.allows("org.example.db", "our-project")
    True
    >>> reserved.allows("org.example.db", "another-project")
    False

    :param reservations: the reservations by prefix.
    """

    reservations: Mapping[str, Reservation] = dataclasses.field(
        default_factory=lambda: types.MappingProxyType({})
    )

    @classmethod
    def load(cls, path: str) -> Self:
        """Read a file of reserved names.

        :raises InvalidReservedNames: if the file is missing, unreadable or not valid.
        """
        try:
            data = pathlib.Path(path).read_bytes()
        except OSError as error:
            raise InvalidReservedNames(f"{path}: {error.strerror}") from error
        return cls.parse(data, path)

    @classmethod
    def parse(cls, data: bytes, name: str) -> Self:
        """Parse a file of reserved names.

        :param name: the name of the file, for messages.
        :raises InvalidReservedNames: if the content is not valid.
        """
        try:
            root = safe_yaml.compose(data, name)
        except InvalidPackage as error:
            raise InvalidReservedNames(str(error)) from error
        found: dict[str, Reservation] = {}
        for key, value in _pairs(root, name):
            reservation = _reservation(key, value, name)
            if reservation.prefix in found:
                raise _mistake(name, key, f"the prefix {reservation.prefix} is repeated")
            found[reservation.prefix] = reservation
        return cls(types.MappingProxyType(found))

    def find(self, fqn: str) -> Reservation | None:
        """Return the reservation that applies to a name; None if the name is not reserved."""
        return next(filter(None, map(self.reservations.get, _prefixes(fqn))), None)

    def allows(self, fqn: str, project_id: str | None) -> bool:
        """Return whether a project may publish under a name.

        Every project may use a name that is not reserved.
        """
        reservation = self.find(fqn)
        return reservation is None or project_id in reservation.projects


# The reserved names if the operator has no file.
NO_RESERVED_NAMES = ReservedNames()


@functools.cache
def read_reserved_names(path: str | None) -> ReservedNames:
    """Return the operator's reserved names. A process reads each file only once.

    :param path: the path of the file; None if no names are reserved.
    :raises InvalidReservedNames: if the file is missing, unreadable or not valid.
    """
    return NO_RESERVED_NAMES if path is None else ReservedNames.load(path)


def _prefixes(fqn: str) -> Iterator[str]:
    """Yield a name and all its prefixes that end before a dot, the longest first."""
    while fqn:
        yield fqn
        fqn = fqn.rpartition(".")[0]


def _pairs(root: yaml.Node | None, name: str) -> list[tuple[yaml.Node, yaml.Node]]:
    if root is None or root.tag == safe_yaml.NULL:
        return []
    if not isinstance(root, yaml.MappingNode):
        raise _mistake(name, root, f"expected prefixes with projects, found {safe_yaml.kind(root)}")
    return list(root.value)


def _reservation(key: yaml.Node, value: yaml.Node, name: str) -> Reservation:
    try:
        prefix = check_required_name(safe_yaml.key_of(key).removesuffix("."))
    except (InvalidName, ValueError) as error:
        raise _mistake(name, key, str(error)) from error
    if not isinstance(value, yaml.SequenceNode):
        message = f"{prefix}: expected a list of project ids, found {safe_yaml.kind(value)}"
        raise _mistake(name, value, message)
    return Reservation(prefix, frozenset(_project(item, name) for item in value.value))


def _project(node: yaml.Node, name: str) -> str:
    # The string is used as written: YAML would read an id that consists of digits as a number.
    is_text = isinstance(node, yaml.ScalarNode) and node.tag != safe_yaml.NULL
    text = str(node.value) if is_text else ""
    if not text or len(text) > _MAX_PROJECT or not text.isprintable():
        found = quoted(text) if text else safe_yaml.kind(node)
        raise _mistake(name, node, f"expected the id of a project, found {found}")
    return text


def _mistake(name: str, node: yaml.Node, message: str) -> InvalidReservedNames:
    return InvalidReservedNames(f"{name}, line {safe_yaml.line_of(node)}: {message}")
