# SPDX-License-Identifier: Apache-2.0

"""The Glare artifact type ``murano``: a package, and what its manifest says.

A client creates the artifact with a name (the FQN) and a version, uploads the
archive, and activates it. Everything else is read from the archive by this
module, inside Glare, so that the catalogue tells the truth whoever the client
is. Glare finds the type by its option ``custom_artifact_types_modules``.
"""

import datetime
import tempfile
from typing import IO, Any

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
from glare_murano.glare import consistency, field_types, filter_limits, integrity, metrics, uploads
from glare_murano.package.archive_rules import DEFAULT_LIMITS, Limits
from glare_murano.package.manifest import check_full_name
from glare_murano.package.rules import Rule

LOG = logging.getLogger(__name__)

_CHUNK = 128 * 1024

# Options of the group [artifact_type:murano], with those of the checks.
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
        help="How much the files of an archive may come to, in bytes.",
    ),
    cfg.IntOpt(
        "max_archive_entries",
        min=1,
        default=DEFAULT_LIMITS.entries,
        help="How many files and folders an archive may hold.",
    ),
    cfg.IntOpt(
        "max_archive_ratio",
        min=1,
        default=DEFAULT_LIMITS.ratio,
        help="How many bytes an archive may unpack to for each of its own, from 1 MiB on.",
    ),
    cfg.IntOpt(
        "upload_timeout",
        min=1,
        default=3600,
        help="How long an upload may take, in seconds, from its first byte to its being stored. "
        "After that it counts as failed, since its process may have been killed, and the archive "
        "can be uploaded again.",
    ),
]


