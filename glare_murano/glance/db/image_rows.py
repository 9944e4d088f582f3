# SPDX-License-Identifier: Apache-2.0

"""Images in Glance's tables, for requests and imports that change or download packages.

This module writes below Glance's API, since property protections forbid its changes to everybody.
"""

import dataclasses
import datetime
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from glare_murano import images
from glare_murano.glance import internals
from glare_murano.glance.db.image_tables import ACCEPTED, IMAGES, LOCATIONS, MEMBERS, PROPERTIES
from glare_murano.package import GlareMuranoError
from glare_murano.service.refusals import RefusedRequest, conflict


@dataclasses.dataclass(frozen=True)
class ImageRow:
    """An image in the database; the image of a package implements ``requirement_checks.Checked``.

    :param attributes: the attributes of ``glance.domain.Image``.
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
        """The version of the package; empty before the import."""
        return self.properties.get(images.VERSION, "")

    @property
    def owner(self) -> str:
        """The project that owns the image."""
        return self.attributes["owner"] or ""

    @property
    def status(self) -> str:
        """The status of the image, in Glance's words."""
        return str(self.attributes["status"])

    @property
    def visibility(self) -> str:
        """The visibility of the image, in Glance's words."""
        return str(self.attributes["visibility"])

    @property
    def requirements(self) -> dict[str, str]:
        """The requirements of the package: FQN -> range.

        :raises RefusedRequest: if the stored requirements are not valid.
        """
        try:
            return images.requirements(self.properties.get(images.REQUIREMENTS, "{}"))
        except GlareMuranoError as error:
            raise self._unreadable(error) from error

    @property
    def class_definitions(self) -> list[str]:
        """The names of the package's classes.

        :raises RefusedRequest: if the stored names are not valid.
        """
        try:
            return images.classes(self.properties.get(images.CLASSES, "[]"))
        except GlareMuranoError as error:
            raise self._unreadable(error) from error

    @property
    def updated_at(self) -> datetime.datetime:
        """The time of the last change of the image, in UTC."""
        found: datetime.datetime = self.attributes["updated_at"]
        return found

    @property
    def is_package(self) -> bool:
        """Whether the image is one of a package."""
        return bool(self.attributes["container_format"] == images.CONTAINER_FORMAT)

    @property
    def is_published(self) -> bool:
        """Whether the package was published; its image may have been deactivated since."""
        return bool(self.properties.get(images.PUBLISHED))

    @property
    def is_valid(self) -> bool:
        """Whether the image was imported, and still has the same owner and name."""
        is_same = self.id == images.image_id(self.owner, self.name, self.version)
        return is_same and self.version != ""

    @property
    def is_release(self) -> bool:
        """Whether the package is a release: active, published and unchanged."""
        return self.status == images.ACTIVE and self.is_published and self.is_valid

    def _unreadable(self, error: GlareMuranoError) -> RefusedRequest:
        return conflict(f"{self} ({self.id}): {error}; publish another version, from its archive")

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def check_imported(row: ImageRow) -> None:
    """Check that a package was imported, and is active under the same name and project.

    :raises RefusedRequest: with the reason, if it is not.
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
    """Find the images of packages in any project, in the order of the ids.

    :param project_id: the caller's project, which may be a member of the images.
    """
    is_package = IMAGES.c.container_format == images.CONTAINER_FORMAT
    found = {row.id: row for row in _read(connection, ids, project_id, is_package)}
    return [found[id_] for id_ in dict.fromkeys(ids) if id_ in found]


def find_image(image_id: str) -> ImageRow | None:
    """Return an image of any owner and format, as it is at this moment; None if it is missing.

    Some databases ignore the case of the id.
    """
    with internals.reading() as connection:
        return next(_read(connection, [image_id], None), None)


def _read(
    connection: Connection, ids: Collection[str], project_id: str | None, *conditions: Any
) -> Iterator[ImageRow]:
    is_found = sa.and_(IMAGES.c.id.in_(list(ids)), IMAGES.c.deleted == sa.false(), *conditions)
    rows = {row.id: row for row in connection.execute(sa.select(IMAGES).where(is_found))}
    values: dict[str, dict[str, str]] = {id_: {} for id_ in rows}
    is_property = sa.and_(PROPERTIES.c.image_id.in_(list(rows)), PROPERTIES.c.deleted == sa.false())
    columns = (PROPERTIES.c.image_id, PROPERTIES.c.name, PROPERTIES.c.value)
    for row in connection.execute(sa.select(*columns).where(is_property)):
        values[row.image_id][row.name] = row.value
    is_member = sa.and_(
        MEMBERS.c.image_id.in_(list(rows)),
        MEMBERS.c.member == project_id,
        MEMBERS.c.deleted == sa.false(),
    )
    shared = set(connection.execute(sa.select(MEMBERS.c.image_id).where(is_member)).scalars())
    for id_, row in rows.items():
        yield ImageRow(_attributes(row, project_id if id_ in shared else None), values[id_])


def _attributes(row: Any, member: str | None) -> dict[str, Any]:
    values = {name: value for name, value in row._mapping.items() if name != "deleted"}
    return {"image_id": values.pop("id"), **values, "member": member}


def find_accepted(connection: Connection, image_id: str, project_id: str) -> set[str]:
    """Return the member that a request names, if the member has accepted the image.

    :param project_id: the member, as in the request. Some databases ignore case and accents.
    """
    is_member = sa.and_(
        MEMBERS.c.image_id == image_id,
        MEMBERS.c.member == project_id,
        MEMBERS.c.status == ACCEPTED,
        MEMBERS.c.deleted == sa.false(),
    )
    return set(connection.execute(sa.select(MEMBERS.c.member).where(is_member)).scalars())


def find_locations(connection: Connection, ids: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return the first location of each image: id -> URL and store."""
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


