# SPDX-License-Identifier: Apache-2.0

"""Define the Glare artifact type ``murano``: a package with the contents of its manifest.

A client creates the artifact with a name (the FQN) and a version, uploads the archive, and
activates the artifact. The server reads all other fields from the archive. Glare's option
``custom_artifact_types_modules`` names this module.
"""

from collections.abc import Mapping
from typing import Any, Self, cast

from glare.common import exception
from glare.db.sqlalchemy import api as database
from glare.notification import Notifier
from glare.objects import base
from glare.objects.meta import validators, wrappers
from oslo_utils import timeutils
from oslo_versionedobjects import fields as ovo_fields
from sqlalchemy.engine import Connection

from glare_murano import fields as table
from glare_murano import preconditions
from glare_murano.glare import (
    field_types,
    lifecycle_checks,
    list_filters,
    manifest_mismatches,
    options,
    request_state,
    uploads,
)
from glare_murano.glare.db import artifact_reads, transactions
from glare_murano.glare.interfaces import Artifact, Readable, RequestContext
from glare_murano.package.archive_rules import DEFAULT_LIMITS
from glare_murano.package.errors import listed
from glare_murano.package.manifest import check_fqn
from glare_murano.service import notifications
from glare_murano.service.package_locks import PackageLocks
from glare_murano.service.release_changes import DELETED, ReleaseChange


