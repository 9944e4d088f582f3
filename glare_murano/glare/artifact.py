# SPDX-License-Identifier: Apache-2.0

"""The Glare artifact type ``murano``: a package with the contents of its manifest.

A client creates the artifact with a name (the FQN) and a version, uploads the
archive, and activates the artifact. The server reads all other fields from the
archive. Glare's option ``custom_artifact_types_modules`` names this module.
"""

from collections.abc import Mapping
from typing import IO, Any, Self, cast

from glare.common import exception
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models
from glare.objects import base
from glare.objects.meta import validators, wrappers
from oslo_versionedobjects import fields as ovo_fields

from glare_murano import fields as table
from glare_murano import package
from glare_murano.glare import (
    consistency,
    field_types,
    filter_limits,
    integrity,
    request_state,
    uploads,
)
from glare_murano.glare.interfaces import Artifact, RequestContext
from glare_murano.package.archive_rules import DEFAULT_LIMITS
from glare_murano.package.manifest import check_full_name
from glare_murano.package.rules import Rule

# Options of the group [artifact_type:murano].
OPTIONS = [*integrity.OPTIONS, *uploads.OPTIONS]


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
            filter_ops=(wrappers.FILTER_LIKE, *field_types.STRING_FILTERS),
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
        return uploads.limits().archive_size

    @classmethod
    def show(
        cls, context: RequestContext, artifact_id: str, get_any_artifact: bool = False
    ) -> Artifact:
        """Return an artifact, and expire its upload after ``upload_timeout``."""
        af: Artifact = super().show(context, artifact_id, get_any_artifact)
        if af.archive and af.archive["status"] == "saving":
            uploads.expire_overdue(artifact_id)
            af = super().show(context, artifact_id, get_any_artifact)
        return af

    @classmethod
    def list(
        cls, context: RequestContext, filters: Any, marker: Any, limit: Any, sort: Any, *rest: bool
    ) -> Any:
        """List artifacts; refuse pages sorted by ``activated_at``, which drafts lack."""
        if marker is not None and any(key == "activated_at" for key, _ in sort or ()):
            raise exception.BadRequest(
                "pages cannot be sorted by activated_at, which drafts lack; sort by "
                "created_at or updated_at"
            )
        return super().list(context, filters, marker, limit, sort, *rest)

    @classmethod
    def _parse_filter_values(cls, filters: Any) -> Any:
        parsed = super()._parse_filter_values(filters)
        filter_limits.check(parsed)
        return parsed

    @classmethod
    def delete(cls, context: RequestContext, af: Artifact) -> Any:
        """Mark an artifact as deleted, and delete its properties and tags."""
        blobs = super().delete(context, af)
        # Glare deletes only the artifact's row, which most databases then refuse.
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
        upload = request_state.upload_of(context)
        if upload.has_expired():
            return cls._refuse_expired_upload(context, upload)
        if upload.is_stored:
            return cls._save_upload(context, af_id, upload)
        return cls._roll_back_upload(context, af_id, upload, values)

    @classmethod
    def _begin_upload(cls, context: RequestContext, af_id: str, values: dict[str, Any]) -> Artifact:
        """Mark the archive as being saved, so that Glare refuses any other upload."""
        af: Artifact = super().update_blob(context, af_id, table.ARCHIVE, values)
        request_state.of(context).upload = uploads.Upload(af, values)
        return af

    @classmethod
    def _save_upload(cls, context: RequestContext, af_id: str, upload: uploads.Upload) -> Artifact:
        """Save the archive, its blobs and its fields in one transaction."""
        return cast(Artifact, cls.init_artifact(context, upload.save(context, af_id)))

    @classmethod
    def _roll_back_upload(
        cls, context: RequestContext, af_id: str, upload: uploads.Upload, values: Any
    ) -> Artifact:
        """Restore the metadata of the archive before the upload, if there was one."""
        upload.discard(context)
        return cast(Artifact, super().update_blob(context, af_id, table.ARCHIVE, values))

    @classmethod
    def _refuse_expired_upload(cls, context: RequestContext, upload: uploads.Upload) -> None:
        """Leave the artifact as another request has made it since."""
        upload.discard(context)
        # If the archive was not stored, Glare reports the reason itself.
        if upload.is_stored:
            raise exception.Conflict(
                "the upload took too long and has expired; upload the archive again"
            )

    @classmethod
    def pre_create_hook(cls, context: RequestContext, af: Artifact) -> None:
        """Refuse an invalid name, and characters that Glare cannot store."""
        try:
            check_full_name(af.name)
        except ValueError as error:
            raise exception.BadRequest(f"name: {error}") from error
        field_types.check_characters(af.to_dict())

    @classmethod
    def pre_update_hook_with_patch(cls, context: RequestContext, af: Self, json_patch: Any) -> None:
        """Refuse changes of the name, the version, and the contents of the package."""
        field_types.check_characters(list(json_patch))
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
            f"{field_name} must be uploaded, since the server reads the package"
        )

    @classmethod
    def pre_upload_hook(
        cls, context: RequestContext, af: Artifact, field_name: str, blob_key: Any, fd: IO[bytes]
    ) -> IO[bytes]:
        """Return the uploaded archive for Glare to store, after its checks."""
        if field_name != table.ARCHIVE:
            raise exception.Forbidden(
                f"{field_name} cannot be uploaded: it is taken from the archive"
            )
        return request_state.upload_of(context).receive(context, af, fd, cls._check_values)

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