def find_namesakes(connection: Connection, rows: Collection[ImageRow]) -> set[str]:
    """Return the ids of all images in any project that have a package's name and version."""
    wanted = {(row.name, row.version) for row in rows}
    statement = sa.select(IMAGES.c.id, IMAGES.c.name, PROPERTIES.c.value).where(
        IMAGES.c.name.in_([name for name, _ in wanted]),
        IMAGES.c.container_format == images.CONTAINER_FORMAT,
        IMAGES.c.deleted == sa.false(),
        PROPERTIES.c.image_id == IMAGES.c.id,
        PROPERTIES.c.name == images.VERSION,
        PROPERTIES.c.deleted == sa.false(),
    )
    found = connection.execute(statement)
    return {row.id for row in found if (row.name, row.value) in wanted}


def find_lost(connection: Connection, names: Mapping[str, str], project_id: str) -> set[str]:
    """Return the ids of packages that the project does not have and cannot create.

    Either a deleted release had such an id: Glance keeps its row until an administrator purges
    the row. Or another image has the id, from a time before new images were checked.

    :param names: id -> FQN.
    """
    columns = (IMAGES.c.id, IMAGES.c.name, IMAGES.c.owner, IMAGES.c.container_format)
    statement = sa.select(*columns, IMAGES.c.deleted).where(IMAGES.c.id.in_(list(names)))
    lost = set()
    for row in connection.execute(statement):
        # MariaDB ignores case in ids.
        id_ = row.id.lower()
        package = (names[id_], project_id, images.CONTAINER_FORMAT)
        if row.deleted or (row.name, row.owner, row.container_format) != package:
            lost.add(id_)
    return lost


def lock(connection: Connection, ids: Collection[str]) -> None:
    """Lock images until the end of the transaction.

    Call this before any other statement of the transaction: then the transaction sees the
    images as the last transaction has left them. In SQLite, this locks the whole database.
    """
    for id_ in sorted(ids):
        statement = sa.update(IMAGES).where(IMAGES.c.id == id_)
        connection.execute(statement.values(status=IMAGES.c.status))


def cancel_import(connection: Connection, image: ImageRow, drop: Collection[str]) -> bool:
    """Restore an image to its state before the staging or the import.

    A process that still works on the image loses Glance's lock, and cannot activate the image.

    :param image: the image as read before.
    :param drop: names of further properties to delete.
    :returns: False, without any change, if the image has changed meanwhile.
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
    # If there are several stores, some may have the data already.
    connection.execute(sa.delete(LOCATIONS).where(LOCATIONS.c.image_id == image.id))
    return True


def set_property(connection: Connection, image_id: str, name: str, value: str) -> None:
    """Write a property of a locked image."""
    now = _now()
    is_property = sa.and_(PROPERTIES.c.image_id == image_id, PROPERTIES.c.name == name)
    # MariaDB ignores case and accents: it may find a property whose name the owner has spelled in
    # another way. So the name is written as well.
    values = {"name": name, "value": value, "deleted": False, "deleted_at": None, "updated_at": now}
    updated = connection.execute(sa.update(PROPERTIES).where(is_property).values(values))
    if not updated.rowcount:
        row = {**values, "image_id": image_id, "created_at": now}
        connection.execute(sa.insert(PROPERTIES).values(row))
    _touch(connection, image_id)


def delete_property(connection: Connection, image_id: str, name: str) -> None:
    """Delete a property of a locked image, as Glance does."""
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
