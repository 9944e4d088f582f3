# SPDX-License-Identifier: Apache-2.0

"""Handle the resource ``publications``, which activates packages and makes them public.

Glare's own API changes one artifact in a transaction. Here one transaction changes all packages of
a request, and is rolled back if a check fails. So the packages may require each other, and nobody
sees some of them without the others.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, cast

import webob
from glare.common import exception, policy
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models
from glare.notification import Notifier
from oslo_utils import timeutils
from sqlalchemy import orm
from sqlalchemy.engine import Connection

from glare_murano.glare import lifecycle_checks, policies
from glare_murano.glare.artifact import MuranoPackageArtifact
from glare_murano.glare.db import transactions
from glare_murano.glare.interfaces import Artifact, RequestContext
from glare_murano.service import request_reading, schemas
from glare_murano.service.package_locks import PackageLocks
from glare_murano.service.refusals import collected
from glare_murano.service.release_changes import ReleaseChange


class Change(NamedTuple):
    """A package in a request for publication.

    :ivar before: the package before its change.
    :ivar after: the package after its change.
    :ivar actions: the necessary actions: ``activate`` (activate the draft) and ``publish`` (make
        the package public); empty if nothing changes.
    """

    before: Artifact
    after: Artifact
    actions: tuple[str, ...]

    @property
    def of_release(self) -> ReleaseChange:
        """The same change as a ``ReleaseChange``, for the checks."""
        return ReleaseChange(self.before, self.after, self.before.status, self.after.status)


# The problems that were found in a publication, in the order of the checks.
_Problems = list[exception.GlareException]


def publish(req: webob.Request) -> webob.Response:
    """Activate all packages of a request or none, and make them public if requested.

    A dry run checks the packages, and changes nothing.
    """
    body = request_reading.read_body(req, schemas.PUBLICATION)
    ids, is_dry_run = list(dict.fromkeys(body["ids"])), body.get("dry_run", False)
    changes = _publish(req.context, ids, body["visibility"], is_dry_run)
    if not is_dry_run:
        _notify(req.context, changes)
    keys = ("id", "name", "version", "status", "visibility")
    listed = [
        {
            **{key: getattr(af, key) for key in keys},
            # A published package has an archive.
            "sha256": cast(Mapping[str, Any], af.archive)["sha256"],
            "actions": actions,
        }
        for _, af, actions in changes
    ]
    return webob.Response(json={"artifacts": listed})


@transactions.retry
def _publish(
    context: RequestContext, ids: Collection[str], visibility: str, is_dry_run: bool
) -> list[Change]:
    problems: _Problems = []
    # Policies are checked before the artifacts are locked, since their rules may query other
    # services.
    found = _find(context, ids, problems)
    _authorize(context, found, visibility, problems)
    changes = [_change(af, visibility, problems) for af in found]
    needed = [change for change in changes if change.actions]
    released = [change.of_release for change in needed]
    viewer = lifecycle_checks.viewer_of(context, released)
    session = database.get_session()
    rows: dict[str, models.Artifact] = {}

    def check(connection: Connection, locked: frozenset[str]) -> PackageLocks:
        if locked:
            rows.update(_read_unchanged(context, session, needed))
        try:
            return lifecycle_checks.check(context, viewer, released, connection, locked)
        except exception.Conflict as problem:
            problems.append(problem)
            return PackageLocks()

    lock_and_check = transactions.prepare(check)
    _raise(problems)
    if is_dry_run or not needed:
        return changes
    with session.begin():
        lock_and_check(session.connection())
        _raise(problems)
        for change in needed:
            _save(rows[change.before.id], change)
    return [_saved(context, rows, change) for change in changes]


def _raise(problems: _Problems) -> None:
    if problems:
        raise type(problems[0])("\n".join(map(str, problems)))


def _read_unchanged(
    context: RequestContext, session: orm.Session, changes: Collection[Change]
) -> dict[str, models.Artifact]:
    """Return the rows of locked artifacts by id.

    :param changes: the changes, with each artifact as it was read before the locks were taken.
    :raises transactions.Busy: if another request has changed an artifact before it was locked.
    """
    rows = transactions.read_artifacts(session, [change.before.id for change in changes])
    for change in changes:
        row = rows.get(change.before.id)
        if row is None or _artifact(context, row).to_dict() != change.before.to_dict():
            raise transactions.Busy
    return rows


def _save(row: models.Artifact, change: Change) -> None:
    """Set the status, the visibility and the times in the row of an artifact, as Glare does.

    The session of the row then writes the new values to the database.
    """
    now = timeutils.utcnow()
    after = {"status": change.after.status, "visibility": change.after.visibility}
    row.update({**after, "updated_at": now})
    if "activate" in change.actions:
        row.activated_at = now


def _saved(context: RequestContext, rows: Mapping[str, models.Artifact], change: Change) -> Change:
    row = rows.get(change.before.id)
    return change if row is None else change._replace(after=_artifact(context, row))


def _artifact(context: RequestContext, row: models.Artifact) -> Artifact:
    artifact: Artifact = MuranoPackageArtifact.init_artifact(context, row.to_dict())
    return artifact


def _find(context: RequestContext, ids: Collection[str], problems: _Problems) -> list[Artifact]:
    """Return those requested artifacts that Glare's rules allow the caller to see and change.

    :param ids: the requested ids.
    :param problems: for each other requested artifact, the refusal is added to this list.
    """
    found = []
    rows = transactions.read_artifacts(database.get_session(), ids)
    for artifact_id in ids:
        with collected(problems, exception.GlareException):
            row = rows.get(artifact_id)
            if row is not None and _may_change(context, row) and not _is_uploading(row):
                af = _artifact(context, row)
            else:
                # ``show`` raises Glare's own errors, and cancels an expired upload.
                af = MuranoPackageArtifact.show(context, artifact_id)
            if not _may_change(context, af):
                raise exception.Forbidden(f"{_name(af)} belongs to another project")
            found.append(af)
    return found


def _may_change(context: RequestContext, af: Artifact | models.Artifact) -> bool:
    return bool(context.is_admin or context.project_id == af.owner)


def _is_uploading(row: models.Artifact) -> bool:
    return any(blob.status == "saving" for blob in row.blobs)


def _authorize(
    context: RequestContext, packages: Iterable[Artifact], visibility: str, problems: _Problems
) -> None:
    """Check the names of packages, and check that Glare's policies permit their new state.

    :param visibility: the requested visibility.
    :param problems: refusals are added to this list.
    """
    for af in packages:
        with collected(problems, exception.GlareException):
            lifecycle_checks.check_names(context, af)
        fields = {**af.to_dict(), "status": "active"}
        targets = {policies.ACTIVATE: fields}
        if visibility == "public":
            targets[policies.PUBLISH] = {**fields, "visibility": visibility}
        for rule, target in targets.items():
            if not policy.authorize(rule, target, context, do_raise=False):
                problems.append(exception.Forbidden(f"{_name(af)}: the policy {rule} forbids it"))


def _change(af: Artifact, visibility: str, problems: _Problems) -> Change:
    """Return the change that the publication of a package needs.

    :param af: the package before its publication.
    :param visibility: the requested visibility.
    :param problems: if the package cannot be published, the refusal is added to this list.
    """
    with collected(problems, exception.GlareException):
        _check_state(af, visibility)
    is_needed = {
        "activate": af.status == "drafted",
        "publish": visibility == "public" != af.visibility,
    }
    actions = tuple(action for action in is_needed if is_needed[action])
    after = af.obj_clone()
    if actions:
        after.status, after.visibility = "active", visibility
    return Change(af, after, actions)


def _check_state(af: Artifact, visibility: str) -> None:
    if af.status not in ("drafted", "active"):
        raise exception.Conflict(f"{_name(af)} is {af.status}; publish another version")
    if af.archive is None or af.archive["status"] != "active":
        raise exception.Conflict(f"{_name(af)} has no archive yet; upload it first")
    if visibility == "private" != af.visibility:
        raise exception.Conflict(f"{_name(af)} is public, and cannot become private again")


def _notify(context: RequestContext, changes: Iterable[Change]) -> None:
    """Send the notifications that Glare's own API would send for the same changes."""
    for _, af, actions in changes:
        for action in ("update", *actions) if actions else ():
            Notifier.notify(context, f"artifact:{action}", af)


def _name(af: Artifact) -> str:
    return f"{af.name} {af.version}"
