# SPDX-License-Identifier: Apache-2.0

"""Read and check an uploaded archive, and store it with the blobs extracted from it.

The logos and the form in an archive are stored as separate blobs, before the archive itself. All
blobs become visible in one transaction. If the upload fails, they are deleted again. If the process
of an upload is killed, the upload expires.
"""

import contextlib
import datetime
import tempfile
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import IO, Any

import eventlet
import glance_store
import sqlalchemy as sa
from glare.common import exception
from glare.db.sqlalchemy import models
from oslo_log import log as logging
from sqlalchemy.engine import Connection, Row

from glare_murano import archive_limits, archive_reading, fields
from glare_murano.glare import blobs, leases, manifest_mismatches, metrics
from glare_murano.glare.db import glare_database, transactions
from glare_murano.glare.interfaces import Artifact, Readable, RequestContext
from glare_murano.glare.options import SETTINGS
from glare_murano.package import InvalidPackage
from glare_murano.package.archive_rules import Limits
from glare_murano.package.errors import listed
from glare_murano.package.rules import Rule
from glare_murano.service import package_locks
from glare_murano.service.refusals import RefusedRequest
from glare_murano.stored_contents import StoredContents

LOG = logging.getLogger(__name__)

_CHUNK_SIZE = 128 * 1024

_blobs = models.ArtifactBlob.__table__


class Upload:
    """An upload of an archive.

    An upload has these steps:

    1. Glare marks the blob of the archive as ``saving``. Until the mark is removed, Glare refuses
       to activate the artifact, and refuses other uploads to it.
    2. The archive is read, and the blobs in it are extracted and stored.
    3. Glare stores the archive.
    4. The upload is saved or rolled back.

    During these steps, another request may delete the artifact. Another request may also cancel
    the upload, if the lease of the upload has expired.
    """

    def __init__(self, artifact_id: str, blob: dict[str, Any]) -> None:
        """Prepare an upload.

        :param artifact_id: the id of the artifact.
        :param blob: the archive's metadata, with the status ``saving``. Its URL is that of the
            archive that is replaced, or None. Glare sets the new URL after it has stored the
            archive.
        """
        self._artifact_id = artifact_id
        self._blob = blob
        self._lease = leases.Lease(artifact_id)
        self._replaced: tuple[str, ...] = ()
        self._archive: IO[bytes] | None = None
        self._contents: StoredContents | None = None
        self._extracted: dict[str, Mapping[str, Any] | None] = {}
        self._has_ended = False

    @property
    def is_stored(self) -> bool:
        """Whether Glare has stored the archive."""
        return self._blob["url"] not in (None, *self._replaced)

    def begin(self, context: RequestContext) -> dict[str, Any]:
        """Begin the upload: mark the blob of the archive as ``saving``.

        :returns: the values of the artifact.
        :raises glare.common.exception.Conflict: if the artifact is not a draft, another upload is
            running, or another upload has stored an archive since Glare read the artifact.
        """
        values = {"blobs": {fields.ARCHIVE: self._blob}}
        update = transactions.retry(transactions.update)
        begun = update(context, self._artifact_id, values, self._begin)
        before = map(begun.get, (fields.ARCHIVE, *(blob.name for blob in fields.BLOBS)))
        self._replaced = tuple(blob["url"] for blob in before if blob and blob["url"])
        return begun

    def _begin(self, connection: Connection) -> None:
        artifact = transactions.lock_artifact(connection, self._artifact_id)
        if artifact.status != "drafted":
            raise transactions.changed(artifact)
        _check_idle(connection, artifact.id)
        _, url = _find_archive(connection, artifact.id)
        if url != self._blob["url"]:
            # After Glare read the artifact, another upload has begun and ended.
            raise transactions.changed(artifact)
        self._lease.begin(connection)

    def receive(self, context: RequestContext, artifact: Artifact, body: Readable) -> Readable:
        """Read and check an archive, and store the blobs extracted from it.

        :param artifact: the artifact to which the archive is uploaded.
        :param body: the body of the request.
        :returns: the archive as a file, which is closed when the upload ends.
        :raises glare.common.exception.GlareException: if the package is refused, the service is too
            busy to read it, the store refuses a blob, or the upload was cancelled.
        """
        self._archive = _spool(_WatchedFile(body, self._go_on))
        label = f"{artifact.name} {artifact.version}"
        try:
            contents = archive_reading.read(
                SETTINGS, self._archive, artifact.owner, label, meanwhile=self._go_on
            )
            manifest_mismatches.check_upload(artifact, contents)
        except InvalidPackage as error:
            raise _refusal(error) from error
        self._contents = contents
        for blob in fields.BLOBS:
            self._lease.renew()
            data = contents.blobs.get(blob.name)
            self._extracted[blob.name] = (
                None if data is None else blobs.save(context, data, blob.content_type(data))
            )
        if contents.warnings:
            warnings = listed(contents.warnings)
            LOG.warning("The package %s %s: %s", artifact.name, artifact.version, warnings)
        self._archive.seek(0)
        return _WatchedFile(self._archive, self._go_on)

    def _go_on(self) -> None:
        """Renew the lease, and let other green threads run.

        The other threads handle other requests. Without this call, they would have to wait while a
        fast client sends its archive, or while a large archive is read.

        :raises glare.common.exception.GlareException: if the upload was cancelled.
        """
        self._lease.renew()
        eventlet.sleep(0)

    def save(self, context: RequestContext) -> dict[str, Any]:
        """Save the metadata of all blobs and the fields of the package in one transaction.

        After the transaction, the blobs that the upload has replaced are deleted.

        :returns: the values of the artifact.
        :raises glare.common.exception.GlareException: if another request has cancelled the upload,
            or has deleted the artifact.
        """
        if self._contents is None:
            raise RuntimeError("the stored archive was not read")
        values = dict(self._contents.values)
        common = {name: values.pop(name) for name in fields.COMMON}
        stored = {fields.ARCHIVE: self._blob, **self._extracted}
        changes = {"blobs": stored, "properties": values, **common}
        update = transactions.retry(transactions.update)
        saved = update(context, self._artifact_id, changes, self._end)
        self._close()
        blobs.delete(context, self._replaced)
        metrics.UPLOADS.inc()
        return saved

    def _end(self, connection: Connection) -> None:
        transactions.lock_artifact(connection, self._artifact_id)
        self._lease.end(connection)

    def roll_back(self, context: RequestContext) -> None:
        """Restore the artifact to its state before the upload, and delete the new blobs.

        If the upload was already saved or rolled back, nothing is changed.
        """
        if self._has_ended:
            return
        self._close()
        stored = {blob["url"] for blob in self._extracted.values() if blob}
        if self.is_stored:
            stored.add(self._blob["url"])
        sizes = _replaced_sizes(self._artifact_id)

        def end(connection: Connection, artifact: Row) -> set[str]:
            with contextlib.suppress(exception.Conflict):
                self._lease.end(connection)
                _remove_marks(connection, artifact, sizes)
            named = sa.select(_blobs.c.url).where(_blobs.c.artifact_id == artifact.id)
            return set(connection.execute(named).scalars())

        with contextlib.suppress(exception.ArtifactNotFound):
            # Blobs that have a row are kept: the upload may have been saved although the database's
            # answer was lost.
            stored -= transactions.change(self._artifact_id, end)
        blobs.delete(context, stored)

    def _close(self) -> None:
        self._has_ended = True
        if self._archive is not None:
            self._archive.close()


