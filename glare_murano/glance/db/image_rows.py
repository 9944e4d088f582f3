# SPDX-License-Identifier: Apache-2.0

"""Read, lock and change images in Glance's tables, for requests and imports of packages.

This module writes to the tables without Glance's API. The API would refuse these changes, since the
property protections forbid them, even to administrators.
"""

import dataclasses
import datetime
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from glare_murano import images, selection
from glare_murano.glance import internals
from glare_murano.glance.db.image_tables import IMAGES, LOCATIONS, MEMBERS, PROPERTIES
from glare_murano.glance.options import SETTINGS
from glare_murano.package import GlareMuranoError
from glare_murano.service import package_locks
from glare_murano.service.package_locks import PackageLocks
from glare_murano.service.refusals import conflict

_Parsed = TypeVar("_Parsed")

# The length up to which the values of all properties are read. The rules of Glance's policies may
# compare any property with a name or an id, which has at most 255 characters of up to four bytes.
_MAX_COMPARED = 1024
_IS_PACKAGE = IMAGES.c.container_format == images.CONTAINER_FORMAT
_EVERY = sa.true()


class Deletion(NamedTuple):
    """A deletion that has begun. It may still be running, or may have been interrupted.

    The deletion is stored in the property ``internals.DELETION`` of the image.

    :ivar begun_at: when the deletion began.
    :ivar published: the value that the property ``images.PUBLISHED`` had before the deletion; empty
        for a draft.
    """

    begun_at: datetime.datetime
    published: str

    def __str__(self) -> str:
        return f"{self.begun_at.isoformat()} {self.published}"

    @classmethod
    def read(cls, properties: Mapping[str, str]) -> "Deletion | None":
        """Read the deletion that is stored in an image's properties; None without a deletion."""
        text = properties.get(internals.DELETION)
        if not text:
            return None
        begun_at, _, published = text.partition(" ")
        return cls(datetime.datetime.fromisoformat(begun_at), published)