class MuranoPackageArtifact(base.BaseArtifact):  # type: ignore[misc]
    """A version of a Murano package."""

    # 1.0: the first.
    # 1.1: a client may send what the package says, and is held to it.
    # 1.2: a list keeps each element once.
    VERSION = "1.2"

    fields = {  # noqa: RUF012 - oslo.versionedobjects expects it so
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
        # As Glare has it, but with elements that can be filtered by.
        "metadata": field_types.DictField.init(
            field_types.Element,
            required_on_activate=False,
            element_validators=[validators.MinStrLen(1)],
            description="What whoever publishes the package says of it.",
        ),
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

    @classmethod
    def show(cls, context: Any, artifact_id: str, get_any_artifact: bool = False) -> Any:
        """One artifact; an upload that has not ended in time has failed."""
        af = super().show(context, artifact_id, get_any_artifact)
        if af.archive and af.archive["status"] == "saving":
            timeout = datetime.timedelta(seconds=_options().upload_timeout)
            uploads.settle(timeutils.utcnow() - timeout, artifact_id)
            af = super().show(context, artifact_id, get_any_artifact)
        return af

    @classmethod
    def get_max_blob_size(cls, field_name: str) -> int:
        """The largest upload, in bytes; Glare's quotas may be smaller."""
        return _limits().archive_size

    @classmethod
    def get_type_name(cls) -> str:
        """The name of the type in the API."""
        return table.TYPE_NAME

    @classmethod
    def get_display_type_name(cls) -> str:
        """The name of the type as shown to people."""
        return "Murano packages"

    @classmethod
    def list(
        cls,
        context: Any,
        filters: Any = None,
        marker: str | None = None,
        limit: int | None = None,
        sort: Any = None,
        latest: bool = False,
        list_all_artifacts: bool = False,
    ) -> Any:
        """List artifacts, but for pages in an order that drafts have no place in."""
        if marker is not None and any(key == "activated_at" for key, _ in sort or ()):
            raise exception.BadRequest(
                message="pages cannot be sorted by activated_at, which drafts lack; sort by "
                "created_at or updated_at"
            )
        return super().list(context, filters, marker, limit, sort, latest, list_all_artifacts)

    @classmethod
    def _parse_filter_values(cls, filters: Any) -> Any:
        parsed = super()._parse_filter_values(filters)
        filter_limits.check(parsed)
        return parsed

    @classmethod
    def pre_create_hook(cls, context: Any, af: Any) -> None:
        """Refuse a name that no package can have, and characters that cannot be kept."""
        super().pre_create_hook(context, af)
        try:
            check_full_name(af.name)
        except ValueError as error:
            raise exception.BadRequest(message=f"name: {error}") from error
        _check_characters(af.to_dict())

    @classmethod
    def pre_update_hook_with_patch(cls, context: Any, af: Any, json_patch: Any) -> None:
        """Keep what was claimed at creation, and what the package says."""
        super().pre_update_hook_with_patch(context, af, json_patch)
        _check_characters(list(json_patch))
        consistency.check_patch(af, json_patch)
        af.before_patch = af.to_dict()

    def obj_reset_changes(self, fields: Any = None, recursive: bool = False) -> None:
        """Forget changes, but none that an earlier operation of the same patch made.

        Glare has a field forgotten when an operation leaves it as it is, though
        it be only as the operation before has made it.
        """
        before = getattr(self, "before_patch", None)
        if fields and before:
            now = self.to_dict()
            fields = [field for field in fields if now[field] == before[field]]
            if not fields:
                return
        super().obj_reset_changes(fields, recursive)

    @classmethod
    def pre_activate_hook(cls, context: Any, af: Any) -> None:
        """Hold that everything that the package requires is there."""
        super().pre_activate_hook(context, af)
        integrity.check_activation(context, af)

    @classmethod
    def pre_reactivate_hook(cls, context: Any, af: Any) -> None:
        """Hold that everything that the package requires is there again."""
        super().pre_reactivate_hook(context, af)
        integrity.check_activation(context, af)
        if af.visibility == "public":
            integrity.check_publication(context, af)

    @classmethod
    def pre_publish_hook(cls, context: Any, af: Any) -> None:
        """Hold that everything that the package requires is public."""
        super().pre_publish_hook(context, af)
        if af.visibility != "public":
            integrity.check_publication(context, af)

    @classmethod
    def pre_deactivate_hook(cls, context: Any, af: Any) -> None:
        """Hold that no active package needs this one."""
        super().pre_deactivate_hook(context, af)
        integrity.check_removal(context, af)

    @classmethod
    def pre_delete_hook(cls, context: Any, af: Any) -> None:
        """Hold that no active package needs this one."""
        super().pre_delete_hook(context, af)
        integrity.check_removal(context, af)

    @classmethod
    def pre_add_location_hook(
        cls, context: Any, af: Any, field_name: str, blob_key: Any, location: Any
    ) -> None:
        """Refuse an archive that lies elsewhere, since nobody could vouch for it."""
        raise exception.Forbidden(
            message=f"{field_name} must be uploaded: the package is read by the server"
        )

    @classmethod
    def pre_upload_hook(
        cls, context: Any, af: Any, field_name: str, blob_key: Any, fd: Any
    ) -> IO[bytes]:
        """Read the uploaded archive and check it against the artifact.

        :returns: the archive as a file, for Glare to store.
        """
        if field_name != table.ARCHIVE:
            raise exception.Forbidden(
                message=f"{field_name} cannot be uploaded: it is taken from the archive"
            )
        archive = _spool(fd)
        try:
            contents = cls._read(context, af, archive)
            # Nothing is visible yet: update_blob writes the fields in the same
            # transaction that makes the stored archive visible.
            context.murano_upload = uploads.prepare(context, af, archive, contents)
        except Exception:
            archive.close()
            raise
        archive.seek(0)
        return archive

    @classmethod
    def update_blob(cls, context: Any, af_id: str, field_name: str, values: Any) -> Any:
        """Save what is known of a blob; with a new archive, all that it says."""
        if field_name != table.ARCHIVE:
            return super().update_blob(context, af_id, field_name, values)
        if values and values["status"] == "saving":
            af = super().update_blob(context, af_id, field_name, values)
            # Glare goes on to keep there what is known of the blob.
            context.murano_blob = values
            values["id"] = af.archive["id"]
            return af
        upload: uploads.Upload | None = getattr(context, "murano_upload", None)
        # Else what was there before stays, if anything was.
        is_stored = bool(upload and values and values["url"] not in upload.replaced)
        goes_on = uploads.goes_on(context.murano_blob["id"])
        if upload and is_stored and goes_on:
            return cls._save_upload(context, af_id, values, upload)
        context.murano_upload = None
        if upload:
            upload.discard(context)
        if goes_on:
            return super().update_blob(context, af_id, field_name, values)
        if not is_stored:
            # Glare tells the client of what went wrong before.
            return None
        uploads.delete(context, [values["url"]])
        raise exception.Conflict(
            message="the upload took too long and was given up; upload the archive again"
        )

    @classmethod
    def _save_upload(cls, context: Any, af_id: str, values: Any, upload: uploads.Upload) -> Any:
        """Save an archive that has been stored, and all that it says, in one transaction."""
        changes = {
            "blobs": {table.ARCHIVE: values, **upload.blobs},
            "properties": dict(table.from_contents(upload.contents)),
            **table.common_from_contents(upload.contents),
        }
        saved = database.create_or_update(context, af_id, changes, database.get_session())
        # From here on, there is nothing to undo.
        context.murano_upload = None
        upload.finish(context)
        metrics.UPLOADS.inc()
        return cls.init_artifact(context, saved)

    @classmethod
    def delete(cls, context: Any, af: Any) -> Any:
        """Mark the artifact as deleted, and let go of what refers to its row.

        Glare deletes that row alone, which every database but SQLite refuses
        while there are properties or tags.
        """
        blobs = super().delete(context, af)
        session = database.get_session()
        with session.begin():
            for model in (models.ArtifactProperty, models.ArtifactTag):
                session.query(model).filter_by(artifact_id=af.id).delete()
        return blobs

    @classmethod
    def _read(cls, context: Any, af: Any, file: IO[bytes]) -> package.Contents:
        """Read an archive, and refuse it if it does not belong to the artifact."""
        try:
            with package.Archive.open(file, _limits()) as archive:
                contents = package.read_contents(archive)
                # What nobody could unpack is refused here, not at every engine.
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
    def _check_values(cls, context: Any, contents: package.Contents) -> None:
        """Refuse what Glare would store but could not read again."""
        problems = []
        af = cls(context)
        values = {**table.from_contents(contents), **table.common_from_contents(contents)}
        for field, value in values.items():
            try:
                setattr(af, field, value)
                table.check_characters(value)
            except (exception.GlareException, ValueError) as error:
                problems.append(package.Problem(Rule.MANIFEST_LIMIT, field, str(error)))
        if problems:
            raise package.InvalidManifest(problems)


def list_opts() -> list[tuple[str, list[Any]]]:
    """The options, for ``oslo-config-generator``."""
    return [(f"artifact_type:{table.TYPE_NAME}", OPTIONS)]


def _options() -> Any:
    return cfg.CONF[f"artifact_type:{table.TYPE_NAME}"]


def too_large(limit: int) -> exception.RequestEntityTooLarge:
    """The refusal of an archive of more than so many bytes, which is counted."""
    metrics.REFUSED.labels(Rule.ARCHIVE_SIZE).inc()
    return exception.RequestEntityTooLarge(
        message=f"the archive is larger than {limit} bytes [{Rule.ARCHIVE_SIZE}]"
    )


def _limits() -> Limits:
    options = _options()
    return Limits(
        archive_size=options.max_archive_size,
        unpacked_size=options.max_unpacked_size,
        entries=options.max_archive_entries,
        ratio=options.max_archive_ratio,
    )


def _check_characters(value: Any) -> None:
    try:
        table.check_characters(value)
    except ValueError as error:
        raise exception.BadRequest(message=f"the request has {error}") from error


def _spool(source: Any) -> IO[bytes]:
    """Copy an upload to a file that can seek."""
    limit = _limits().archive_size
    spool = tempfile.TemporaryFile(prefix="glare-murano-")  # noqa: SIM115 - Glare reads on
    size = 0
    try:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > limit:
                raise too_large(limit)
            spool.write(chunk)
    except Exception:
        spool.close()
        raise
    return spool
