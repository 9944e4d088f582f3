# SPDX-License-Identifier: Apache-2.0

"""Uploads of archives, and the blobs extracted from archives.

Logos and the form are stored as blobs of their own, before the archive itself is
stored. All of them become visible in one transaction, or are deleted again. If its
process is killed, an upload expires.
"""

import datetime
import io
from collections.abc import Iterable, Mapping
from typing import IO, Any

import glance_store
from glare.common import exception, store_api
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models
from oslo_config import cfg
from oslo_log import log as logging
from oslo_utils import uuidutils
from sqlalchemy import orm

from glare_murano import fields
from glare_murano.glare.interfaces import Artifact, RequestContext
from glare_murano.package import Contents

LOG = logging.getLogger(__name__)


class Upload:
    """An upload of an archive.

    An upload begins when Glare marks the blob as ``saving``; until the mark is
    removed, Glare refuses other uploads, activation and deletion of the artifact.
    Then the blobs in the archive are extracted and stored, and Glare stores the
    archive. In the end the upload is saved, discarded or rolled back.
    """

    def __init__(self, artifact: Artifact, blob: dict[str, Any]) -> None:
        """Begin an upload.

        :param artifact: the artifact with the mark.
        :param blob: the metadata of the archive; Glare adds the URL later.
        """
        names = (fields.ARCHIVE, *(each.name for each in fields.BLOBS))
        before = (getattr(artifact, name) for name in names)
        self._replaced = tuple(each["url"] for each in before if each and each["url"])
        self._blob = blob
        self._archive: IO[bytes] | None = None
        self._contents: Contents | None = None
        self._extracted: dict[str, Mapping[str, Any] | None] = {}
        self._has_ended = False

    @property
    def is_stored(self) -> bool:
        """Whether Glare has stored the archive."""
        return self._blob["url"] not in (None, *self._replaced)

    def has_expired(self) -> bool:
        """Check whether the mark was removed, and the artifact may have changed since."""
        session = database.get_session()
        with session.begin():
            return not _is_marked(session.get(models.ArtifactBlob, self._blob["id"]))

    def extract(self, context: RequestContext, archive: IO[bytes], contents: Contents) -> None:
        """Store the blobs in an archive.

        :param archive: is closed when the upload ends.
        :raises glare.common.exception.GlareException: if the store refuses a blob.
        """
        self._archive, self._contents = archive, contents
        for blob in fields.BLOBS:
            data = blob.fill(contents)
            self._extracted[blob.name] = (
                None if data is None else _store(context, data, blob.content_type)
            )

    def save(self, context: RequestContext, artifact_id: str) -> dict[str, Any]:
        """Save the archive, the blobs and the fields in one transaction.

        :returns: the values of the artifact.
        """
        if self._contents is None:
            raise RuntimeError("the stored archive was not read")
        changes = {
            "blobs": {fields.ARCHIVE: self._blob, **self._extracted},
            "properties": dict(fields.from_contents(self._contents)),
            **fields.common_from_contents(self._contents),
        }
        saved: dict[str, Any] = database.create_or_update(
            context, artifact_id, changes, database.get_session()
        )
        self._end(context, self._replaced)
        return saved

    def discard(self, context: RequestContext) -> None:
        """Delete the stored archive and blobs."""
        stored = [blob["url"] for blob in self._extracted.values() if blob]
        self._end(context, [*stored, self._blob["url"]] if self.is_stored else stored)

    def roll_back(self, context: RequestContext) -> None:
        """Discard the upload and remove the mark, unless the upload has ended.

        Glare locks the artifact again for the stored archive, and leaves archive and
        mark behind if another request holds the lock.
        """
        if self._has_ended:
            return
        self.discard(context)
        session = database.get_session()
        with session.begin():
            blob = session.get(models.ArtifactBlob, self._blob["id"])
            if _is_marked(blob):
                _remove_mark(session, blob)

    def _end(self, context: RequestContext, unused: Iterable[str]) -> None:
        self._has_ended = True
        if self._archive is not None:
            self._archive.close()
        for url in unused:
            _delete(context, url)


def expire(before: datetime.datetime, artifact_id: str | None = None) -> None:
    """Remove the marks of uploads from before a time.

    Killed processes leave marks behind. The artifact returns to its state before the
    upload. If the process is alive after all, its upload changes nothing any more.

    :param before: a time, in UTC.
    :param artifact_id: a single artifact; None for all.
    """
    session = database.get_session()
    with session.begin():
        blobs = (
            session.query(models.ArtifactBlob)
            .join(models.Artifact, models.Artifact.id == models.ArtifactBlob.artifact_id)
            .filter(
                models.Artifact.type_name == fields.TYPE_NAME,
                models.Artifact.updated_at < before,
                models.ArtifactBlob.status == "saving",
            )
        )
        if artifact_id is not None:
            blobs = blobs.filter(models.Artifact.id == artifact_id)
        for blob in blobs.all():
            LOG.warning("The upload of %s to artifact %s has expired", blob.name, blob.artifact_id)
            _remove_mark(session, blob)


def _is_marked(blob: models.ArtifactBlob | None) -> bool:
    return blob is not None and blob.status == "saving"


def _remove_mark(session: orm.Session, blob: models.ArtifactBlob) -> None:
    size = _stored_size(blob.url)
    if size is None:
        session.delete(blob)
    else:
        # Glare has overwritten the size. The new id hides the blob from its upload.
        blob.status, blob.size = "active", size
        blob.id = uuidutils.generate_uuid()


def _stored_size(url: str | None) -> int | None:
    """Return the size of a stored blob in bytes, or None for a missing blob."""
    if url is None:
        return None
    try:
        size: int = glance_store.get_size_from_backend(url)
    except glance_store.NotFound:
        return None
    return size


def _delete(context: RequestContext, url: str) -> None:
    try:
        store_api.delete_blob(url, context=context)
    except exception.NotFound:
        LOG.debug("The blob %s was deleted already", url)
    except exception.GlareException as error:
        LOG.warning("The blob %s is unused but could not be deleted: %s", url, error)


def _store(context: RequestContext, data: bytes, content_type: str) -> dict[str, Any]:
    """Store a blob, and return its metadata in Glare's form."""
    blob_id = uuidutils.generate_uuid()
    options = cfg.CONF[f"artifact_type:{fields.TYPE_NAME}"]
    url, size, checksums = store_api.save_blob_to_store(
        blob_id,
        io.BytesIO(data),
        context,
        len(data),
        store_type=options.default_store or cfg.CONF.glance_store.default_store,
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
