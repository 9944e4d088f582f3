# SPDX-License-Identifier: Apache-2.0

"""Packages in a repository, and conditions that select some of them."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from glare_murano import fields, wire
from glare_murano.package import Version
from glare_murano.package.manifest import check_full_name
from glare_murano.resolver import PackageVersion

Visibility = Literal["private", "public"]


def _strings(value: object) -> list[str]:
    return ["" if each == "" else wire.string(each) for each in wire.sequence(value)]


def _texts(value: object) -> dict[str, str]:
    return {key: wire.get(value, key, wire.string) for key in wire.mapping(value)}


def _archive(value: object) -> None:
    archive = wire.mapping(value)
    for key, read in (("sha256", wire.digest), ("size", wire.size)):
        if archive.get(key) is not None:
            wire.get(archive, key, read)


# Field -> a function that checks its form, since a server may send anything.
_FORMS: Mapping[str, Callable[[object], object]] = {
    fields.ARCHIVE: _archive,
    "categories": _strings,
    "class_definitions": _strings,
    "inherits": _texts,
    "keywords": _strings,
    "requirements": wire.ranges_from_json,
    "tags": _strings,
}


@dataclasses.dataclass(frozen=True)
class StoredPackage:
    """A package in a repository, in any state.

    :param status: ``drafted``, ``active`` or ``deactivated``.
    :param visibility: ``private`` or ``public``; in Glance also ``shared`` or ``community``.
    :param fields: all fields of the package, under their names in Glare.
    :raises Malformed: if a field that this class or a command reads has the wrong form.
    """

    id: str
    fqn: str
    version: Version
    status: str
    visibility: str
    owner: str
    fields: Mapping[str, Any]

    def __post_init__(self) -> None:
        check_full_name(self.fqn)
        for name, read in _FORMS.items():
            if self.fields.get(name) is not None:
                wire.get(self.fields, name, read)

    @property
    def digest(self) -> str:
        """The SHA-256 of the archive, in hexadecimal; empty before the upload."""
        archive = self.fields.get(fields.ARCHIVE) or {}
        return str(archive.get("sha256") or "")

    @property
    def yanked(self) -> str:
        """The reason for the yank; empty if the package was not yanked."""
        return self.fields.get("yanked") or ""

    @property
    def size(self) -> int | None:
        """The size of the archive in bytes; None before the upload."""
        archive = self.fields.get(fields.ARCHIVE) or {}
        return archive.get("size")

    @property
    def key(self) -> PackageVersion:
        """The name and the version."""
        return PackageVersion(self.fqn, self.version)

    def __str__(self) -> str:
        return f"{self.fqn} {self.version}"


@dataclasses.dataclass(frozen=True)
class Selection:
    """Conditions; a package has to match all of them.

    :param pattern: the name, in which ``*`` stands for any string; by default any name.
    :param values: field -> the value that it equals, or that its list contains.
    :param yanked: whether to find only yanked packages, or only the others; by default both.
    :param newest: whether to find only the newest version among the matches of each name.
    :param without_drafts: whether to leave out drafts.
    """

    pattern: str = ""
    values: Mapping[str, str] = dataclasses.field(default_factory=dict)
    yanked: bool | None = None
    newest: bool = False
    without_drafts: bool = False


ACTIVE = Selection(values={"status": "active"})


def newest(packages: Iterable[StoredPackage]) -> list[StoredPackage]:
    """Return the newest version of each package, in the same order."""
    found = list(packages)
    first: dict[str, StoredPackage] = {}
    for package in found:
        other = first.setdefault(package.fqn, package)
        if package.version.precedence_key > other.version.precedence_key:
            first[package.fqn] = package
    return [package for package in found if first[package.fqn] is package]


def by_name(packages: Iterable[StoredPackage]) -> Mapping[str, Sequence[StoredPackage]]:
    """Group packages by their names."""
    found: dict[str, list[StoredPackage]] = {}
    for package in packages:
        found.setdefault(package.fqn, []).append(package)
    return found
