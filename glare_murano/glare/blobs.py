# SPDX-License-Identifier: Apache-2.0

"""Save and delete blobs in Glare's stores, and find orphans.

An orphan is a blob that is in a store, has no row in Glare's database, and belongs to no running
upload.
"""

import contextlib
import datetime
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import glance_store
from glare.common import exception, store_api
from oslo_config import cfg
from oslo_log import log as logging
from oslo_utils import uuidutils
from sqlalchemy.engine import Connection

from glare_murano import fields
from glare_murano.glare import leases
from glare_murano.glare.db import glare_database
from glare_murano.glare.interfaces import RequestContext
from glare_murano.glare.options import SETTINGS
from glare_murano.package.errors import GlareMuranoError

LOG = logging.getLogger(__name__)

# The names of all of Glare's blobs are UUIDs; a store may add a suffix.
_BLOB_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# The largest difference between the clocks of the stores and of the servers.
_CLOCK_SKEW = datetime.timedelta(minutes=5)
# The defaults of glance_store. Glance may use them for its images.
_GLANCE_DIRECTORY, _GLANCE_CONTAINER = "/var/lib/glance/images", "glance"


class StoreError(GlareMuranoError):
    """Orphans cannot be searched for; the message says why, in one line."""


class StoredBlob(NamedTuple):
    """An object in a store.

    :ivar id: the id of the blob to which the object belongs. A large blob has several objects.
    :ivar url: the URL of the object in the store.
    :ivar size: the size of the object in bytes.
    :ivar modified: when the object was written, in UTC.
    """

    id: str
    url: str
    size: int
    modified: datetime.datetime


def save(context: RequestContext, data: bytes, content_type: str) -> dict[str, Any]:
    """Store a blob, and return its metadata in Glare's form."""
    blob_id = uuidutils.generate_uuid()
    store = SETTINGS["default_store"] or cfg.CONF.glance_store.default_store
    url, size, checksums = store_api.save_blob_to_store(
        blob_id, io.BytesIO(data), context, len(data), store_type=store
    )
    return {
        "id": blob_id,
        "url": url,
        "size": size,
        "status": "active",
        "external": False,
        "content_type": content_type,
        **checksums,
    }


def delete(context: RequestContext, urls: Iterable[str]) -> int:
    """Delete blobs from their stores, and log failures.

    :param urls: the URLs of blobs that have no row in the database.
    :returns: the number of blobs that could not be deleted.
    """
    failed = 0
    for url in urls:
        try:
            store_api.delete_blob(url, context=context)
        except exception.NotFound:
            LOG.debug("The blob %s was deleted already", url)
        except exception.GlareException as error:
            LOG.warning("The blob %s is unused but could not be deleted: %s", url, error)
            failed += 1
    return failed


def find_orphans(now: datetime.datetime) -> tuple[list[StoredBlob], int]:
    """Find orphans in the stores.

    The stores are listed before the database is read. So a listed blob without a row is an orphan,
    or belongs to an upload that is still running. It is returned as an orphan only if it is older
    than every running upload.

    :param now: the present time, in UTC. An upload of a package whose lease ends later is running.
    :returns: the orphans, and the number of newer blobs without rows, which may belong to running
        uploads.
    :raises StoreError: if a store cannot be listed, a store may contain Glance's images, or the
        database is empty.
    """
    stored = [blob for lister in _listers() for blob in lister()]
    with glare_database.snapshot() as connection:
        if glare_database.is_empty(connection):
            raise StoreError("Glare's database has no artifact: check [database] connection")
        begun = _running_since(connection, now)
        urls = glare_database.find_blob_urls(connection)
        known = {blob_id for url in urls for blob_id in _BLOB_ID.findall(url)}
    unknown = [blob for blob in stored if blob.id not in known]
    orphans = [blob for blob in unknown if blob.modified < begun]
    return orphans, len(unknown) - len(orphans)


def _running_since(connection: Connection, now: datetime.datetime) -> datetime.datetime:
    """Return a time that is earlier than the beginning of every running upload.

    Uploads to artifacts of all types count. A blob that is older than the returned time does not
    belong to a running upload.

    :param now: as in ``find_orphans``.
    :returns: the time in UTC; the greatest possible time if no upload is running.
    """
    created = (
        row.created_at
        for row in glare_database.find_uploads(connection)
        if row.type_name != fields.TYPE_NAME or leases.is_running(connection, row.id, now)
    )
    oldest: datetime.datetime | None = min(created, default=None)
    return datetime.datetime.max if oldest is None else oldest - _CLOCK_SKEW


def _listers() -> Iterator[Callable[[], Iterator[StoredBlob]]]:
    for name in set(cfg.CONF.glance_store.stores) - {"http"}:
        if name not in _LISTERS:
            raise StoreError(
                f"the store {name} cannot be listed, only {' and '.join(_LISTERS)} can; compare "
                f"it with the column url of the table glare_artifact_blobs"
            )
        yield _LISTERS[name]


def _list_files() -> Iterator[StoredBlob]:
    store = glance_store.get_store_from_scheme("file")
    if store.multiple_datadirs:
        directories = [each for paths in store.priority_data_map.values() for each in paths]
    else:
        directories = [store.datadir]
    for directory in directories:
        _refuse_shared(directory, _GLANCE_DIRECTORY)
        for entry in os.scandir(directory):
            # A running upload may delete the file.
            with contextlib.suppress(FileNotFoundError):
                if _BLOB_ID.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    found = entry.stat()
                    modified = datetime.datetime.fromtimestamp(found.st_mtime, datetime.UTC)
                    url = f"file://{entry.path}"
                    yield StoredBlob(entry.name, url, found.st_size, modified.replace(tzinfo=None))


def _list_objects() -> Iterator[StoredBlob]:
    """Yield the objects in Swift's container for blobs. A large blob has several objects."""
    options = cfg.CONF.glance_store
    if options.swift_store_multi_tenant or options.swift_store_multiple_containers_seed:
        raise StoreError("several containers of Swift cannot be listed, but only a single one")
    if not options.default_swift_reference:
        raise StoreError("swift_store_config_file and default_swift_reference are not set")
    store = glance_store.get_store_from_scheme("swift+config")
    location = store.create_location("")
    _refuse_shared(location.container, _GLANCE_CONTAINER)
    connection = store.get_connection(location)
    for found in connection.get_container(location.container, full_listing=True)[1]:
        if blob_id := _BLOB_ID.match(found["name"]):
            location.obj = found["name"]
            url = location.get_uri(credentials_included=False)
            modified = datetime.datetime.fromisoformat(found["last_modified"])
            yield StoredBlob(blob_id[0], url, found["bytes"], modified)


def _refuse_shared(place: str, of_glance: str) -> None:
    if place.rstrip("/") == of_glance:
        raise StoreError(
            f"Glance may store its images in {place} as well; configure another one for Glare"
        )


_LISTERS = {"file": _list_files, "swift": _list_objects}