class ReadingBusy(RefusedRequest, exception.GlareException):  # type: ignore[misc]
    """The service is busy with other archives. The client can try again later."""

    def __init__(self, message: str) -> None:
        headers = {"Retry-After": str(archive_reading.RETRY_AFTER)}
        RefusedRequest.__init__(self, HTTPStatus.SERVICE_UNAVAILABLE, message, headers)


def _refusal(error: InvalidPackage) -> exception.GlareException:
    """Count the refusal of a package, and convert it to an error of Glare."""
    rules = {problem.rule for problem in error.problems}
    for rule in rules:
        metrics.REFUSED.labels(rule).inc()
    if isinstance(error, archive_reading.ServiceBusy):
        return ReadingBusy(str(error))
    if Rule.READING_FAILURE in rules:
        # The package is not the cause, so the status is 500.
        return exception.GlareException(str(error))
    return exception.BadRequest(str(error))


class _WatchedFile:
    """A file that calls a function before each read."""

    def __init__(self, file: Readable, before: Callable[[], None]) -> None:
        self._file = file
        self._before = before

    def read(self, size: int = -1) -> bytes:
        self._before()
        return self._file.read(size)


def check_idle(artifact: Artifact) -> None:
    """Check that no upload to an artifact is running.

    :raises glare.common.exception.Conflict: if an upload is running. The message says when the
        upload expires.
    """
    with glare_database.snapshot() as connection:
        _check_idle(connection, artifact.id)


def _check_idle(connection: Connection, artifact_id: str) -> None:
    if end := leases.find_end(connection, artifact_id):
        raise exception.Conflict(
            f"an archive is being uploaded to artifact {artifact_id}; without progress, the "
            f"upload expires at {end:%Y-%m-%dT%H:%M:%SZ}; try again after that, or delete the "
            f"artifact"
        )


def expire(now: datetime.datetime, artifact_id: str) -> None:
    """Cancel the upload to an artifact if the lease of the upload has expired.

    The artifact returns to its state before the upload. A process that still works on the upload
    can no longer save the package.

    :param now: a time in UTC. A lease that ends at this time, or earlier, has expired.
    """

    def end(connection: Connection, artifact: Row) -> None:
        if not leases.is_running(connection, artifact_id, now):
            LOG.warning("The upload to artifact %s has expired", artifact_id)
            leases.delete(connection, artifact_id)
            _remove_marks(connection, artifact, sizes)

    with glare_database.snapshot() as connection:
        if leases.is_running(connection, artifact_id, now):
            return
    sizes = _replaced_sizes(artifact_id)
    transactions.change(artifact_id, end)


