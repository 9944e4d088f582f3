# SPDX-License-Identifier: Apache-2.0

"""Glance's database, as the API needs it: see ``service.database.Database``.

A level of a plan takes two statements, and a third if packages are shared.

MariaDB ignores case and accents, and also finds ``muráno_published`` for ``murano_published``,
and every owner may write the former. So the names of properties are compared again here.

Releases are found by the rule of ``images.is_release``: an image is left out if its id does not
follow from its owner, name and version.
"""

import collections
import contextlib
import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Literal

from oslo_log import log as logging
from sqlalchemy.engine import Connection, Row

from glare_murano import images, wire
from glare_murano.glance import queries
from glare_murano.inheritance import ExtendingRecord
from glare_murano.package import GlareMuranoError, Version, parse_version
from glare_murano.resolver import PackageVersion
from glare_murano.service.database import DependentsRecord, PackageMetadata, PackageRecord, Viewer

LOG = logging.getLogger(__name__)

# SQLite allows 32,766 values in a statement, PostgreSQL 65,535.
_MAX_VALUES = 30_000


class UnreadablePackages(Exception):
    """Packages whose properties do not have the form of the import plug-in.

    Such properties come from direct access to the database, or from a cloud without the property
    protections. A query is answered without these packages.

    :ivar ids: the ids of their images.
    """

    def __init__(self, ids: set[str]) -> None:
        super().__init__(f"the properties of these images are not valid: {', '.join(sorted(ids))}")
        self.ids = ids


