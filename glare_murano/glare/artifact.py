# SPDX-License-Identifier: Apache-2.0

"""The Glare artifact type ``murano``: a package with the contents of its manifest.

A client creates the artifact with a name (the FQN) and a version, uploads the
archive, and activates the artifact. The server reads all other fields from the
archive. Glare's option ``custom_artifact_types_modules`` names this module.
"""

import datetime
import tempfile
from collections.abc import Mapping
from typing import IO, Any, Protocol, Self, cast

from glare.common import exception
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models
from glare.objects import base
from glare.objects.meta import validators, wrappers
from oslo_config import cfg
from oslo_log import log as logging
from oslo_utils import timeutils
from oslo_versionedobjects import fields as ovo_fields

from glare_murano import fields as table
from glare_murano import package
from glare_murano.glare import (
    consistency,
    field_types,
    filter_limits,
    integrity,
    metrics,
    request_state,
    uploads,
)
from glare_murano.glare.interfaces import Artifact, RequestContext
from glare_murano.package.archive_rules import DEFAULT_LIMITS, Limits
from glare_murano.package.manifest import check_full_name
from glare_murano.package.rules import Rule

LOG = logging.getLogger(__name__)

_CHUNK_SIZE = 128 * 1024

# Options of the group [artifact_type:murano].
OPTIONS = [
    *integrity.OPTIONS,
    cfg.IntOpt(
        "max_archive_size",
        min=1,
        default=DEFAULT_LIMITS.archive_size,
        help="The largest archive that can be uploaded, in bytes.",
    ),
    cfg.IntOpt(
        "max_unpacked_size",
        min=1,
        default=DEFAULT_LIMITS.unpacked_size,
        help="The largest total size of the files in an archive, in bytes.",
    ),
    cfg.IntOpt(
        "max_archive_entries",
        min=1,
        default=DEFAULT_LIMITS.entries,
        help="The largest number of files and directories in an archive.",
    ),
    cfg.IntOpt(
        "max_archive_ratio",
        min=1,
        default=DEFAULT_LIMITS.ratio,
        help="The largest number of unpacked bytes for each byte of an archive, once more than "
        "1 MiB is unpacked.",
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


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


class MuranoPackageArtifact(base.BaseArtifact):  # type: ignore[misc]
    """A version of a Murano package."""

    # 1.0: the first version.
    # 1.1: a client may send fields of the manifest, which are checked against it.
    # 1.2: a list has no duplicates.
    VERSION = "1.2"

    fields = {  # noqa: RUF012 - oslo.versionedobjects expects a class attribute
        "name": wrappers.Field.init(
            ovo_fields.StringField,
            required_on_activate=False,
            nullable=False,
            sortable=True,
            filter_ops=(
                wrappers.FILTER_LIKE,
                wrappers.FILTER_EQ,
                wrappers.FILTER_NEQ,
                wrappers.FILTER_IN,
            ),
            validators=[validators.MinStrLen(1), validators.MaxStrLen(table.MAX_NAME)],
            description="Fully qualified name (FQN) of the package.",
        ),
        "version": field_types.declare_version(),
        "metadata": field_types.declare_metadata(),
        **{field.name: field_types.declare(field) for field in table.FIELDS},
        table.ARCHIVE: field_types.BlobField.init(
            max_blob_size=DEFAULT_LIMITS.archive_size,
            description="The package as a ZIP file; the other fields are read from it.",
        ),
        **{
            blob.name: field_types.BlobField.init(
                required_on_activate=False,
                description=f"{blob.description} Taken from the archive.",
            )
            for blob in table.BLOBS
        },
    }

    artifact_type_opts = OPTIONS

    # All fields as they were before the JSON patch that is being applied.
    _before_patch: Mapping[str, Any] | None = None

    @classmethod
    def get_type_name(cls) -> str:
        """Return the name of the type in the API."""
        return table.TYPE_NAME

    @classmethod
    def get_display_type_name(cls) -> str:
        """Return the name of the type for users."""
        return "Murano packages"

    @classmethod
    def get_max_blob_size(cls, field_name: str) -> int:
        """Return the largest size of an upload in bytes; Glare's quotas may be smaller."""
        return _limits().archive_size

    @classmethod
    def show(
        cls, context: RequestContext, artifact_id: str, get_any_artifact: bool = False
    ) -> Artifact:
        """Return an artifact, and expire its upload after ``upload_timeout``."""
        af: Artifact = super().show(context, artifact_id, get_any_artifact)
        if af.archive and af.archive["status"] == "saving":
            timeout = datetime.timedelta(seconds=_options().upload_timeout)
            uploads.expire(timeutils.utcnow() - timeout, artifact_id)
            af = super().show(context, artifact_id, get_any_artifact)
        return af

    @classmethod
    def list(
        cls,
        context: RequestContext,
        filters: Any = None,
        marker: str | None = None,
        limit: int | None = None,
        sort: Any = None,
        *options: bool,
    ) -> Any:
        """List artifacts.

        :raises glare.common.exception.BadRequest: for pages sorted by ``activated_at``,
            which drafts lack.
        """
        if marker is not None and any(key == "activated_at" for key, _ in sort or ()):
            raise exception.BadRequest(
                message="pages cannot be sorted by activated_at, which drafts lack; sort by "
                "created_at or updated_at"
            )
        return super().list(context, filters, marker, limit, sort, *options)

    @classmethod
    def _parse_filter_values(cls, filters: Any) -> Any:
        parsed = super()._parse_filter_values(filters)
        filter_limits.check(parsed)
        return parsed

    @classmethod
    def delete(cls, context: RequestContext, af: Artifact) -> Any:
        """Mark an artifact as deleted, and delete its properties and tags.

        Glare deletes only the artifact's own row, which every database but SQLite
        refuses while properties or tags refer to it.
        """
        blobs = super().delete(context, af)
        session = database.get_session()
        with session.begin():
            for model in (models.ArtifactProperty, models.ArtifactTag):
                session.query(model).filter_by(artifact_id=af.id).delete()
        return blobs

    @classmethod
    def update_blob(
        cls, context: RequestContext, af_id: str, field_name: str, values: dict[str, Any] | None
    ) -> Artifact | None:
        """Save the metadata of a blob; for an archive, begin or end its upload."""
        if field_name != table.ARCHIVE:
            return cast(Artifact, super().update_blob(context, af_id, field_name, values))
        if values and values["status"] == "saving":
            return cls._begin_upload(context, af_id, values)
        upload = _upload(context)
        if upload.has_expired():
            return cls._refuse_expired_upload(context, upload)
        if upload.is_stored:
            return cls._save_upload(context, af_id, upload)
        return cls._roll_back_upload(context, af_id, upload, values)

    @classmethod
    def _begin_upload(cls, context: RequestContext, af_id: str, values: dict[str, Any]) -> Artifact:
        """Mark the archive as being saved; Glare then refuses other uploads."""
        af: Artifact = super().update_blob(context, af_id, table.ARCHIVE, values)
        if af.archive is not None:
            values["id"] = af.archive["id"]
        request_state.of(context).upload = uploads.Upload(af, values)
        return af

    @classmethod
    def _save_upload(cls, context: RequestContext, af_id: str, upload: uploads.Upload) -> Artifact:
        """Save the archive, the blobs and the fields together."""
        saved = upload.save(context, af_id)
        metrics.UPLOADS.inc()
        return cast(Artifact, cls.init_artifact(context, saved))

    @classmethod
    def _roll_back_upload(
        cls,
        context: RequestContext,
        af_id: str,
        upload: uploads.Upload,
        values: dict[str, Any] | None,
    ) -> Artifact:
        """Restore the archive from before the upload, if any."""
        upload.discard(context)
        return cast(Artifact, super().update_blob(context, af_id, table.ARCHIVE, values))

    @classmethod
    def _refuse_expired_upload(cls, context: RequestContext, upload: uploads.Upload) -> None:
        """Leave the artifact unchanged."""
        upload.discard(context)
        # Otherwise Glare is reporting another error already.
        if upload.is_stored:
            raise exception.Conflict(
                message="the upload took too long and has expired; upload the archive again"
            )

    @classmethod
    def pre_create_hook(cls, context: RequestContext, af: Artifact) -> None:
        """Refuse an invalid name, and characters that Glare cannot store."""
        try:
            check_full_name(af.name)
        except ValueError as error:
            raise exception.BadRequest(message=f"name: {error}") from error
        _check_characters(af.to_dict())

    @classmethod
    def pre_update_hook_with_patch(cls, context: RequestContext, af: Self, json_patch: Any) -> None:
        """Refuse changes of the name, the version, and the contents of the package."""
        _check_characters(list(json_patch))
        consistency.check_patch(af, json_patch)
        af._before_patch = af.to_dict()

    def obj_reset_changes(self, fields: Any = None, recursive: bool = False) -> None:
        """Forget changes, except the changes by earlier operations of the same patch.

        Glare calls this for each field that an operation leaves unchanged, even after an
        earlier change.
        """
        before = self._before_patch
        if fields and before:
            now = self.to_dict()
            fields = [field for field in fields if now[field] == before[field]]
            if not fields:
                return
        super().obj_reset_changes(fields, recursive)

    @classmethod
    def pre_activate_hook(cls, context: RequestContext, af: Artifact) -> None:
        """Check the requirements."""
        integrity.check_activation(context, af)

    @classmethod
    def pre_reactivate_hook(cls, context: RequestContext, af: Artifact) -> None:
        """Check the requirements again."""
        integrity.check_activation(context, af)
        if af.visibility == "public":
            integrity.check_publication(context, af)

    @classmethod
    def pre_publish_hook(cls, context: RequestContext, af: Artifact) -> None:
        """Check the requirements among public packages."""
        if af.visibility != "public":
            integrity.check_publication(context, af)

    @classmethod
    def pre_deactivate_hook(cls, context: RequestContext, af: Artifact) -> None:
        """Check the dependents."""
        integrity.check_removal(context, af)

    pre_delete_hook = pre_deactivate_hook

    @classmethod
    def pre_add_location_hook(
        cls, context: RequestContext, af: Artifact, field_name: str, blob_key: Any, location: Any
    ) -> None:
        """Refuse an archive on another server, which could change at any time."""
        raise exception.Forbidden(
            message=f"{field_name} must be uploaded, since the server reads the package"
        )

    @classmethod
    def pre_upload_hook(
        cls, context: RequestContext, af: Artifact, field_name: str, blob_key: Any, fd: _Stream
    ) -> IO[bytes]:
        """Read and check the uploaded archive, and store the blobs in the archive.

        :returns: the archive as a file, for Glare to store.
        """
        if field_name != table.ARCHIVE:
            raise exception.Forbidden(
                message=f"{field_name} cannot be uploaded: it is taken from the archive"
            )
        archive = _spool(fd)
        try:
            contents = cls._read(context, af, archive)
            _upload(context).extract(context, archive, contents)
        except Exception:
            archive.close()
            raise
        archive.seek(0)
        return archive

    @classmethod
    def _read(cls, context: RequestContext, af: Artifact, file: IO[bytes]) -> package.Contents:
        """Read an archive, and refuse an invalid or inconsistent package."""
        try:
            with package.Archive.open(file, _limits()) as archive:
                contents = package.read_contents(archive)
                # A damaged file is refused here, rather than by every engine.
                archive.verify()
            consistency.check_upload(af, contents)
            cls._check_values(context, contents)
        except package.InvalidPackage as error:
            rules = sorted({problem.rule for problem in error.problems})
            for rule in rules:
                metrics.REFUSED.labels(rule).inc()
            LOG.info("Refused an archive for %s %s: %s", af.name, af.version, ", ".join(rules))
            raise exception.BadRequest(message=str(error)) from error
        for warning in contents.manifest.warnings:
            LOG.warning("The manifest of %s %s: %s", af.name, af.version, warning)
        return contents

    @classmethod
    def _check_values(cls, context: RequestContext, contents: package.Contents) -> None:
        """Refuse values that Glare could store but not read again."""
        problems = []
        af = cls(context)
        values = {**table.from_contents(contents), **table.common_from_contents(contents)}
        for field, value in values.items():
            try:
                setattr(af, field, value)
                field_types.check_characters(value)
            except (exception.GlareException, ValueError) as error:
                problems.append(package.Problem(Rule.MANIFEST_LIMIT, field, str(error)))
        if problems:
            raise package.InvalidManifest(problems)


def list_opts() -> list[tuple[str, list[Any]]]:
    """Return the options by group, for ``oslo-config-generator``."""
    return [(f"artifact_type:{table.TYPE_NAME}", OPTIONS)]


def archive_too_large(limit: int) -> exception.RequestEntityTooLarge:
    """Return the error for an archive of more than ``limit`` bytes, and count the refusal."""
    metrics.REFUSED.labels(Rule.ARCHIVE_SIZE).inc()
    return exception.RequestEntityTooLarge(
        message=f"the archive is larger than {limit} bytes [{Rule.ARCHIVE_SIZE}]"
    )


def _options() -> Any:
    return cfg.CONF[f"artifact_type:{table.TYPE_NAME}"]


def _limits() -> Limits:
    options = _options()
    return Limits(
        archive_size=options.max_archive_size,
        unpacked_size=options.max_unpacked_size,
        entries=options.max_archive_entries,
        ratio=options.max_archive_ratio,
    )


def _upload(context: RequestContext) -> uploads.Upload:
    upload = request_state.of(context).upload
    if upload is None:
        raise RuntimeError("no upload has begun")
    return upload


def _check_characters(value: Any) -> None:
    try:
        field_types.check_characters(value)
    except ValueError as error:
        raise exception.BadRequest(message=f"the request has {error}") from error


def _spool(source: _Stream) -> IO[bytes]:
    """Copy an upload to a temporary file, which can seek."""
    limit = _limits().archive_size
    spool = tempfile.TemporaryFile(prefix="glare-murano-")  # noqa: SIM115 - Glare reads it later
    size = 0
    try:
        while chunk := source.read(_CHUNK_SIZE):
            size += len(chunk)
            if size > limit:
                raise archive_too_large(limit)
            spool.write(chunk)
    except Exception:
        spool.close()
        raise
    return spool
