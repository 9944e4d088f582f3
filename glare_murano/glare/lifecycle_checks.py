# SPDX-License-Identifier: Apache-2.0

"""The checks before an artifact is created, activated, published, removed or yanked.

The checks are those of ``service/requirement_checks.py`` and ``service/name_checks.py``. This
module runs them on Glare's database, counts refusals, and raises Glare's errors.
"""

import contextlib
from collections.abc import Collection, Iterator

from glare.common import exception
from sqlalchemy.engine import Connection

from glare_murano.glare import metrics, policies, request_state
from glare_murano.glare.db.glare_database import GlareDatabase, snapshot
from glare_murano.glare.interfaces import Artifact, RequestContext
from glare_murano.glare.options import SETTINGS
from glare_murano.service import name_checks
from glare_murano.service.database import Viewer
from glare_murano.service.requirement_checks import FailedCheck, RequirementChecks


def check_names(context: RequestContext, af: Artifact) -> None:
    """Check that a package and its classes have no names that belong to others.

    An administrator cannot override this check.

    :raises glare.common.exception.Forbidden: naming the owners.
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


def check_activation(
    context: RequestContext, connection: Connection, packages: Collection[Artifact]
) -> None:
    """Check the requirements of packages before their activation.

    :raises glare.common.exception.Conflict: if some are not satisfied, and the check is enforced.
    """
    with _refusing():
        _checks(context, connection, _viewer(context)).check_activation(packages)


def check_publication(
    context: RequestContext, connection: Connection, packages: Collection[Artifact]
) -> None:
    """Check that public packages satisfy the requirements of packages.

    :raises glare.common.exception.Conflict: if some are not satisfied, and the check is enforced.
    """
    with _refusing():
        _checks(context, connection, _viewer(context)).check_publication(packages)


def check_removal(context: RequestContext, af: Artifact) -> None:
    """Check the dependents of a package before its deletion or deactivation.

    :raises glare.common.exception.Conflict: if only this package satisfies requirements of active
        packages, and the check is enforced.
    """
    is_uploaded = af.archive is not None and af.archive["status"] == "active"
    if af.status == "active" or (af.status == "drafted" and is_uploaded):
        viewer = policies.viewer_of(context)
        with _refusing(), snapshot() as connection:
            _checks(context, connection, viewer).check_removal(af)


def warn_of_yank(context: RequestContext, af: Artifact) -> None:
    """Warn before a yank if only this package satisfies requirements of active packages."""
    if af.status == "active":
        viewer = policies.viewer_of(context)
        with snapshot() as connection:
            warning = _checks(context, connection, viewer).warning_of_yank(af)
        if warning:
            request_state.of(context).warning = warning


def _viewer(context: RequestContext) -> Viewer:
    # No policy is checked: policies may query other services, and these checks need none.
    return Viewer(context.project_id, context.is_admin)


def _checks(context: RequestContext, connection: Connection, viewer: Viewer) -> RequirementChecks:
    database = GlareDatabase(connection, viewer)
    return RequirementChecks(database, SETTINGS, request_state.of(context).overrides_checks)


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except FailedCheck as refusal:
        metrics.REFUSED.labels(refusal.rule).inc(len(refusal.problems))
        raise exception.Conflict(str(refusal)) from refusal
