# SPDX-License-Identifier: Apache-2.0

"""What one upload of an archive brings into Glare's store beside the archive.

Logos and the form are taken out of the archive and stored as blobs of their
own, before the archive itself is stored; they become visible together with
it, in one transaction, or are deleted again. What they replace is deleted
after that. What a process leaves that is killed on the way is settled later.
"""

import dataclasses
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

from glare_murano import fields
from glare_murano.package import Contents

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Upload:
    """An archive that has been read and checked, but is not stored yet.

    :param archive: the file that it is in until then.
    :param blobs: name of a field -> what Glare keeps of the blob, or None
        where the package has none.
    :param replaced: where the blobs lie that the artifact had before.
    """

    archive: IO[bytes]
    contents: Contents
    blobs: Mapping[str, Mapping[str, Any] | None]
    replaced: tuple[str, ...]

    def discard(self, context: Any) -> None:
        """Delete what was stored for it."""
        self.archive.close()
        delete(context, (blob["url"] for blob in self.blobs.values() if blob))

    def finish(self, context: Any) -> None:
        """Delete what it has replaced."""
        self.archive.close()
        delete(context, self.replaced)


def prepare(context: Any, af: Any, archive: IO[bytes], contents: Contents) -> Upload:
    """Store what is taken out of an archive.

    :raises glare.common.exception.GlareException: if the store refuses it;
        nothing is left there then.
    """
    blobs: dict[str, Mapping[str, Any] | None] = {}
    names = (fields.ARCHIVE, *(blob.name for blob in fields.BLOBS))
    before = [getattr(af, name) for name in names]
    replaced = tuple(blob["url"] for blob in before if blob and blob["url"])
    upload = Upload(archive, contents, blobs, replaced)
    try:
        for blob in fields.BLOBS:
            data = blob.fill(contents)
            blobs[blob.name] = None if data is None else _store(context, data, blob.content_type)
    except Exception:
        upload.discard(context)
        raise
    return upload


def settle(before: datetime.datetime, artifact_id: str | None = None) -> None:
    """End the uploads that began before some time, and never will by themselves.

    Glare marks a blob while it is uploaded, refuses any other upload, activation
    and deletion meanwhile, and leaves the mark if its process is killed. The
    artifact becomes what it was before the upload; one that goes on nevertheless
    changes nothing any more.

    :param before: a time, in UTC.
    :param artifact_id: of one artifact; of all if it is None.
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
            LOG.warning(
                "Gave up an upload of %s to the artifact %s: its process has ended",
                blob.name,
                blob.artifact_id,
            )
            _give_up(session, blob)


def abandon(context: Any) -> None:
    """Undo the upload of a request that is answered, if it was neither saved nor discarded.

    Glare locks the artifact when the archive is stored, and fails if another
    request has locked it just then.
    """
    upload: Upload | None = getattr(context, "murano_upload", None)
    if upload is None:
        return
    context.murano_upload = None
    upload.discard(context)
    if context.murano_blob["url"] not in (None, *upload.replaced):
        delete(context, [context.murano_blob["url"]])
    session = database.get_session()
    with session.begin():
        blob = session.get(models.ArtifactBlob, context.murano_blob["id"])
        if blob is not None and blob.status == "saving":
            _give_up(session, blob)


def _give_up(session: Any, blob: Any) -> None:
    """Make a blob what it was before its upload."""
    size = _stored_size(blob.url)
    if size is None:
        session.delete(blob)
    else:
        # Glare has overwritten the size of what was there before. The upload
        # knows the blob by its id, and is to find it no more.
        blob.status, blob.size = "active", size
        blob.id = uuidutils.generate_uuid()


def goes_on(blob_id: str) -> bool:
    """Whether an upload has not been given up.

    :param blob_id: of the blob that Glare marked when it began.
    """
    session = database.get_session()
    with session.begin():
        blob = session.get(models.ArtifactBlob, blob_id)
        return blob is not None and blob.status == "saving"


def _stored_size(url: str | None) -> int | None:
    """The size in bytes of what lies in the store; None if nothing does."""
    if url is None:
        return None
    try:
        size: int = glance_store.get_size_from_backend(url)
    except glance_store.NotFound:
        return None
    return size


def delete(context: Any, urls: Iterable[str]) -> None:
    """Delete blobs; one that cannot be deleted is left, and the log says so."""
    for url in urls:
        try:
            store_api.delete_blob(url, context=context)
        except exception.NotFound:
            LOG.debug("The blob %s was deleted already", url)
        except exception.GlareException as error:
            LOG.warning("The blob %s is not used any more, but was not deleted: %s", url, error)


def _store(context: Any, data: bytes, content_type: str) -> dict[str, Any]:
    identifier = uuidutils.generate_uuid()
    options = cfg.CONF[f"artifact_type:{fields.TYPE_NAME}"]
    url, size, checksums = store_api.save_blob_to_store(
        identifier,
        io.BytesIO(data),
        context,
        len(data),
        store_type=options.default_store or cfg.CONF.glance_store.default_store,
    )
    return {
        "id": identifier,
        "url": url,
        "size": size,
        "status": "active",
        "external": False,
        "content_type": content_type,
        **checksums,
    }
