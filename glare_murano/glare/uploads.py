# SPDX-License-Identifier: Apache-2.0

"""Uploads: reading and refusing an archive, storing its blobs, saving or rolling back.

Logos and the form are stored as blobs of their own, before the archive itself is
stored. All of them become visible in one transaction, or are deleted again. If its
process is killed, an upload expires.
"""

import contextlib
import datetime
import io
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any

import glance_store
from glare.common import exception, store_api
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models
from oslo_config import cfg
from oslo_log import log as logging
from oslo_utils import timeutils, uuidutils
from sqlalchemy import orm

from glare_murano import fields
from glare_murano.glare import consistency, metrics
from glare_murano.glare.interfaces import Artifact, RequestContext
from glare_murano.package import Archive, Contents, InvalidPackage, read_contents
from glare_murano.package.archive_rules import DEFAULT_LIMITS, Limits
from glare_murano.package.rules import Rule

LOG = logging.getLogger(__name__)


# Field of Limits -> option, help.
_LIMITS = {
    "archive_size": ("max_archive_size", "largest archive that can be uploaded, in bytes."),
    "unpacked_size": (
        "max_unpacked_size",
        "largest total size of the files in an archive, in bytes.",
    ),
    "entries": ("max_archive_entries", "largest number of files and directories in an archive."),
    "ratio": (
        "max_archive_ratio",
        "largest number of unpacked bytes for each byte of an archive, once more than 1 MiB is "
        "unpacked.",
    ),
}
# Options of the group [artifact_type:murano].
OPTIONS = [
    *(
        cfg.IntOpt(name, min=1, default=getattr(DEFAULT_LIMITS, limit), help=f"The {description}")
        for limit, (name, description) in _LIMITS.items()
    ),
    cfg.IntOpt(
        "upload_timeout",
        min=1,
        default=3600,
        help="The longest time that an upload may take, in seconds, from its first byte until the "
        "archive is stored. After that the upload has expired, since its process may have been "
        "killed, and the archive can be uploaded again.",
    ),
]

_CHUNK_SIZE = 128 * 1024


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
        :param blob: the metadata of the archive; gets its id here, and the URL from Glare later.
        """
        names = (fields.ARCHIVE, *(each.name for each in fields.BLOBS))
        before = (getattr(artifact, name) for name in names)
        self._replaced = tuple(each["url"] for each in before if each and each["url"])
        self._blob = blob
        if artifact.archive is not None:
            blob["id"] = artifact.archive["id"]
        self._archive: IO[bytes] | None = None
        self._contents: Contents | None = None
        self._extracted: dict[str, Mapping[str, Any] | None] = {}
        self._has_ended = False

    @property
    def is_stored(self) -> bool:
        """Whether Glare has stored the archive."""
        return self._blob["url"] not in (None, *self._replaced)

    def has_expired(self) -> bool:
        """Return whether another process has ended this upload: the blob is not ``saving``."""
        session = database.get_session()
        with session.begin():
            return _marked(session, self._blob["id"]) is None

    def receive(
        self,
        context: RequestContext,
        artifact: Artifact,
        body: IO[bytes],
        check_values: Callable[[RequestContext, Contents], None],
    ) -> IO[bytes]:
        """Read an archive, refuse an invalid or inconsistent package, and store its blobs.

        :param check_values: refuses fields that Glare cannot store.
        :returns: the archive as a file, which is closed when the upload ends.
        :raises glare.common.exception.GlareException: if the archive is refused, or the
            store refuses a blob.
        """
        self._archive = _spool(body)
        with _refusing(artifact), Archive.open(self._archive, limits()) as archive:
            self._contents = contents = read_contents(archive)
            # A damaged file is refused here, rather than by every engine.
            archive.verify()
            consistency.check_upload(artifact, contents)
            check_values(context, contents)
        for blob in fields.BLOBS:
            data = blob.fill(contents)
            self._extracted[blob.name] = (
                None if data is None else _store(context, data, blob.content_type)
            )
        for warning in contents.manifest.warnings:
            LOG.warning("The manifest of %s %s: %s", artifact.name, artifact.version, warning)
        self._archive.seek(0)
        return self._archive

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
        metrics.UPLOADS.inc()
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
            if blob := _marked(session, self._blob["id"]):
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


def limits() -> Limits:
    """Return the configured limits of archives."""
    return Limits(**{limit: _options()[name] for limit, (name, _) in _LIMITS.items()})


def check_size(size: int) -> None:
    """Refuse an archive of more than ``max_archive_size`` bytes, and count the refusal.

    :raises glare.common.exception.RequestEntityTooLarge: naming the limit.
    """
    limit = _options().max_archive_size
    if size > limit:
        metrics.REFUSED.labels(Rule.ARCHIVE_SIZE).inc()
        raise exception.RequestEntityTooLarge(
            f"the archive is larger than {limit} bytes [{Rule.ARCHIVE_SIZE}]"
        )


def _options() -> Any:
    return cfg.CONF[f"artifact_type:{fields.TYPE_NAME}"]


def _spool(source: IO[bytes]) -> IO[bytes]:
    """Copy an upload to a temporary file, which can seek."""
    spool = tempfile.TemporaryFile(prefix="glare-murano-")  # noqa: SIM115 - Glare reads it later
    try:
        while chunk := source.read(_CHUNK_SIZE):
            check_size(spool.tell() + len(chunk))
            spool.write(chunk)
    except Exception:
        spool.close()
        raise
    return spool


@contextlib.contextmanager
def _refusing(artifact: Artifact) -> Iterator[None]:
    """Turn ``InvalidPackage`` into Glare's 400, and count the refusal by its rules."""
    try:
        yield
    except InvalidPackage as error:
        rules = sorted({problem.rule for problem in error.problems})
        for rule in rules:
            metrics.REFUSED.labels(rule).inc()
        LOG.info(
            "Refused an archive for %s %s: %s", artifact.name, artifact.version, ", ".join(rules)
        )
        raise exception.BadRequest(str(error)) from error


def expire_overdue(artifact_id: str) -> None:
    """Remove the mark of an upload that has taken longer than ``upload_timeout``."""
    timeout = datetime.timedelta(seconds=_options().upload_timeout)
    expire(timeutils.utcnow() - timeout, artifact_id)


def _marked(session: orm.Session, blob_id: str) -> models.ArtifactBlob | None:
    blob = session.get(models.ArtifactBlob, blob_id)
    return blob if blob is not None and blob.status == "saving" else None


def _remove_mark(session: orm.Session, blob: models.ArtifactBlob) -> None:
    """Restore a stored blob from before the upload; delete any other."""
    if blob.url is not None:
        with contextlib.suppress(glance_store.NotFound):
            # Glare has overwritten the size. The new id hides the blob from its upload.
            blob.size = glance_store.get_size_from_backend(blob.url)
            blob.status, blob.id = "active", uuidutils.generate_uuid()
            return
    session.delete(blob)


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
    store = _options().default_store or cfg.CONF.glance_store.default_store
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
