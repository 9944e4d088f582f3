# SPDX-License-Identifier: Apache-2.0

"""Represent the packages that a repository returns: drafts, active and deactivated packages."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self

from glare_murano import fields, wire
from glare_murano.package import GlareMuranoError, Version, parse_version
from glare_murano.package.errors import quoted
from glare_murano.package.manifest import check_fqn
from glare_murano.resolver import PackageVersion
from glare_murano.selection import CHOICES, Selection
from loader import errors

Visibility = Literal["private", "public"]


# The services make UUIDs. Commands and messages show an id, so nobody must take a part of it for an
# option or another command.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")


def _strings(value: object) -> list[str]:
    return ["" if each == "" else wire.string(each) for each in wire.sequence(value)]


def _texts(value: object) -> dict[str, str]:
    return {key: wire.get(value, key, wire.string) for key in wire.mapping(value)}


def _archive(value: object) -> None:
    archive = wire.mapping(value)
    for key, read in (("sha256", wire.digest), ("size", wire.size)):
        if archive.get(key) is not None:
            wire.get(archive, key, read)


# Field -> a function that checks the field's value, since a server may send anything.
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
    """A package in a repository: a draft, an active or a deactivated package.

    :param status: ``drafted``, ``active`` or ``deactivated``.
    :param visibility: ``private`` or ``public``; in Glance also ``shared`` or ``community``.
    :param fields: all fields of the package, under their names in Glare.
    :raises Malformed: if the value of a field that this class or a command reads is not valid.
    """

    id: str
    fqn: str
    version: Version
    status: str
    visibility: str
    owner: str
    fields: Mapping[str, Any]

    def __post_init__(self) -> None:
        check_fqn(self.fqn)
        if not _ID.fullmatch(self.id):
            raise wire.Malformed(f"id: {quoted(self.id)} is not the id of a package")
        for name, read in _FORMS.items():
            if self.fields.get(name) is not None:
                wire.get(self.fields, name, read)

    @classmethod
    def from_json(cls, content: Any, service: str) -> Self:
        """Read a package from the JSON of an artifact in Glare.

        :param service: the name of the service, for messages.
        :raises CatalogError: if the content is not the JSON of such a package.
        """
        try:
            return cls(
                id=wire.get(content, "id", wire.string),
                fqn=wire.get(content, "name", wire.string),
                version=wire.get(content, "version", lambda text: parse_version(wire.string(text))),
                status=wire.get(content, "status", wire.string),
                visibility=wire.get(content, "visibility", wire.string),
                owner=content.get("owner") or "",
                fields=content,
            )
        except GlareMuranoError as error:
            raise errors.CatalogError(
                f"{service} sent an unknown form of a package: {error}"
            ) from error

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


# ``EVERY`` selects packages in any state, and ``ACTIVE`` only active ones.
EVERY = Selection({"status": CHOICES["status"]})
ACTIVE = Selection()


def by_name(packages: Iterable[StoredPackage]) -> Mapping[str, Sequence[StoredPackage]]:
    """Group packages by their names."""
    found: dict[str, list[StoredPackage]] = {}
    for package in packages:
        found.setdefault(package.fqn, []).append(package)
    return found
