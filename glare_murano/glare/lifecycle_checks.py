# SPDX-License-Identifier: Apache-2.0

"""Check an artifact before it is created, activated, published, removed or yanked.

This module runs the checks of ``service.release_changes`` and ``service.name_checks`` on Glare's
database, counts refusals, and raises Glare's errors.
"""

from collections.abc import Collection

from glare.common import exception
from sqlalchemy.engine import Connection

from glare_murano.glare import metrics, policies, request_state
from glare_murano.glare.db.glare_database import GlareDatabase
from glare_murano.glare.interfaces import Artifact, RequestContext
from glare_murano.glare.options import SETTINGS
from glare_murano.service import budgets, name_checks, release_changes
from glare_murano.service.database import Viewer
from glare_murano.service.package_locks import PackageLocks
from glare_murano.service.refusals import RefusedRequest
from glare_murano.service.release_changes import ReleaseChange
from glare_murano.service.requirement_checks import FailedCheck


def check_names(context: RequestContext, af: Artifact) -> None:
    """Check that the names of a package and its classes do not belong to others.

    An administrator cannot override this check.

    :raises glare.common.exception.Forbidden: if a name belongs to others; see
        ``service.name_checks``.
    """
    try:
        name_checks.check(
            SETTINGS,
            af.name,
            af.class_definitions or (),
            af.owner,
            lambda: policies.may_publish(context, af.to_dict()),
        )
    except name_checks.RefusedNames as refusal:
        for rule in {problem.rule for problem in refusal.problems}:
            metrics.REFUSED.labels(rule).inc()
        raise exception.Forbidden(str(refusal)) from refusal


def check(
    context: RequestContext,
    viewer: Viewer,
    changes: Collection[ReleaseChange],
    connection: Connection,
    locked: frozenset[str],
) -> PackageLocks:
    """Check changes of packages. A warning is stored in the request's state, for the response.

    :param viewer: the caller, whose rights decide which packages a message may name.
    :param changes: the changes.
    :param connection: the connection to Glare's database.
    :param locked: the ids of the locked packages; empty before the transaction of the changes.
    :returns: the locks that the changes need.
    :raises glare.common.exception.Conflict: if there are problems. The message has a line for each.
    :raises glare.common.exception.BadRequest: if the checks take too long.
    """
    overrides = request_state.of(context).overrides_checks
    database = GlareDatabase(connection, viewer, budgets.of_look_ups(SETTINGS))
    try:
        checked = release_changes.check(changes, database, SETTINGS, overrides, locked)
    except RefusedRequest as refusal:
        raise exception.BadRequest(str(refusal)) from refusal
    for problem in checked.problems:
        if isinstance(problem, FailedCheck):
            metrics.REFUSED.labels(problem.rule).inc(len(problem.problems))
    if checked.problems:
        raise exception.Conflict("\n".join(map(str, checked.problems)))
    request_state.of(context).warning = checked.warning
    return checked.locks


def viewer_of(context: RequestContext, changes: Collection[ReleaseChange]) -> Viewer:
    """Return the caller of a request as a ``Viewer``, for ``check``.

    If a change yanks a package, or deactivates or deletes an active package, a message of ``check``
    may name packages of other projects that require it. Then a policy decides whether the caller
    sees the packages of all projects. For all other changes, the policy is not evaluated, and only
    an administrator sees the packages of all projects.

    Call this function before the transaction, since policy rules may query other services.
    """
    if any(change.is_removed or change.is_yanked for change in changes):
        return policies.viewer_of(context)
    return Viewer(context.project_id, context.is_admin)
