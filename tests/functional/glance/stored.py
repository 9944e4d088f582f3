# SPDX-License-Identifier: Apache-2.0

"""Packages written directly into Glance's database and store, as if published long ago."""

import collections
import contextlib
import dataclasses
import datetime
import hashlib
import io
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import sqlalchemy

from glare_murano import images
from glare_murano.package import Archive, Contents, read_contents
from glare_murano.stored_contents import StoredContents
from tests import packages
from tests.functional.glance import service
from tests.functional.glance.service import Glance

PUBLISHED_AT = "2026-01-01T00:00:00Z"
NOW = datetime.datetime(2026, 1, 1)
# The tables of Glance's images -> the column of the id.
_TABLES = {
    "images": "id",
    "image_properties": "image_id",
    "image_locations": "image_id",
    "image_members": "image_id",
    "image_tags": "image_id",
}
_TIMES = {"created_at": NOW, "updated_at": NOW, "deleted": False}


@dataclasses.dataclass(frozen=True)
class Package:
    """A package, and the image that keeps it.

    :param archive: its data; without any, it cannot be downloaded.
    :param members: the projects that it is shared with, and their statuses.
    :param changed: columns of the image that are other than usual.
    :param properties: properties beside those of the archive, or in place of them.
    """

    contents: Contents
    owner: str
    visibility: str = "private"
    archive: bytes = b""
    members: Mapping[str, str] = dataclasses.field(default_factory=dict)
    changed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    properties: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def id(self) -> str:
        """The id of the image."""
        manifest = self.contents.manifest
        return images.image_id(self.owner, manifest.fqn, manifest.version)


def package(archive: bytes, owner: str, visibility: str = "private", **others: Any) -> Package:
    """Return the package in an archive."""
    with Archive.open(io.BytesIO(archive)) as opened:
        return Package(read_contents(opened), owner, visibility, archive, **others)


@contextlib.contextmanager
def running(folder: pathlib.Path, *arguments: Any, **options: Any) -> Iterator[Glance]:
    """Run a Glance with a public core library; arguments as for :func:`service.running`."""
    with service.running(folder, *arguments, **options) as glance:
        store(glance, [package(packages.package("io.murano", "0.0.0"), "core", "public")])
        yield glance


def store(glance: Glance, written: Iterable[Package]) -> None:
    """Write packages into an idle Glance."""
    rows: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    for each in written:
        for table, found in _rows(glance, each).items():
            rows[table] += found
        (glance.folder / "images" / each.id).write_bytes(each.archive)
    _insert(glance, rows)


def write_property(glance: Glance, image_id: str, name: str, value: str) -> None:
    """Write a property into an idle Glance that nobody may write."""
    row = {"image_id": image_id, "name": name, "value": value, **_TIMES}
    _insert(glance, {"image_properties": [row]})


@contextlib.contextmanager
def deleted_before_reservation(glance: Glance, image_id: str) -> Iterator[None]:
    """Let SQLite delete a draft before a request reserves it, as another request can then."""
    deleted = (
        f"DELETE FROM image_properties WHERE image_id = '{image_id}';"
        f"DELETE FROM images WHERE id = '{image_id}';"
    )
    reservation = f"NEW.image_id = '{image_id}' AND NEW.name = 'os_glance_murano_reservation'"
    trigger = f"BEFORE INSERT ON image_properties WHEN {reservation} BEGIN {deleted} END"
    with glance.connection() as connection:
        connection.exec_driver_sql(f"CREATE TRIGGER deletion {trigger}")
    yield
    with glance.connection() as connection:
        connection.exec_driver_sql("DROP TRIGGER deletion")


def count_rows(glance: Glance, image_id: str) -> dict[str, int]:
    """Return how many rows each table has of an image, without those tables that have none."""
    counts = {}
    with glance.connection() as connection:
        for name, column in _TABLES.items():
            table = sqlalchemy.table(name, sqlalchemy.column(column))
            count = sqlalchemy.select(sqlalchemy.func.count()).select_from(table)
            counts[name] = connection.execute(count.where(table.c[column] == image_id)).scalar_one()
    return {name: count for name, count in counts.items() if count}


def activate(glance: Glance, image_id: str, size: int) -> None:
    """Make an image active in an idle Glance, as if its data had been stored."""
    table = sqlalchemy.table("images", *map(sqlalchemy.column, ("id", "status", "size")))
    with glance.connection() as connection:
        statement = sqlalchemy.update(table).where(table.c.id == image_id)
        connection.execute(statement.values(status="active", size=size))


def _insert(glance: Glance, rows: Mapping[str, list[dict[str, Any]]]) -> None:
    """Insert rows into tables, by the names of the tables."""
    metadata = sqlalchemy.MetaData()
    with glance.connection() as connection:
        metadata.reflect(connection, only=list(rows))
        for table, found in rows.items():
            if found:
                connection.execute(metadata.tables[table].insert(), found)


def _rows(glance: Glance, package: Package) -> Mapping[str, list[dict[str, Any]]]:
    digest = hashlib.sha256(package.archive or package.id.encode()).hexdigest()
    image = {
        "id": package.id,
        "name": package.contents.manifest.fqn,
        "owner": package.owner,
        "visibility": package.visibility,
        "status": "active",
        "container_format": images.CONTAINER_FORMAT,
        "disk_format": images.DISK_FORMAT,
        "size": len(package.archive),
        "checksum": hashlib.md5(package.archive).hexdigest(),
        "os_hash_algo": "sha512",
        "os_hash_value": hashlib.sha512(package.archive).hexdigest(),
        "os_hidden": True,
        "min_disk": 0,
        "min_ram": 0,
        "protected": False,
        **_TIMES,
        **package.changed,
    }
    properties = {
        **images.properties(StoredContents.of(package.contents), digest),
        images.PUBLISHED: PUBLISHED_AT,
        **package.properties,
    }
    location = {
        "value": f"file://{glance.folder / 'images' / package.id}",
        "meta_data": '{"store": "files"}',
        "status": "active",
    }
    members = [
        {"member": member, "status": status, "can_share": False}
        for member, status in package.members.items()
    ]
    return {
        "images": [image],
        "image_properties": [
            {"image_id": package.id, "name": name, "value": value, **_TIMES}
            for name, value in properties.items()
        ],
        "image_locations": [{"image_id": package.id, **location, **_TIMES}],
        "image_members": [{"image_id": package.id, **each, **_TIMES} for each in members],
    }
