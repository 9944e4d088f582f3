# SPDX-License-Identifier: Apache-2.0

"""Glance's database, as the API needs it: see ``service.database.Database``.

The closure of a query takes two statements for each level of requirements, and a third if packages
are shared.

MariaDB ignores case and accents: a query for ``murano_published`` also finds
``muráno_published``, which every owner may write. So this module itself compares the names of the
properties that a statement has found.

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
from glare_murano.glance.db import image_queries
from glare_murano.inheritance import ExtendingRecord
from glare_murano.package import GlareMuranoError, Version, parse_version
from glare_murano.resolver import PackageVersion
from glare_murano.service.database import (
    DependentsRecord,
    PackageMetadata,
    PackageRecord,
    Viewer,
    look_up,
)

LOG = logging.getLogger(__name__)


class UnreadablePackages(Exception):
    """Packages with properties in another form than the import plug-in writes.

    Somebody has written such properties in the database directly, or in a cloud without the
    property protections. The answer to a query leaves out these packages.

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
        # Why packages are yanked, read together with the packages: id -> reason, else empty.
        self._yanked: dict[str, str] = {}

    def find_usable(
        self, column: Literal["id", "name"], values: Iterable[str], package: str | None = None
    ) -> Iterator[PackageRecord]:
        """See ``service.database.Database``, which describes most methods.

        A package with the visibility ``community`` is found only as ``package``.
        """
        project = self.viewer.project_id or ""
        rows = self._look_up(self._usable(column), values, package=package, project=project)
        for record in self._records(rows):
            if record.status == images.ACTIVE or record.id == package:
                yield self._with_visible_members(record)

    def _with_visible_members(self, record: PackageRecord) -> PackageRecord:
        """Return a package with only those members that Glance shows to the viewer."""
        if self.viewer.is_admin or record.owner == self.viewer.project_id:
            return record
        return record._replace(members=record.members & {self.viewer.project_id or ""})

    def find_candidates(self, names: Iterable[str]) -> Iterator[PackageRecord]:
        """Find packages that may satisfy requirements."""
        return self._records(self._look_up(image_queries.CANDIDATES, names))

    def find_public(self, names: Iterable[str]) -> Iterator[PackageRecord]:
        """Find public packages by name, including deactivated ones."""
        for record in self._records(self._look_up(image_queries.PUBLIC, names)):
            if record.status != "drafted":
                yield record

    def find_metadata(self, ids: Iterable[str]) -> dict[str, PackageMetadata]:
        """Return the metadata of packages.

        :raises UnreadablePackages: if the metadata of some packages cannot be read.
        """
        wanted = set(ids)
        found: dict[str, dict[str, str]] = collections.defaultdict(dict)
        sizes = {}
        for row in self._look_up(image_queries.METADATA, wanted):
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
        """Return the reasons of yanked packages."""
        wanted = set(ids)
        unknown = wanted - self._yanked.keys()
        read = {**self._yanked, **self._values(images.YANKED, unknown)}
        return {id_: read[id_] for id_ in wanted if read.get(id_)}

    def find_defining(self, class_names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Find the packages that define classes."""
        wanted = set(class_names)
        for record, classes in self._listed(images.CLASSES, wanted, self._usable("id")):
            for name in wanted.intersection(classes):
                yield name, record.id

    def find_extending(self, base_names: Iterable[str]) -> Iterator[ExtendingRecord]:
        """Find packages that define direct subclasses of classes."""
        wanted = set(base_names)
        for record, inherits in self._listed(images.INHERITS, wanted, self._usable("id")):
            for base in wanted.intersection(inherits):
                yield ExtendingRecord(base, record.id, record.key, inherits[base].split(","))

    def find_dependents(self, name: str, owner: str | None) -> Iterator[DependentsRecord]:
        """Find the ranges in which other packages require a package."""
        requiring = self._requiring[name] = [
            (record, requirements[name])
            for record, requirements in self._listed(
                images.REQUIREMENTS, {name}, image_queries.BY_ID
            )
            if name in requirements and record.name != name and owner in (None, record.owner)
        ]
        yield from {
            DependentsRecord(range_, record.owner, record.visibility)
            for record, range_ in requiring
        }

    def find_requiring(
        self, name: str, group: DependentsRecord, limit: int
    ) -> Iterator[PackageVersion]:
        """Find the packages of a group of dependents that ``find_dependents`` has returned."""
        keys = (
            record.key
            for record, range_ in self._requiring[name]
            if DependentsRecord(range_, record.owner, record.visibility) == group
        )
        return (key for key, _ in zip(keys, range(limit), strict=False))

    def _usable(self, column: str) -> Any:
        return image_queries.usable(
            column, self.viewer.is_admin, self.viewer.project_id is not None
        )

    def _look_up(
        self, statement: Any, values: Iterable[str], **parameters: str | None
    ) -> Iterator[Row]:
        return look_up(self._connection, statement, values, **parameters)

    def _values(self, name: str, ids: Iterable[str]) -> dict[str, str]:
        """Return the values of a property, by the ids of images."""
        rows = self._look_up(image_queries.VALUES, ids, property=name)
        return {row.image_id: row.value for row in rows if row.name == name}

    def _listed(
        self, name: str, wanted: set[str], statement: Any
    ) -> Iterator[tuple[PackageRecord, Any]]:
        """Yield active packages whose list or mapping has a wanted name, and that list or mapping.

        :param name: the property with the list or mapping.
        :param statement: finds the packages by their ids.
        """
        if not wanted:
            return
        # The database searches the text of the properties first, since few packages match.
        found = self._connection.execute(image_queries.lists(wanted), {"property": name}).all()
        texts = {row.image_id: row.value for row in found if row.name == name}
        readable = _readable(texts, name)
        values = {id_: value for id_, value in readable if not wanted.isdisjoint(value)}
        rows = self._look_up(statement, values, package=None, project=self.viewer.project_id or "")
        for record in self._records(rows):
            if record.status == images.ACTIVE:
                yield record, values[record.id]

    def _records(self, rows: Iterable[Row]) -> Iterator[PackageRecord]:
        """Yield the valid packages among rows."""
        rows = list(rows)
        members = self.find_members(
            row.id for row in rows if row.visibility == image_queries.SHARED
        )
        for row in rows:
            version = _version(row.version) if row.version_name == images.VERSION else None
            is_valid = version and images.image_id(row.owner, row.name, version) == row.id
            if version and is_valid and row.id not in self._left_out:
                is_yanked = row.yanked and row.yanked_name == images.YANKED
                self._yanked[row.id] = row.yanked if is_yanked else ""
                yield PackageRecord(
                    row.id,
                    PackageVersion(row.name, version),
                    row.owner,
                    row.visibility,
                    _status(row),
                    frozenset(members.get(row.id, ())),
                    # The time is in the key, since a new image can get the id of a purged image.
                    f"{row.id} {row.created_at}" if _is_published(row) else "",
                )

    def find_members(self, ids: Iterable[str]) -> Mapping[str, set[str]]:
        """Return the projects that have accepted shared images, by image id."""
        found: dict[str, set[str]] = collections.defaultdict(set)
        for row in self._look_up(image_queries.ACCEPTED_MEMBERS, ids):
            found[row.image_id].add(row.member)
        return found


def _status(row: Row) -> str:
    """Return the status of a package in Glare's terms: an active image may be a draft."""
    if row.status != images.ACTIVE:
        return images.DEACTIVATED
    return images.ACTIVE if _is_published(row) else "drafted"


def _is_published(row: Row) -> bool:
    return bool(row.published) and row.published_name == images.PUBLISHED


# Most packages share a few versions, so that each is parsed once.
@functools.lru_cache(maxsize=4096)
def _version(text: str) -> Version | None:
    try:
        return parse_version(text)
    except GlareMuranoError:
        return None


# Property -> the function that reads it.
_READ: dict[str, Callable[[str], Any]] = {
    images.REQUIREMENTS: images.requirements,
    images.CLASSES: images.classes,
    images.INHERITS: lambda text: images.strings(text, images.INHERITS, dict),
}


def _readable(texts: Mapping[str, str], name: str) -> Iterator[tuple[str, Any]]:
    """Yield the ids of images with their lists or mappings; leave out unreadable ones."""
    for id_, text in texts.items():
        try:
            yield id_, _READ[name](text)
        except GlareMuranoError as error:
            LOG.warning("Image %s is left out: %s", id_, error)
