# SPDX-License-Identifier: Apache-2.0

"""Uploads: an archive is read and checked, its blobs are stored, and the upload is saved.

Logos and the form are stored as blobs of their own, before the archive itself is
stored. All blobs become visible in one transaction, or are deleted again. If the process of
an upload is killed, the upload expires.
"""

import contextlib
import datetime
import tempfile
from collections.abc import Iterator, Mapping
from typing import IO, Any

import glance_store
import sqlalchemy as sa
from glare.common import exception
from glare.db.sqlalchemy import models
from oslo_log import log as logging
from sqlalchemy.engine import Connection, Row

from glare_murano import fields
from glare_murano.glare import blobs, leases, manifest_mismatches, metrics
from glare_murano.glare.db import glare_database, transactions
from glare_murano.glare.interfaces import Artifact, Readable, RequestContext
from glare_murano.glare.options import SETTINGS
from glare_murano.package import Archive, Contents, InvalidPackage, read_contents
from glare_murano.package.archive_rules import Limits
from glare_murano.package.errors import listed
from glare_murano.package.rules import Rule
from glare_murano.service import archive_settings

LOG = logging.getLogger(__name__)

_CHUNK_SIZE = 128 * 1024

_blobs = models.ArtifactBlob.__table__


class Upload:
    """An upload of an archive.

    An upload begins when Glare marks the blob as ``saving``. Until the mark is removed, Glare
    refuses to activate the artifact, and refuses other uploads to it. Then the blobs in the
    archive are extracted and stored, and Glare stores the archive. Finally, the upload is saved
    or rolled back. Meanwhile another request may delete the artifact, or cancel the upload if
    its lease has expired.
    """

    def __init__(self, artifact_id: str, blob: dict[str, Any]) -> None:
        """Prepare an upload.

        :param blob: the archive's metadata, marked ``saving``; Glare adds the URL later.
        """
        self._artifact_id = artifact_id
        self._blob = blob
        self._lease = leases.Lease(artifact_id)
        self._replaced: tuple[str, ...] = ()
        self._archive: IO[bytes] | None = None
        self._contents: Contents | None = None
        self._extracted: dict[str, Mapping[str, Any] | None] = {}
        self._has_ended = False

    @property
    def is_stored(self) -> bool:
        """Whether Glare has stored the archive."""
        return self._blob["url"] not in (None, *self._replaced)

    def begin(self, context: RequestContext) -> dict[str, Any]:
        """Mark the archive as being saved.

        :returns: the values of the artifact.
        :raises glare.common.exception.Conflict: if the artifact is not a draft, or another
            upload is running.
        """
        values = {"blobs": {fields.ARCHIVE: self._blob}}
        begun = transactions.update(context, self._artifact_id, values, self._begin)
        before = map(begun.get, (fields.ARCHIVE, *(blob.name for blob in fields.BLOBS)))
        self._replaced = tuple(blob["url"] for blob in before if blob and blob["url"])
        return begun

    def _begin(self, connection: Connection, artifact: Row) -> None:
        if artifact.status != "drafted":
            raise transactions.changed(artifact)
        _check_idle(connection, artifact.id)
        if _find_url(connection, artifact.id) != self._blob["url"]:
            # Another upload has begun and ended since Glare read the artifact.
            raise transactions.changed(artifact)
        self._lease.begin(connection)

    def receive(self, context: RequestContext, artifact: Artifact, body: Readable) -> Readable:
        """Read an archive, refuse an invalid or inconsistent package, and store its blobs.

        :returns: the archive as a file, which is closed when the upload ends.
        :raises glare.common.exception.GlareException: if the archive is refused, or the
            store refuses a blob.
        """
        self._archive = _spool(_RenewingFile(body, self._lease))
        try:
            with Archive.open(self._archive, limits()) as archive:
                describe = archive_settings.sandbox(SETTINGS).describe
                form_check = archive_settings.form_check(SETTINGS)
                self._contents = contents = read_contents(archive, describe, form_check)
                # A damaged file is refused here, rather than by every engine.
                archive.verify()
                manifest_mismatches.check_upload(artifact, contents)
        except InvalidPackage as error:
            rules = {problem.rule for problem in error.problems}
            for rule in rules:
                metrics.REFUSED.labels(rule).inc()
            if Rule.PACKAGE_TYPE_FAILURE in rules:
                # The package is not at fault, so the status is 500.
                raise exception.GlareException(str(error)) from error
            raise exception.BadRequest(str(error)) from error
        for blob in fields.BLOBS:
            self._lease.renew()
            data = blob.fill(contents)
            self._extracted[blob.name] = (
                None if data is None else blobs.save(context, data, blob.content_type(data))
            )
        if contents.warnings:
            warnings = listed(contents.warnings)
            LOG.warning("The package %s %s: %s", artifact.name, artifact.version, warnings)
        self._archive.seek(0)
        return _RenewingFile(self._archive, self._lease)

    def save(self, context: RequestContext) -> dict[str, Any]:
        """Save the archive, the blobs and the fields in one transaction.

        :returns: the values of the artifact.
        """
        if self._contents is None:
            raise RuntimeError("the stored archive was not read")
        values = dict(fields.from_contents(self._contents))
        common = {name: values.pop(name) for name in fields.COMMON}
        stored = {fields.ARCHIVE: self._blob, **self._extracted}
        changes = {"blobs": stored, "properties": values, **common}
        saved = transactions.update(
            context, self._artifact_id, changes, lambda connection, _: self._lease.end(connection)
        )
        self._close()
        blobs.delete(context, self._replaced)
        metrics.UPLOADS.inc()
        return saved

    def roll_back(self, context: RequestContext) -> None:
        """Remove the mark and delete the stored blobs, unless the upload was saved."""
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
            # The blobs may have been saved, although the answer of the database was lost.
            stored -= transactions.change(self._artifact_id, end)
        blobs.delete(context, stored)

    def _close(self) -> None:
        self._has_ended = True
        if self._archive is not None:
            self._archive.close()