def expire_all(now: datetime.datetime) -> None:
    """Cancel all uploads whose leases have expired.

    :param now: a time in UTC. A lease that ends at this time, or earlier, has expired.
    """
    with glare_database.snapshot() as connection:
        uploads = glare_database.find_uploads(connection)
    for artifact_id in {row.id for row in uploads if row.type_name == fields.TYPE_NAME}:
        with contextlib.suppress(exception.ArtifactNotFound):
            expire(now, artifact_id)


def delete_artifact(context: RequestContext, artifact_id: str, check: package_locks.Check) -> None:
    """Delete an artifact with its blobs, and cancel its upload, if a check passes.

    :param check: a function that checks the deletion; see ``package_locks.prepare``.
    """

    def cancel(connection: Connection) -> None:
        leases.delete(connection, artifact_id)

    blobs.delete(context, transactions.delete(artifact_id, check, cancel))


def limits() -> Limits:
    """Return the configured limits of archives."""
    return archive_limits.limits(SETTINGS)


def check_size(size: int) -> None:
    """Check that an archive has at most ``max_archive_size`` bytes.

    A larger archive is counted as refused.

    :param size: the size of the archive, in bytes.
    :raises glare.common.exception.RequestEntityTooLarge: if the archive is larger.
    """
    limit = SETTINGS["max_archive_size"]
    if size > limit:
        metrics.REFUSED.labels(Rule.ARCHIVE_SIZE).inc()
        raise exception.RequestEntityTooLarge(
            f"the archive is larger than {limit} bytes [{Rule.ARCHIVE_SIZE}]"
        )


def _spool(source: Readable) -> IO[bytes]:
    """Copy an uploaded archive to a temporary file, and return the open file.

    A file is necessary, since the files in an archive are not read in order.
    """
    spool = tempfile.TemporaryFile(prefix="glare-murano-")  # noqa: SIM115 - Glare reads it later
    try:
        for chunk in _chunks(source):
            check_size(spool.tell() + len(chunk))
            spool.write(chunk)
    except Exception:
        spool.close()
        raise
    return spool


def _chunks(source: Readable) -> Iterator[bytes]:
    try:
        while chunk := source.read(_CHUNK_SIZE):
            yield chunk
    except (OSError, ValueError) as error:
        raise exception.BadRequest(f"the archive is incomplete: {error}") from error


def has_archive(
    connection: Connection, artifact_id: str, archive: Mapping[str, Any] | None
) -> bool:
    """Return whether an artifact still has the archive with which it was read.

    The result is False if an upload has begun or ended since then: each stored archive has another
    URL, and a blob without a stored archive has another status.

    :param archive: the metadata of the archive as it was read; None if there was no archive.
    """
    read = archive or {}
    return _find_archive(connection, artifact_id) == (read.get("status"), read.get("url"))


def _find_archive(connection: Connection, artifact_id: str) -> tuple[str | None, str | None]:
    """Return the status and the URL of an artifact's archive; None and None without an archive."""
    is_archive = sa.and_(_blobs.c.artifact_id == artifact_id, _blobs.c.name == fields.ARCHIVE)
    statement = sa.select(_blobs.c.status, _blobs.c.url).where(is_archive)
    row = connection.execute(statement).first()
    return (None, None) if row is None else (row.status, row.url)


def _replaced_sizes(artifact_id: str) -> dict[str, int]:
    """Return the sizes of the stored blobs that a running upload replaces: URL -> size in bytes.

    The sizes come from the stores, since Glare has overwritten the sizes in the database. Blobs
    that are missing in their stores are left out.
    """
    is_stored = sa.and_(_is_marked(artifact_id), _blobs.c.url.is_not(None))
    with glare_database.snapshot() as connection:
        urls = list(connection.execute(sa.select(_blobs.c.url).where(is_stored)).scalars())
    sizes = {}
    for url in urls:
        with contextlib.suppress(glance_store.NotFound):
            sizes[url] = glance_store.get_size_from_backend(url)
    return sizes


def _remove_marks(connection: Connection, artifact: Row, sizes: Mapping[str, int]) -> None:
    """Restore the rows of an artifact's blobs to their state before the upload.

    Rows of blobs that did not exist before the upload are deleted.

    :param sizes: the blobs before the upload: URL -> size in bytes.
    """
    is_marked = _is_marked(artifact.id)
    for url, size in sizes.items():
        restored = {"status": "active", "size": size}
        is_this = sa.and_(is_marked, _blobs.c.url == url)
        connection.execute(sa.update(_blobs).where(is_this).values(restored))
    connection.execute(sa.delete(_blobs).where(is_marked))


def _is_marked(artifact_id: str) -> Any:
    return sa.and_(_blobs.c.artifact_id == artifact_id, _blobs.c.status == "saving")