@dataclasses.dataclass(frozen=True)
class ImageRow:
    """An image in the database. The image of a package implements ``requirement_checks.Checked``.

    :param attributes: the values of the attributes of ``glance.domain.Image``, and ``member``: the
        caller's project if the image is shared with this project, and otherwise None.
    :param properties: the properties of the image.
    """

    attributes: Mapping[str, Any]
    properties: Mapping[str, str]

    @property
    def id(self) -> str:
        """The id of the image."""
        return str(self.attributes["image_id"])

    @property
    def name(self) -> str:
        """The FQN of the package."""
        return self.attributes["name"] or ""

    @property
    def version(self) -> str:
        """The version of the package; empty before its import."""
        return self.properties.get(images.VERSION, "")

    @property
    def owner(self) -> str:
        """The project that owns the image."""
        return self.attributes["owner"] or ""

    @property
    def status(self) -> str:
        """The status of the image, in Glance's terms."""
        return str(self.attributes["status"])

    @property
    def visibility(self) -> str:
        """The visibility of the image, in Glance's terms."""
        return str(self.attributes["visibility"])

    @property
    def requirements(self) -> dict[str, str]:
        """The requirements of the package: FQN -> range.

        :raises RefusedRequest: if the stored requirements are not valid.
        """
        return self._parsed(images.requirements, images.REQUIREMENTS, "{}")

    @property
    def class_definitions(self) -> list[str]:
        """The names of the package's classes.

        :raises RefusedRequest: if the stored names are not valid.
        """
        return self._parsed(images.classes, images.CLASSES, "[]")

    @property
    def inherits(self) -> dict[str, str]:
        """The base classes: base class -> the package's direct subclasses, joined by commas.

        :raises RefusedRequest: if the stored names are not valid.
        """
        return self._parsed(images.inherits, images.INHERITS, "{}")

    @property
    def updated_at(self) -> datetime.datetime:
        """The time of the last change of the image, in UTC."""
        found: datetime.datetime = self.attributes["updated_at"]
        return found

    @property
    def is_package(self) -> bool:
        """Whether the image has the container format of packages."""
        return bool(self.attributes["container_format"] == images.CONTAINER_FORMAT)

    @property
    def is_published(self) -> bool:
        """Whether the package was published. Its image may have been deactivated later."""
        return bool(self.properties.get(images.PUBLISHED))

    @property
    def is_being_deleted(self) -> bool:
        """Whether a request is deleting the package.

        A request that began more than ``import_timeout`` seconds ago is assumed to be interrupted.
        """
        deletion = Deletion.read(self.properties)
        if deletion is None:
            return False
        age = datetime.datetime.now(datetime.UTC) - deletion.begun_at
        return age < datetime.timedelta(seconds=SETTINGS["import_timeout"])

    @property
    def is_valid(self) -> bool:
        """Whether the image was imported, and still has the owner and name that it had then."""
        is_same = self.id == images.image_id(self.owner, self.name, self.version)
        return is_same and "" not in (self.owner, self.version)

    @property
    def state(self) -> str:
        """The state of the package, which is a constant of ``selection``, such as ``ACTIVE``."""
        if not self.is_published or not self.is_valid:
            return selection.DRAFTED
        return _STATES.get(self.status, selection.DRAFTED)

    @property
    def is_release(self) -> bool:
        """Whether the package is active: imported, published and not deactivated."""
        return self.state == selection.ACTIVE

    def _parsed(self, parse: Callable[[str], _Parsed], name: str, default: str) -> _Parsed:
        """Return the parsed value of a property.

        :param parse: a function that parses the value.
        :param name: the name of the property.
        :param default: the text to parse if the property is missing.
        :raises RefusedRequest: if the value is not valid.
        """
        try:
            return parse(self.properties.get(name, default))
        except GlareMuranoError as error:
            remedy = "publish another version, from its archive"
            raise conflict(f"{self} ({self.id}): {error}; {remedy}") from error

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


_STATES = {
    images.ACTIVE: selection.ACTIVE,
    images.DEACTIVATED: selection.DEACTIVATED,
}


def was_published(properties: Iterable[tuple[str, str]]) -> bool:
    """Return whether a package was ever published.

    :param properties: the names and values of all properties of the image. They include deleted
        properties.
    """
    values = list(properties)
    deletions = (Deletion.read(dict([each])) for each in values)
    return any(name == images.PUBLISHED and value for name, value in values) or any(
        each and each.published for each in deletions
    )


def check_imported(row: ImageRow) -> None:
    """Check that the image of a package is active, and has the name and owner of its import.

    :raises RefusedRequest: if the package is deactivated, has no archive, or has another name or
        owner now.
    """
    if row.status == images.DEACTIVATED:
        raise conflict(f"{row} is deactivated; publish another version")
    if row.status != images.ACTIVE:
        raise conflict(f"{row.name} ({row.id}) has no archive yet; upload it first")
    if not row.is_valid:
        raise conflict(
            f"image {row.id} is not the package that was imported: its name or its project has "
            f"changed; publish the package again from its archive"
        )


def find(connection: Connection, ids: Collection[str], project_id: str | None) -> list[ImageRow]:
    """Find packages by the ids of their images, in any project.

    :param project_id: the caller's project, for the attribute ``member`` of the packages.
    :returns: the found packages, in the order of the ids.
    """
    return _in_order(ids, _read(connection, ids, project_id, _IS_PACKAGE))


def find_for_list(
    connection: Connection, ids: Collection[str], project_id: str | None, names: Collection[str]
) -> list[ImageRow]:
    """Find packages as ``find`` does, without the long values of most properties.

    The owner of an image may write a hundred properties with long values, and a list may have many
    images.

    :param names: the names of the properties whose long values are read. The short values of all
        properties are read, since a rule of Glance's policies may compare them.
    """
    is_short = sa.func.length(PROPERTIES.c.value) <= _MAX_COMPARED
    is_read = sa.or_(is_short, PROPERTIES.c.name.in_(sorted(names)))
    return _in_order(ids, _read(connection, ids, project_id, _IS_PACKAGE, is_read))


