# SPDX-License-Identifier: Apache-2.0

"""Look up packages in Glance's database; see ``service.database.Database``.

The resolver finds the closure of a query level by level: first the roots, then the packages that
the roots require, and so on. Each level takes two statements, and a third if packages are shared.

MariaDB ignores case and accents: a query for ``murano_published`` also finds ``muráno_published``,
which every owner may write. So this module compares the names of the found properties again.

As in ``images.is_release``, the id of a package must follow from its owner, name and version. All
other images are left out.
"""

import collections
import contextlib
import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Literal

from oslo_log import log as logging
from sqlalchemy.engine import Connection, Row

from glare_murano import images, wire
from glare_murano.budget import Budget
from glare_murano.glance.db import image_lists, image_queries
from glare_murano.glance.db.image_tables import ACCEPTED
from glare_murano.inheritance import ExtendingRecord
from glare_murano.package import GlareMuranoError, InvalidName, Version, parse_version
from glare_murano.package.manifest import check_fqn
from glare_murano.resolver import PackageVersion
from glare_murano.selection import DRAFTED, Selection
from glare_murano.service.database import (
    DependentsRecord,
    PackageMetadata,
    PackageRecord,
    Reader,
    Viewer,
)
from glare_murano.service.list_statements import NameRange

LOG = logging.getLogger(__name__)

_BY_NAME = "looking up packages by name"
_METADATA = "reading metadata"
_DEPENDENTS = "looking up dependents"
_LISTING = "listing packages"
_FIELDS = "reading the fields of packages"


class UnreadablePackages(Exception):
    """The properties of some packages do not have the form that the import plug-in writes.

    Somebody has written such properties directly in the database, or in a cloud without the
    property protections. The answer to a query leaves out these packages.

    :ivar ids: the ids of the packages' images.
    """

    def __init__(self, ids: set[str]) -> None:
        super().__init__(f"the properties of these images are not valid: {', '.join(sorted(ids))}")
        self.ids = ids