class GlanceDatabase:
    """Glance's packages for one viewer, in the transaction of a connection."""

    def __init__(
        self, connection: Connection, viewer: Viewer, left_out: Collection[str] = ()
    ) -> None:
        """Prepare the queries.

        :param left_out: ids of packages to leave out; see ``UnreadablePackages``.
        """
        self.viewer = viewer
        self._left_out = left_out
        self._connection = connection
        # Package -> the active packages that require it, with their ranges.
        self._requiring: dict[str, list[tuple[PackageRecord, str]]] = {}
        # The reasons of yanks, found with the packages: id -> reason; empty if not yanked.
        self._yanked: dict[str, str] = {}

    def find_usable(
        self, column: Literal["id", "name"], values: Iterable[str], package: str | None = None
    ) -> Iterator[PackageRecord]:
        """See ``service.database.Database``, as for all methods.

        A package of the community is found as ``package`` alone.
        """
        project = self.viewer.project_id or ""
        rows = self._look_up(self._usable(column), values, package=package, project=project)
        for record in self._records(rows):
            if record.status == images.ACTIVE or record.id == package:
                yield self._with_visible_members(record)

    def _with_visible_members(self, record: PackageRecord) -> PackageRecord:
        """Return a package with the members listed by Glance for the viewer."""
        if self.viewer.is_admin or record.owner == self.viewer.project_id:
            return record
        return record._replace(members=record.members & {self.viewer.project_id or ""})

    def find_candidates(self, names: Iterable[str]) -> Iterator[PackageRecord]:
        """Find candidates for requirements."""
        return self._records(self._look_up(queries.CANDIDATES, names))

    def find_public(self, names: Iterable[str]) -> Iterator[PackageRecord]:
        """Find public packages by name, deactivated ones as well."""
        for record in self._records(self._look_up(queries.PUBLIC, names)):
            if record.status != "drafted":
                yield record

    def find_metadata(self, ids: Iterable[str]) -> dict[str, PackageMetadata]:
        """Return the metadata of packages.

        :raises UnreadablePackages: if the metadata of some packages cannot be read.
        """
        wanted = set(ids)
        found: dict[str, dict[str, str]] = collections.defaultdict(dict)
        sizes = {}
        for row in self._look_up(queries.METADATA, wanted):
            found[row.image_id][row.name] = row.value
            sizes[row.image_id] = row.size
        read = {}
        for id_, values in found.items():
            with contextlib.suppress(GlareMuranoError, KeyError):
                read[id_] = PackageMetadata(
                    images.requirements(values.get(images.REQUIREMENTS, "{}")),
                    tuple(sorted(_READ[images.CLASSES](values.get(images.CLASSES, "[]")))),
                    wire.digest(values[images.SHA256]),
                    sizes[id_],
                )
        if unreadable := wanted - read.keys():
            raise UnreadablePackages(unreadable)
        return read

    def find_requirements(self, ids: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the requirements of packages."""
        found = self._values(images.REQUIREMENTS, ids)
        return dict(_readable(found, images.REQUIREMENTS))

    def find_yanked(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the reasons of yanks."""
        wanted = set(ids)
        unknown = wanted - self._yanked.keys()
        read = {**self._yanked, **self._values(images.YANKED, unknown)}
        return {id_: read[id_] for id_ in wanted if read.get(id_)}

    def find_defining(self, class_names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Find the packages defining classes."""
        wanted = set(class_names)
        for record, classes in self._listed(images.CLASSES, wanted, self._usable("id")):
            for name in wanted.intersection(classes):
                yield name, record.id

    def find_extending(self, base_names: Iterable[str]) -> Iterator[ExtendingRecord]:
        """Find packages with direct subclasses of classes."""
        wanted = set(base_names)
        for record, inherits in self._listed(images.INHERITS, wanted, self._usable("id")):
            for base in wanted.intersection(inherits):
                yield ExtendingRecord(base, record.id, record.key, inherits[base].split(","))

    def find_dependents(self, name: str, owner: str | None) -> Iterator[DependentsRecord]:
        """Find the ranges in which other packages require a package."""
        requiring = self._requiring[name] = [
            (record, requirements[name])
            for record, requirements in self._listed(images.REQUIREMENTS, {name}, queries.BY_ID)
            if name in requirements and record.name != name and owner in (None, record.owner)
        ]
        yield from {
            DependentsRecord(range_, record.owner, record.visibility)
            for record, range_ in requiring
        }

    def find_requiring(
        self, name: str, group: DependentsRecord, limit: int
    ) -> Iterator[PackageVersion]:
        """Find the packages of a group."""
        keys = (
            record.key
            for record, range_ in self._requiring[name]
            if DependentsRecord(range_, record.owner, record.visibility) == group
        )
        return (key for key, _ in zip(keys, range(limit), strict=False))

    def _usable(self, column: str) -> Any:
        return queries.usable(column, self.viewer.is_admin, self.viewer.project_id is not None)

    def _look_up(
        self, statement: Any, values: Iterable[str], **parameters: str | None
    ) -> Iterator[Row]:
        """Execute a statement with a condition on values, in shares."""
        ordered = sorted(values)
        for start in range(0, len(ordered), _MAX_VALUES):
            share = ordered[start : start + _MAX_VALUES]
            yield from self._connection.execute(statement, {"values": share, **parameters}).all()

    def _values(self, name: str, ids: Iterable[str]) -> dict[str, str]:
        """Return a property of images, by id."""
        rows = self._look_up(queries.VALUES, ids, property=name)
        return {row.image_id: row.value for row in rows if row.name == name}

    def _listed(
        self, name: str, wanted: set[str], statement: Any
    ) -> Iterator[tuple[PackageRecord, Any]]:
        """Yield active packages with a property, a list or mapping, that may have a wanted name.

        :param statement: finds the packages by their ids.
        """
        if not wanted:
            return
        # The database searches the text of the lists first, since few packages match.
        found = self._connection.execute(queries.lists(wanted), {"property": name}).all()
        texts = {row.image_id: row.value for row in found if row.name == name}
        values = dict(_readable(texts, name))
        rows = self._look_up(statement, values, package=None, project=self.viewer.project_id or "")
        for record in self._records(rows):
            if record.status == images.ACTIVE:
                yield record, values[record.id]

    def _records(self, rows: Iterable[Row]) -> Iterator[PackageRecord]:
        """Yield the valid packages among rows."""
        rows = list(rows)
        members = self._find_members(row.id for row in rows if row.visibility == queries.SHARED)
        for row in rows:
            version = _version(row.version) if row.version_name == images.VERSION else None
            is_valid = version and images.image_id(row.owner, row.name, version) == row.id
            if version and is_valid and row.id not in self._left_out:
                is_yanked = row.yanked and row.yanked_name == images.YANKED
                self._yanked[row.id] = row.yanked if is_yanked else ""
                yield PackageRecord(
                    row.id,
                    row.name,
                    version,
                    row.owner,
                    row.visibility,
                    _status(row),
                    frozenset(members.get(row.id, ())),
                    # An id can be used again once deleted images were purged from the database.
                    f"{row.id} {row.created_at}" if _is_published(row) else "",
                )

    def _find_members(self, ids: Iterable[str]) -> Mapping[str, set[str]]:
        """Return the accepting projects of shared images, by image id."""
        found: dict[str, set[str]] = collections.defaultdict(set)
        for row in self._look_up(queries.ACCEPTED_MEMBERS, ids):
            found[row.image_id].add(row.member)
        return found


def _status(row: Row) -> str:
    """Return the status of a package in Glare's terms: an active image may be a draft."""
    if row.status != images.ACTIVE:
        return images.DEACTIVATED
    return images.ACTIVE if _is_published(row) else "drafted"


def _is_published(row: Row) -> bool:
    return bool(row.published) and row.published_name == images.PUBLISHED


# Most packages have the same versions.
@functools.lru_cache(maxsize=4096)
def _version(text: str) -> Version | None:
    try:
        return parse_version(text)
    except GlareMuranoError:
        return None


# How to read a property.
_READ: dict[str, Callable[[str], Any]] = {
    images.REQUIREMENTS: images.requirements,
    images.CLASSES: images.classes,
    images.INHERITS: lambda text: images.strings(text, images.INHERITS, dict),
}


def _readable(texts: Mapping[str, str], name: str) -> Iterator[tuple[str, Any]]:
    """Yield the lists or mappings of images, by id, without unreadable values."""
    for id_, text in texts.items():
        try:
            yield id_, _READ[name](text)
        except GlareMuranoError as error:
            LOG.warning("Image %s is left out: %s", id_, error)