def _in_order(ids: Iterable[str], rows: Iterable[ImageRow]) -> list[ImageRow]:
    found = {row.id: row for row in rows}
    return [found[id_] for id_ in dict.fromkeys(ids) if id_ in found]


def find_image(image_id: str) -> ImageRow | None:
    """Return an image of any owner and format, read in a new transaction; None if it is missing.

    Some databases ignore the case of the id, so the found image can have the id in another case.
    """
    with internals.reading() as connection:
        return next(_read(connection, [image_id], None), None)


def _read(
    connection: Connection,
    ids: Collection[str],
    project_id: str | None,
    is_wanted: Any = _EVERY,
    is_read: Any = _EVERY,
) -> Iterator[ImageRow]:
    """Read images by their ids.

    :param project_id: as in ``find``.
    :param is_wanted: a condition for the images.
    :param is_read: a condition for the properties to read.
    """
    is_found = sa.and_(IMAGES.c.id.in_(list(ids)), IMAGES.c.deleted == sa.false(), is_wanted)
    rows = {row.id: row for row in connection.execute(sa.select(IMAGES).where(is_found))}
    values: dict[str, dict[str, str]] = {id_: {} for id_ in rows}
    is_property = sa.and_(
        PROPERTIES.c.image_id.in_(list(rows)), PROPERTIES.c.deleted == sa.false(), is_read
    )
    columns = (PROPERTIES.c.image_id, PROPERTIES.c.name, PROPERTIES.c.value)
    for row in connection.execute(sa.select(*columns).where(is_property)):
        values[row.image_id][row.name] = row.value
    is_member = sa.and_(
        MEMBERS.c.image_id.in_(list(rows)),
        MEMBERS.c.member == project_id,
        MEMBERS.c.deleted == sa.false(),
    )
    found = connection.execute(sa.select(MEMBERS.c.image_id, MEMBERS.c.member).where(is_member))
    # MariaDB ignores case and accents, and so may have found another project.
    shared = {row.image_id for row in found if row.member == project_id}
    for id_, row in rows.items():
        yield ImageRow(_attributes(row, project_id if id_ in shared else None), values[id_])


def _attributes(row: Any, member: str | None) -> dict[str, Any]:
    values = {name: value for name, value in row._mapping.items() if name != "deleted"}
    return {"image_id": values.pop("id"), **values, "member": member}