class GlanceDatabase:
    """Glance's packages for one viewer, in the transaction of a connection."""

    def __init__(
        self,
        connection: Connection,
        viewer: Viewer,
        budget: Budget,
        left_out: Collection[str] = (),
    ) -> None:
        """Prepare the queries.

        :param connection: the connection to Glance's database.
        :param viewer: the user who sends the request.
        :param budget: the time limit of the request.
        :param left_out: the ids of packages to leave out; see ``UnreadablePackages``.
        """
        self.viewer = viewer
        self.budget = budget
        self._left_out = left_out
        self._reader = Reader(connection, budget)
        # Package -> the active packages that require it, with their ranges.
        self._requiring: dict[str, list[tuple[PackageRecord, str]]] = {}
        # Shared package -> the projects with which it is shared, even if they have not accepted it.
        self._members: dict[str, set[str]] = collections.defaultdict(set)
        # Why packages are yanked: id -> reason; empty for packages that are not yanked. The reasons
        # are read together with the packages.
        self._yanked: dict[str, str] = {}

    def find_usable(
        self, column: Literal["id", "name"], values: Iterable[str], package: str | None = None
    ) -> Iterator[PackageRecord]:
        """Find the active packages that are visible to the viewer, by id or by name.

        A package of another project with the visibility ``community`` is found only if its id is
        the parameter ``package``.

        :param package: the id of a package that is also found if it is a draft or deactivated.
        """
        project = self.viewer.project_id or ""
        step = f"looking up packages by {column}"
        rows = self._reader.look_up(
            step, self._usable(column), values, package=package, project=project
        )
        for record in self._seen(self._records(rows), package):
            if record.status == images.ACTIVE or record.id == package:
                yield self._with_visible_members(record)

    def _seen(
        self, records: Iterable[PackageRecord], package: str | None = None
    ) -> Iterator[PackageRecord]:
        """Yield those of the given packages that the viewer sees.

        The statement ``_usable`` can also find other packages, since MariaDB ignores case and
        accents when it compares the ids of projects.

        :param records: the packages that ``_usable`` has found.
        :param package: as in ``find_usable``.
        """
        for record in records:
            is_open = record.visibility == "public" or (
                record.visibility == image_queries.COMMUNITY and record.id == package
            )
            projects = {record.owner, *self._members.get(record.id, ())}
            if is_open or self.viewer.is_admin or self.viewer.project_id in projects:
                yield record

    def _with_visible_members(self, record: PackageRecord) -> PackageRecord:
        """Return a package with only those members that Glance shows to the viewer."""
        if self.viewer.is_admin or record.owner == self.viewer.project_id:
            return record
        return record._replace(members=record.members & {self.viewer.project_id or ""})

    def find_candidates(self, names: Iterable[str]) -> Iterator[PackageRecord]:
        """Find active packages, and drafts with an archive, by name. They may be of any project."""
        return self._records(self._reader.look_up(_BY_NAME, image_queries.CANDIDATES, names))

    def find_namesakes(self, keys: Iterable[PackageVersion]) -> Iterator[PackageRecord]:
        """Find the packages of all projects with given names and versions.

        Deleted packages, and drafts that have no archive, are left out.
        """
        wanted = set(keys)
        names, versions = {key.fqn for key in wanted}, sorted({str(key.version) for key in wanted})
        rows = self._reader.look_up(_BY_NAME, image_queries.NAMESAKES, names, versions=versions)
        return (record for record in self._records(rows) if record.key in wanted)

    def find_metadata(self, ids: Iterable[str]) -> dict[str, PackageMetadata]:
        """Return the metadata of packages, by id.

        :raises UnreadablePackages: if the metadata of some packages cannot be read.
        """
        wanted = set(ids)
        found: dict[str, dict[str, str]] = collections.defaultdict(dict)
        sizes = {}
        for row in self._reader.look_up(_METADATA, image_queries.METADATA, wanted):
            found[row.image_id][row.name] = row.value
            sizes[row.image_id] = row.size
        read = {}
        for id_, values in self.budget.watch(found.items(), _METADATA):
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
        """Return the requirements of packages: id of the package -> FQN -> range.

        Packages whose requirements are malformed are left out.
        """
        step = "reading requirements"
        found = self._values(step, images.REQUIREMENTS, ids)
        return dict(_readable(self.budget.watch(found.items(), step), images.REQUIREMENTS))

    def find_yanked(self, ids: Iterable[str]) -> dict[str, str]:
        """Return why packages are yanked: id of the yanked package -> reason."""
        wanted = set(ids)
        unknown = wanted - self._yanked.keys()
        found = self._values("looking up yanked packages", images.YANKED, unknown)
        read = {**self._yanked, **found}
        return {id_: read[id_] for id_ in wanted if read.get(id_)}

    def find_defining(self, class_names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Find visible, active packages that define classes: pairs of class name and package id."""
        wanted = set(class_names)
        step = "looking up classes"
        for record, classes in self._listed_to_viewer(step, images.CLASSES, wanted):
            for name in wanted.intersection(classes):
                yield name, record.id

    def find_listed(
        self, selection: Selection, names: Iterable[str] | None = None
    ) -> Iterator[PackageRecord]:
        """Find the packages that the viewer sees in lists and that meet the conditions.

        Other packages may be found as well, so the caller has to check the conditions again.
        """
        rows = self._list(image_lists.listed(selection, self.viewer, names))
        for record in map(self._with_visible_members, self._records(rows)):
            if selection.yanked in (None, bool(self._yanked[record.id])):
                yield record

    def find_names(self, selection: Selection, names: NameRange, limit: int) -> list[str]:
        """Find the names of the packages that ``find_listed`` finds, sorted by the database.

        The result can also contain names for which ``find_listed`` finds no package. For example,
        if only packages that are not yanked are listed, a name whose packages are all yanked can
        be in the result.
        """
        statement = image_lists.sorted_names(selection, self.viewer, names)
        return [row.name for row in self._list(statement.limit(limit))]

    def find_fields(self, ids: Iterable[str], names: Collection[str]) -> dict[str, dict[str, Any]]:
        """Return fields of packages: id of the package -> name of the field -> value.

        Packages with malformed properties are left out. The result never has the field of the
        archive.
        """
        wanted = list(ids)
        stored = {each for name in names for each in images.property_names(name)}
        properties: dict[str, dict[str, str]] = {id_: {} for id_ in wanted}
        for row in self._reader.look_up(
            _FIELDS, image_lists.PROPERTY_VALUES, wanted, names=list(stored)
        ):
            if row.name in stored:
                properties[row.image_id][row.name] = row.value
        found = dict(readable_fields(self.budget.watch(properties.items(), _FIELDS), names))
        if columns := image_lists.COLUMNS.keys() & names:
            for row in self._reader.look_up(_FIELDS, image_lists.ATTRIBUTES, found):
                found[row.id] |= {name: row._mapping[name] for name in columns}
        return found

    def find_extending(self, base_names: Iterable[str]) -> Iterator[ExtendingRecord]:
        """Find visible, active packages that define direct subclasses of given classes."""
        wanted = set(base_names)
        step = "looking up subclasses"
        for record, inherits in self._listed_to_viewer(step, images.INHERITS, wanted):
            for base in wanted.intersection(inherits):
                yield ExtendingRecord(base, record.id, record.key, inherits[base].split(","))

    def find_dependents(self, name: str, owner: str | None) -> Iterator[DependentsRecord]:
        """Find the active packages that require a package, and return them in groups.

        A package's requirement on itself does not count.

        :param owner: the project whose packages are searched; None to search all projects.
        """
        requiring = self._requiring[name] = [
            (record, requirements[name])
            for record, requirements in self._listed(
                _DEPENDENTS, images.REQUIREMENTS, {name}, image_queries.BY_ID
            )
            if name in requirements and record.name != name and owner in (None, record.owner)
        ]
        groups = {
            DependentsRecord(range_, record.owner, record.visibility)
            for record, range_ in requiring
        }
        yield from self.budget.watch(groups, _DEPENDENTS)

    def find_requiring(
        self, name: str, group: DependentsRecord, limit: int
    ) -> Iterator[PackageVersion]:
        """Find the packages in a group of dependents that ``find_dependents`` has returned.

        :param limit: the largest number of packages to find.
        """
        keys = (
            record.key
            for record, range_ in self.budget.watch(self._requiring[name], _DEPENDENTS)
            if DependentsRecord(range_, record.owner, record.visibility) == group
        )
        return (key for key, _ in zip(keys, range(limit), strict=False))

    def _usable(self, column: str) -> Any:
        return image_queries.usable(
            column, self.viewer.is_admin, self.viewer.project_id is not None
        )

    def _list(self, statement: Any) -> list[Row]:
        """Execute a statement for a list of packages, and return its rows."""
        return self._reader.read(_LISTING, statement, project=self.viewer.project_id or "")

    def _values(self, step: str, name: str, ids: Iterable[str]) -> dict[str, str]:
        """Return the values of a property: id of the image -> value.

        :param step: what the request does, for the message if its time is over.
        :param name: the name of the property.
        """
        rows = self._reader.look_up(step, image_queries.VALUES, ids, property=name)
        return {row.image_id: row.value for row in rows if row.name == name}

    def _listed(
        self, step: str, name: str, wanted: set[str], statement: Any
    ) -> Iterator[tuple[PackageRecord, Any]]:
        """Yield active packages whose list or mapping contains a wanted name.

        :param step: what the request does, for the message if its time is over.
        :param name: the property with the list or mapping.
        :param wanted: the wanted names.
        :param statement: a statement that finds packages by their ids.
        :returns: each package, and its list or mapping.
        """
        if not wanted:
            return
        # The database first searches the text of the properties, since few packages match.
        texts = {
            row.image_id: row.value
            for statement in image_queries.lists(wanted)
            for row in self._reader.read(step, statement, property=name)
            if row.name == name
        }
        readable = _readable(self.budget.watch(texts.items(), step), name)
        values = {id_: value for id_, value in readable if not wanted.isdisjoint(value)}
        project = self.viewer.project_id or ""
        rows = self._reader.look_up(step, statement, values, package=None, project=project)
        for record in self._records(rows):
            if record.status == images.ACTIVE:
                yield record, values[record.id]

    def _listed_to_viewer(
        self, step: str, name: str, wanted: set[str]
    ) -> Iterator[tuple[PackageRecord, Any]]:
        """Yield the same pairs as ``_listed``, but only for packages that the viewer sees."""
        for record, found in self._listed(step, name, wanted, self._usable("id")):
            for seen in self._seen([record]):
                yield seen, found

    def _records(self, rows: Iterable[Row]) -> Iterator[PackageRecord]:
        """Yield the package of each row.

        A package is left out if its version or id is not valid, or if it is in ``left_out``.
        """
        rows = list(rows)
        members = self.find_members(
            row.id for row in rows if row.visibility == image_queries.SHARED
        )
        for row in self.budget.watch(rows, _BY_NAME):
            imported = _valid(row, row.version) if row.version_name == images.VERSION else None
            # Glance accepts any name for a draft.
            version = imported or (_valid(row, row.own_version) if _is_fqn(row.name) else None)
            if version and row.id not in self._left_out:
                is_yanked = row.yanked and row.yanked_name == images.YANKED
                self._yanked[row.id] = row.yanked if is_yanked else ""
                yield PackageRecord(
                    row.id,
                    PackageVersion(row.name, version),
                    row.owner,
                    row.visibility,
                    _status(row) if imported else DRAFTED,
                    frozenset(members.get(row.id, ())),
                    # The key contains the time, since a new image can get the id of a purged image.
                    f"{row.id} {row.created_at}" if _is_published(row) else "",
                )

    def find_members(self, ids: Iterable[str]) -> Mapping[str, set[str]]:
        """Return the projects that have accepted a shared image, by the id of the image."""
        found: dict[str, set[str]] = collections.defaultdict(set)
        step = "looking up members"
        for row in self._reader.look_up(step, image_queries.MEMBERS_OF, ids):
            self._members[row.image_id].add(row.member)
            if row.status == ACCEPTED:
                found[row.image_id].add(row.member)
        return found


def _valid(row: Row, text: str | None) -> Version | None:
    """Parse the version of a package, and check that the id of the image follows from it.

    :param row: the row of the image.
    :param text: the version; None if the image has no version.
    :returns: the version. The result is None if the version is missing or not valid, or if the name
        or the owner of the image was changed.
    """
    version = _version(text) if text else None
    is_valid = version and row.owner and images.image_id(row.owner, row.name, version) == row.id
    return version if is_valid else None


def _is_fqn(name: str) -> bool:
    try:
        return bool(check_fqn(name))
    except InvalidName:
        return False


def _status(row: Row) -> str:
    """Return the status of a package, with the names that Glare uses.

    A package is a draft until it is published, even if its image is active.
    """
    if row.status == images.DEACTIVATED:
        return images.DEACTIVATED
    return images.ACTIVE if row.status == images.ACTIVE and _is_published(row) else DRAFTED


def _is_published(row: Row) -> bool:
    return bool(row.published) and row.published_name == images.PUBLISHED


# Versions are cached, since most packages share a few versions.
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
    images.INHERITS: images.inherits,
}


def _readable(texts: Iterable[tuple[str, str]], name: str) -> Iterator[tuple[str, Any]]:
    """Parse the list or the mapping in a property of each image.

    Images with a malformed property are left out.

    :param texts: pairs of an image's id and the text of the property.
    :param name: the name of the property.
    :returns: pairs of an image's id and the parsed list or mapping.
    """
    for id_, text in texts:
        try:
            yield id_, _READ[name](text)
        except GlareMuranoError as error:
            LOG.warning("Image %s is left out: %s", id_, error)


def readable_fields(
    properties: Iterable[tuple[str, Mapping[str, str]]], names: Collection[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read fields of packages from the properties of their images.

    Images with malformed properties are left out.

    :param properties: pairs of an image's id and all properties of the image.
    :param names: the names of the fields.
    :returns: pairs of an image's id and a mapping: name of a field -> value.
    """
    for id_, of_image in properties:
        try:
            yield id_, images.fields_of(of_image, names)
        except GlareMuranoError as error:
            LOG.warning("Image %s is left out: %s", id_, error)