class _RenewingFile:
    """A file that renews a lease whenever it is read."""

    def __init__(self, file: Readable, lease: leases.Lease) -> None:
        self._file = file
        self._lease = lease

    def read(self, size: int = -1) -> bytes:
        self._lease.renew()
        return self._file.read(size)


def check_idle(artifact: Artifact) -> None:
    """Refuse an artifact with a running upload.

    :raises glare.common.exception.Conflict: naming the time when the upload expires.
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
    """Cancel the upload to an artifact if its lease has expired.

    The artifact returns to its state before the upload. A process that still works on
    the upload can no longer save the package.
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
    """Cancel all uploads whose leases have expired."""
    with glare_database.snapshot() as connection:
        uploads = glare_database.find_uploads(connection)
    for artifact_id in {row.id for row in uploads if row.type_name == fields.TYPE_NAME}:
        with contextlib.suppress(exception.ArtifactNotFound):
            expire(now, artifact_id)


def delete_artifact(context: RequestContext, artifact_id: str, check: transactions.Check) -> None:
    """Delete an artifact and its blobs, and cancel its upload, if a check passes."""

    def check_and_cancel(connection: Connection, artifact: Row) -> None:
        check(connection, artifact)
        leases.delete(connection, artifact_id)

    blobs.delete(context, transactions.delete(artifact_id, check_and_cancel))


def limits() -> Limits:
    """Return the configured limits of archives."""
    return archive_settings.limits(SETTINGS)


def check_size(size: int) -> None:
    """Refuse an archive of more than ``max_archive_size`` bytes, and count the refusal.

    :raises glare.common.exception.RequestEntityTooLarge: naming the limit.
    """
    limit = SETTINGS["max_archive_size"]
    if size > limit:
        metrics.REFUSED.labels(Rule.ARCHIVE_SIZE).inc()
        raise exception.RequestEntityTooLarge(
            f"the archive is larger than {limit} bytes [{Rule.ARCHIVE_SIZE}]"
        )


def _spool(source: Readable) -> IO[bytes]:
    """Copy an upload to a temporary file, since an archive is not read in order."""
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


def _find_url(connection: Connection, artifact_id: str) -> str | None:
    """Return the URL of an artifact's archive; None without an archive."""
    is_archive = sa.and_(_blobs.c.artifact_id == artifact_id, _blobs.c.name == fields.ARCHIVE)
    url: str | None = connection.execute(sa.select(_blobs.c.url).where(is_archive)).scalar()
    return url


def _replaced_sizes(artifact_id: str) -> dict[str, int]:
    """Return the sizes of the stored blobs that an upload was to replace, by URL.

    The sizes come from the stores, since Glare has overwritten the sizes in the database.
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
    """Restore the rows of the blobs from before the upload; delete the rows of its other blobs."""
    is_marked = _is_marked(artifact.id)
    for url, size in sizes.items():
        restored = {"status": "active", "size": size}
        is_this = sa.and_(is_marked, _blobs.c.url == url)
        connection.execute(sa.update(_blobs).where(is_this).values(restored))
    connection.execute(sa.delete(_blobs).where(is_marked))


def _is_marked(artifact_id: str) -> Any:
    return sa.and_(_blobs.c.artifact_id == artifact_id, _blobs.c.status == "saving")