def find_locations(connection: Connection, ids: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return the first location of each image's data: id -> URL and name of the store."""
    is_location = sa.and_(
        LOCATIONS.c.image_id.in_(list(ids)),
        LOCATIONS.c.status == images.ACTIVE,
        LOCATIONS.c.deleted == sa.false(),
    )
    found: dict[str, tuple[str, str]] = {}
    for row in connection.execute(sa.select(LOCATIONS).where(is_location).order_by(LOCATIONS.c.id)):
        metadata = json.loads(row.meta_data or "{}")
        found.setdefault(row.image_id, (row.value, metadata.get("store")))
    return found


def find_lost(connection: Connection, names: Mapping[str, str], project_id: str) -> set[str]:
    """Return those ids that a project cannot use for a new package, because they are taken.

    An id can be taken by a deleted package that was published: Glance keeps the row of its image
    until an administrator purges the row. An id can also be taken by an image of another owner,
    name or format that was created before the filter for Glance's API checked new images.

    :param names: the ids to look up: id -> FQN of the package.
    :param project_id: the id of the project that would own the new packages.
    """
    columns = (IMAGES.c.id, IMAGES.c.name, IMAGES.c.owner, IMAGES.c.container_format)
    statement = sa.select(*columns, IMAGES.c.deleted).where(IMAGES.c.id.in_(list(names)))
    lost = set()
    for row in connection.execute(statement):
        # MariaDB ignores case, so the found id may be in another case.
        id_ = row.id.lower()
        package = (names[id_], project_id, images.CONTAINER_FORMAT)
        if row.deleted or (row.name, row.owner, row.container_format) != package:
            lost.add(id_)
    return lost


def lock(connection: Connection, locks: PackageLocks) -> None:
    """Lock images until the end of the transaction.

    Call this before any other statement of the transaction. Then the transaction sees all changes
    of earlier transactions to these images. In SQLite, this locks the whole database.
    """
    if connection.dialect.name == "sqlite":
        # SQLite may refuse to write in a transaction that has read before, so this one begins by
        # writing.
        statement = sa.update(IMAGES).where(IMAGES.c.id.in_(sorted(locks.ids)))
        connection.execute(statement.values(status=IMAGES.c.status))
        return
    package_locks.lock_rows(connection, IMAGES, locks)


def cancel_import(connection: Connection, image: ImageRow, drop: Collection[str]) -> bool:
    """Cancel the staging or the import of an image, and return the image to ``queued``.

    A process that still works on the image loses Glance's lock, and cannot activate the image.

    :param image: the image as it was read before.
    :param drop: the names of properties to delete, besides those in ``internals.PROGRESS``.
    :returns: whether the import was cancelled. If the image was changed after it was read, nothing
        is done, and the result is False.
    """
    is_unchanged = sa.and_(
        IMAGES.c.id == image.id,
        IMAGES.c.status == image.status,
        IMAGES.c.updated_at == image.updated_at,
    )
    values = {"status": internals.QUEUED, **dict.fromkeys(internals.DATA_ATTRIBUTES)}
    statement = sa.update(IMAGES).where(is_unchanged).values(updated_at=_now(), **values)
    if connection.execute(statement).rowcount != 1:
        return False
    is_progress = sa.and_(
        PROPERTIES.c.image_id == image.id, PROPERTIES.c.name.in_([*internals.PROGRESS, *drop])
    )
    connection.execute(sa.delete(PROPERTIES).where(is_progress))
    # With several stores, some of them may already have the data.
    connection.execute(sa.delete(LOCATIONS).where(LOCATIONS.c.image_id == image.id))
    return True


def set_property(connection: Connection, image_id: str, name: str, value: str) -> None:
    """Write a property of a locked image."""
    now = _now()
    is_property = sa.and_(PROPERTIES.c.image_id == image_id, PROPERTIES.c.name == name)
    # MariaDB ignores case and accents. So the found property may be one of the owner, with another
    # spelling of the name, and the name is written as well.
    values = {"name": name, "value": value, "deleted": False, "deleted_at": None, "updated_at": now}
    updated = connection.execute(sa.update(PROPERTIES).where(is_property).values(values))
    if not updated.rowcount:
        row = {**values, "image_id": image_id, "created_at": now}
        connection.execute(sa.insert(PROPERTIES).values(row))
    _touch(connection, image_id)


def delete_property(connection: Connection, image_id: str, name: str) -> None:
    """Mark a property of a locked image as deleted, as Glance does."""
    is_property = sa.and_(PROPERTIES.c.image_id == image_id, PROPERTIES.c.name == name)
    values = {"deleted": True, "deleted_at": _now()}
    connection.execute(sa.update(PROPERTIES).where(is_property).values(values))
    _touch(connection, image_id)


def make_public(connection: Connection, image_id: str) -> None:
    """Make a locked image public."""
    _touch(connection, image_id, visibility="public")


def _touch(connection: Connection, image_id: str, **values: str) -> None:
    statement = sa.update(IMAGES).where(IMAGES.c.id == image_id)
    connection.execute(statement.values(updated_at=_now(), **values))


def _now() -> datetime.datetime:
    # The columns have no time zone.
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
