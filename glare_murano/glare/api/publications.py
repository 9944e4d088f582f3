# SPDX-License-Identifier: Apache-2.0

"""The resource ``publications``: activate packages, and make them public, all or none.

Glare changes each artifact in a transaction of its own. Here one transaction changes
all of them, and is rolled back if a check fails. So packages may require each other, and
no reader sees some of them without the others.
"""

import collections
import contextlib
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import webob
from glare.common import exception, policy
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models
from glare.notification import Notifier
from oslo_utils import timeutils
from sqlalchemy.engine import Connection

from glare_murano.glare import lifecycle_checks, policies
from glare_murano.glare.artifact import MuranoPackageArtifact
from glare_murano.glare.db import transactions
from glare_murano.glare.db.glare_database import GlareDatabase
from glare_murano.glare.interfaces import Artifact, RequestContext
from glare_murano.package import Version
from glare_murano.resolver import PackageVersion
from glare_murano.service import request_reading, schemas
from glare_murano.service.database import Viewer


class Change(NamedTuple):
    """A package of a publication, after its change.

    :ivar actions: which of ``activate`` and ``publish`` were necessary.
    """

    artifact: Artifact
    actions: tuple[str, ...]


# The problems of a publication, in the order of the checks.
_Problems = list[exception.GlareException]


def publish(req: webob.Request) -> webob.Response:
    """Activate packages, and make them public, all or none; only check them in a dry run."""
    body = request_reading.read_body(req, schemas.PUBLICATION)
    ids, is_dry_run = list(dict.fromkeys(body["ids"])), body.get("dry_run", False)
    changes = _publish(req.context, ids, body["visibility"], is_dry_run)
    if not is_dry_run:
        _notify(req.context, changes)
    keys = ("id", "name", "version", "status", "visibility")
    listed = [
        {
            **{key: getattr(af, key) for key in keys},
            "sha256": af.archive["sha256"],
            "actions": actions,
        }
        for af, actions in changes
    ]
    return webob.Response(json={"artifacts": listed})


@transactions.retry  # type: ignore[untyped-decorator]
def _publish(
    context: RequestContext, ids: Collection[str], visibility: str, is_dry_run: bool
) -> list[Change]:
    problems: _Problems = []
    # Policies may query other services, so they are checked before the artifacts are locked.
    found = _find(context, ids, problems)
    _authorize(context, found, visibility, problems)
    names = {(af.name, af.version) for af in found if visibility == "public" != af.visibility}
    transactions.remove_expired_locks(names)
    session = database.get_session()
    with session.begin() as transaction:
        # All locks come before any plain read: in MariaDB, the first plain read of a transaction
        # fixes the state that it sees.
        with transactions.public_names_locked(session.connection(), names):
            rows = transactions.lock_artifacts(session, [af.id for af in found])
            for row, af in zip(rows, found, strict=True):
                if (row.status, row.visibility) != (af.status, af.visibility):
                    raise transactions.Busy
            changes = [_change(context, row, visibility, problems) for row in rows]
            session.flush()
            _check(context, session.connection(), changes, problems)
            if problems:
                raise type(problems[0])("\n".join(map(str, problems)))
        if is_dry_run:
            transaction.rollback()
    return changes


def _find(context: RequestContext, ids: Collection[str], problems: _Problems) -> list[Artifact]:
    """Return the artifacts that the caller can see and change, by Glare's rules."""
    found = []
    rows = transactions.read_artifacts(database.get_session(), ids)
    for artifact_id in ids:
        with _collected(problems):
            row = rows.get(artifact_id)
            if row is not None and _may_change(context, row) and not _is_uploading(row):
                af = MuranoPackageArtifact.init_artifact(context, row.to_dict())
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
    """Check the names of each package, and Glare's policies for its new state."""
    for af in packages:
        with _collected(problems):
            lifecycle_checks.check_names(context, af)
        fields = {**af.to_dict(), "status": "active"}
        targets = {policies.ACTIVATE: fields}
        if visibility == "public":
            targets[policies.PUBLISH] = {**fields, "visibility": visibility}
        for rule, target in targets.items():
            if not policy.authorize(rule, target, context, do_raise=False):
                problems.append(exception.Forbidden(f"{_name(af)}: the policy {rule} forbids it"))


def _change(
    context: RequestContext, row: models.Artifact, visibility: str, problems: _Problems
) -> Change:
    """Change a package's row in the session, as Glare would."""
    af = MuranoPackageArtifact.init_artifact(context, row.to_dict())
    with _collected(problems):
        _check_state(af, visibility)
    is_needed = {
        "activate": af.status == "drafted",
        "publish": visibility == "public" != af.visibility,
    }
    actions = tuple(action for action in is_needed if is_needed[action])
    if actions:
        now = timeutils.utcnow()
        row.update({"status": "active", "visibility": visibility, "updated_at": now})
    if "activate" in actions:
        row.activated_at = now
    return Change(MuranoPackageArtifact.init_artifact(context, row.to_dict()), actions)


def _check_state(af: Artifact, visibility: str) -> None:
    if af.status not in ("drafted", "active"):
        raise exception.Conflict(f"{_name(af)} is {af.status}; publish another version")
    if af.archive is None or af.archive["status"] != "active":
        raise exception.Conflict(f"{_name(af)} has no archive yet; upload it first")
    if visibility == "private" != af.visibility:
        raise exception.Conflict(f"{_name(af)} is public, and cannot become private again")


def _check(
    context: RequestContext, connection: Connection, changes: Iterable[Change], problems: _Problems
) -> None:
    """Check the changed packages against each other, and against all other packages."""
    activated = [af for af, actions in changes if "activate" in actions]
    published = [af for af, actions in changes if "publish" in actions]
    with _collected(problems):
        lifecycle_checks.check_activation(context, connection, activated)
    with _collected(problems):
        lifecycle_checks.check_publication(context, connection, published)
    catalog = GlareDatabase(connection, Viewer(context.project_id, context.is_admin))
    public = collections.Counter(catalog.find_public({af.name for af in published}))
    for af in published:
        if public[PackageVersion(af.name, Version(af.version))] > 1:
            problems.append(exception.Conflict(f"another {_name(af)} is public already"))


@contextlib.contextmanager
def _collected(problems: _Problems) -> Iterator[None]:
    """Add a refusal to the problems instead of raising it."""
    try:
        yield
    except exception.GlareException as problem:
        problems.append(problem)


def _notify(context: RequestContext, changes: Iterable[Change]) -> None:
    """Send the notifications that Glare's own API would send."""
    for af, actions in changes:
        for action in ("update", *actions) if actions else ():
            Notifier.notify(context, f"artifact:{action}", af)


def _name(af: Artifact) -> str:
    return f"{af.name} {af.version}"