class MuranoPackageArtifact(base.BaseArtifact):  # type: ignore[misc]
    """A version of a Murano package."""

    # 1.0: the first version.
    # 1.1: a client may send fields of the manifest, which are checked against it.
    # 1.2: a list has no duplicates.
    # 1.3: the field ``yanked``.
    VERSION = "1.3"

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

    artifact_type_opts = options.OPTIONS
    db_api = artifact_reads.ArtifactApi()
    # The artifact as it was before the JSON patch that is being applied.
    _before_patch: Self | None = None

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
        """Return the largest size of an uploaded archive, in bytes.

        Glare calls this method. A quota in Glare may be smaller.
        """
        return uploads.limits().archive_size

    @classmethod
    def show(
        cls, context: RequestContext, artifact_id: str, get_any_artifact: bool = False
    ) -> Artifact:
        """Return an artifact. If its upload has expired, cancel the upload first.

        If the request has already begun an upload, return the artifact as it was when the upload
        began.

        :raises glare.common.exception.Conflict: if the request is an upload, and another upload to
            the artifact is running.
        """
        request_state.check_filtered(context)
        state = request_state.of(context)
        if state.begun:
            # Glare reads the artifact again before it saves the archive, but uses only its class.
            return state.begun
        af: Artifact = super().show(context, artifact_id, get_any_artifact)
        if af.archive and af.archive["status"] == "saving":
            # The id of the artifact is used, since some databases ignore the case of the id in a
            # request.
            uploads.expire(timeutils.utcnow(), af.id)
            af = super().show(context, artifact_id, get_any_artifact)
            if state.is_upload:
                uploads.check_idle(af)
        return af

    @classmethod
    def list(
        cls, context: RequestContext, filters: Any, marker: Any, limit: Any, sort: Any, *rest: bool
    ) -> Any:
        """List artifacts.

        Glare calls this method or ``show`` for every request, so both methods check that the
        request has passed the filters of this project.

        When a request creates an artifact, Glare calls this method without a limit, and needs only
        the number of artifacts. Then only this number is returned, and no artifacts.

        :raises glare.common.exception.BadRequest: if the filters or the sorting are not valid.
        """
        request_state.check_filtered(context)
        list_filters.check_sorting(sort, marker)
        if limit is None:
            return {"artifacts": [], "total_count": cls._count(context, filters)}
        return super().list(context, filters, marker, limit, sort, *rest)

    @classmethod
    def _count(cls, context: RequestContext, filters: Any) -> int:
        """Return the number of artifacts that match filters, without reading the artifacts."""
        combiner = cls.DEFAULT_QUERY_COMBINER
        parsed = [
            *cls._parse_filter_values(filters),
            ("status", None, "neq", None, "deleted", combiner),
            ("type_name", None, "eq", None, cls.get_type_name(), combiner),
        ]
        count: int = database.get_artifact_count(context, database.get_session(), parsed)
        return count

    @classmethod
    def _parse_filter_values(cls, filters: Any) -> Any:
        return list_filters.parse(filters, super()._parse_filter_values)

    def save(self, context: RequestContext) -> Artifact:
        """Save the changes that a JSON patch has made in the artifact, and return the artifact.

        :raises glare.common.exception.BadRequest: if the artifact becomes too large.
        :raises glare.common.exception.Conflict: if another request has changed the artifact since
            it was read, or if a check of packages fails.
        """
        before = self._before_patch or self
        _check_totals(_values(self), _values(before))
        saved = cast(Artifact, self.init_artifact(context, self._save(context, before)))
        if saved.yanked != before.yanked:
            Notifier.notify(context, f"artifact:{notifications.yank_verb(saved.yanked)}", saved)
        return saved

    @transactions.retry
    def _save(self, context: RequestContext, before: Self) -> dict[str, Any]:
        """Save the changes of a patch. The transaction first locks packages and checks the changes.

        :param before: the artifact before the patch.
        """
        is_yanked = bool(self.yanked and not before.yanked)
        change = ReleaseChange(before, self, before.status, self.status, is_yanked=is_yanked)
        viewer = lifecycle_checks.viewer_of(context, [change])

        def check(connection: Connection, locked: frozenset[str]) -> PackageLocks:
            self._check_unchanged(connection, before)
            _check_precondition(context, before)
            return lifecycle_checks.check(context, viewer, [change], connection, locked)

        values = self.db_api._serialize_values(self.obj_changes_to_primitive())
        lock_and_check = transactions.prepare(check)
        return transactions.update(context, self.id, values, lock_and_check)

    def _check_unchanged(self, connection: Connection, before: Self) -> None:
        """Check that no other request has changed the artifact since it was read.

        :raises glare.common.exception.Conflict: if another request has changed the artifact.
        """
        row = transactions.read_state(connection, self.id)
        state = (before.status, before.visibility, self.updated_at.replace(tzinfo=None))
        # MariaDB stores times in whole seconds, so an upload may leave the time as it was.
        is_same = uploads.has_archive(connection, self.id, before.archive)
        if (row.status, row.visibility, row.updated_at) != state or not is_same:
            raise transactions.changed(row)

    def to_notification(self) -> dict[str, Any]:
        """Return the content of a notification, with the user who has sent the request."""
        return {**super().to_notification(), "initiator": notifications.initiator(self._context)}

    @classmethod
    def delete(cls, context: RequestContext, af: Artifact) -> dict[str, Any]:
        """Delete an artifact and its blobs.

        :returns: an empty mapping of blobs, so that Glare itself deletes nothing.
        :raises glare.common.exception.Conflict: if another request has changed the artifact's state
            or visibility, or if only this package satisfies requirements of active packages.
        """
        change = ReleaseChange(af, af, af.status, DELETED)
        viewer = lifecycle_checks.viewer_of(context, [change])

        def check(connection: Connection, locked: frozenset[str]) -> PackageLocks:
            row = transactions.read_state(connection, af.id)
            if (row.status, row.visibility) != (af.status, af.visibility):
                raise transactions.changed(row)
            return lifecycle_checks.check(context, viewer, [change], connection, locked)

        uploads.delete_artifact(context, af.id, check)
        return {}

    @classmethod
    def update_blob(
        cls, context: RequestContext, af_id: str, field_name: str, values: dict[str, Any] | None
    ) -> Artifact | None:
        """Begin, save or roll back the upload of an archive.

        Glare calls this method twice. The first call, with the status ``saving``, begins the
        upload. Then Glare stores the archive. The second call saves the upload; if Glare could not
        store the archive, the second call rolls back the upload.

        :param field_name: the name of the blob, which must be the archive.
        :param values: the metadata of the archive; None if the artifact had no archive before, and
            Glare could not store the new one.
        :returns: the artifact; None after a rollback.
        :raises glare.common.exception.Forbidden: for any other blob than the archive.
        """
        if field_name != table.ARCHIVE:
            raise exception.Forbidden(
                f"{field_name} cannot be uploaded: it is taken from the archive"
            )
        state = request_state.of(context)
        if values and values["status"] == "saving":
            upload = uploads.Upload(af_id, values)
            saved = upload.begin(context)
            state.upload = upload
            state.begun = cls.init_artifact(context, saved)
            return cast(Artifact, state.begun)
        if request_state.upload_of(context).is_stored:
            saved = request_state.upload_of(context).save(context)
        else:
            # Glare itself reports the reason for the rollback.
            request_state.upload_of(context).roll_back(context)
            return None
        return cast(Artifact, cls.init_artifact(context, saved))

    @classmethod
    def pre_create_hook(cls, context: RequestContext, af: Artifact) -> None:
        """Check the name and the size of a new artifact.

        :raises glare.common.exception.BadRequest: if the name is not valid, or if the artifact is
            too large.
        :raises glare.common.exception.Forbidden: if the name belongs to others.
        """
        try:
            check_fqn(af.name, table.MAX_NAME)
        except ValueError as error:
            raise exception.BadRequest(f"name: {error}") from error
        _check_totals(_values(af), {})
        lifecycle_checks.check_names(context, af)

    @classmethod
    def pre_update_hook_with_patch(cls, context: RequestContext, af: Self, json_patch: Any) -> None:
        """Check that a patch changes only fields that a client may change.

        :raises glare.common.exception.Forbidden: if the patch changes the name, the version, or a
            field that was read from the archive.
        :raises glare.common.exception.BadRequest: if the patch cannot be applied.
        """
        manifest_mismatches.check_patch(af, json_patch)
        af._before_patch = af.obj_clone()

    def obj_changes_to_primitive(self) -> dict[str, Any]:
        """Return the changed fields, with None instead of an empty ``yanked``.

        Glare saves no row for None, so packages that are not yanked have no row for ``yanked``. A
        filter finds these packages by the missing row.
        """
        changes: dict[str, Any] = super().obj_changes_to_primitive()
        if changes.get("yanked") == "":
            changes["yanked"] = None
        return changes

    def obj_reset_changes(self, fields: Any = None, recursive: bool = False) -> None:
        """Mark fields as unchanged, unless an earlier operation of the same patch has changed them.

        Glare calls this method after an operation that leaves a field unchanged, even if an earlier
        operation has changed the field. Glare's own method would then lose the earlier change.
        """
        before = self._before_patch
        if fields and before:
            now, then = self.to_dict(), before.to_dict()
            fields = [field for field in fields if now[field] == then[field]]
            if not fields:
                return
        super().obj_reset_changes(fields, recursive)

    @classmethod
    def pre_activate_hook(cls, context: RequestContext, af: Artifact) -> None:
        """Check the names of a package before its activation, and check that no upload is running.

        ``save`` makes all other checks.
        """
        lifecycle_checks.check_names(context, af)
        uploads.check_idle(af)

    @classmethod
    def pre_reactivate_hook(cls, context: RequestContext, af: Artifact) -> None:
        """Check the names of a package before its reactivation. ``save`` makes all other checks."""
        lifecycle_checks.check_names(context, af)

    pre_publish_hook = pre_reactivate_hook

    @classmethod
    def pre_upload_hook(
        cls, context: RequestContext, af: Artifact, field_name: str, blob_key: Any, fd: Readable
    ) -> Readable:
        """Read and check an uploaded archive.

        :param fd: the body of the request.
        :returns: the archive, which Glare then stores.
        :raises glare.common.exception.GlareException: if the archive is refused.
        """
        try:
            return request_state.upload_of(context).receive(context, af, fd)
        except exception.GlareException:
            raise
        except Exception as error:
            # Glare would answer any other error with 400, as if the archive were wrong.
            raise exception.GlareException(
                "the archive could not be read; see Glare's log"
            ) from error


def _values(af: Artifact) -> dict[str, Any]:
    """Return the fields that count for the limits of a package.

    ``yanked`` does not count, so that every package can be yanked. Fields without a value are left
    out.
    """
    names = (*table.COMMON, *(field.name for field in table.FIELDS if field.name != "yanked"))
    values = af.to_dict()
    return {name: values[name] for name in names if values[name] is not None}


def _check_totals(values: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    if problems := table.find_excess_of_totals(values, before):
        raise exception.BadRequest(listed(problems))


def _check_precondition(context: RequestContext, before: Artifact) -> None:
    if changed := preconditions.find_changed(request_state.of(context).unchanged, before.to_dict()):
        raise exception.Conflict(
            f"another request has changed {changed} of {before.name} {before.version}; read the "
            f"package again, and repeat the change"
        )


def list_opts() -> list[tuple[str, list[Any]]]:
    """Return the options by group, for ``oslo-config-generator``."""
    return [(options.GROUP, options.OPTIONS)]
