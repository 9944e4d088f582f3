# SPDX-License-Identifier: Apache-2.0

"""Integrity of Glare's catalogue when a package is added or removed.

The checks are those of ``service/requirement_checks.py`` and ``service/name_checks.py``. Here
they read Glare's database, are counted, and refuse in the form of Glare's errors.
"""

import contextlib
from collections.abc import Iterable, Iterator

from glare.common import exception
from sqlalchemy.engine import Connection

from glare_murano.glare import metrics, policies, request_state
from glare_murano.glare.db import queries
from glare_murano.glare.db.glare_database import GlareDatabase
from glare_murano.glare.interfaces import Artifact, RequestContext
from glare_murano.glare.policies import SETTINGS
from glare_murano.package.rules import Rule
from glare_murano.service import name_checks
from glare_murano.service.database import Viewer
from glare_murano.service.refusals import RefusedRequest
from glare_murano.service.requirement_checks import FailedCheck, RequirementChecks


def check_names(context: RequestContext, af: Artifact) -> None:
    """Check that a package has no name, and no classes, of other projects.

    An override of the other checks does not count here.

    :raises glare.common.exception.Forbidden: naming the prefix and its owners.
    """
    try:
        name_checks.check(
            SETTINGS.reserved_names(),
            af.name,
            af.class_definitions or (),
            af.owner,
            lambda: policies.may_publish(context, af.to_dict()),
        )
    except RefusedRequest as refusal:
        metrics.REFUSED.labels(Rule.NAME_RESERVED).inc()
        raise exception.Forbidden(str(refusal)) from refusal


def check_activation(
    context: RequestContext, connection: Connection, packages: Iterable[Artifact]
) -> None:
    """Check the requirements of packages that are being activated.

    :raises glare.common.exception.Conflict: for unsatisfied ones, if the check is enforced.
    """
    with _refusing():
        _checks(context, connection, _viewer(context)).check_activation(packages)


def check_publication(
    context: RequestContext, connection: Connection, packages: Iterable[Artifact]
) -> None:
    """Check the requirements of packages among public packages.

    :raises glare.common.exception.Conflict: for unsatisfied ones, if the check is enforced.
    """
    with _refusing():
        _checks(context, connection, _viewer(context)).check_publication(packages)


def check_removal(context: RequestContext, af: Artifact) -> None:
    """Check the dependents of a package before its deletion or deactivation.

    :raises glare.common.exception.Conflict: if active packages depend on this package
        alone, and the check is enforced.
    """
    is_uploaded = af.archive is not None and af.archive["status"] == "active"
    if af.status == "active" or (af.status == "drafted" and is_uploaded):
        viewer = policies.viewer_of(context)
        with _refusing(), queries.snapshot() as connection:
            _checks(context, connection, viewer).check_removal(af)


def warn_of_yank(context: RequestContext, af: Artifact) -> None:
    """Warn before a yank if active packages depend on this package alone."""
    if af.status == "active":
        viewer = policies.viewer_of(context)
        with queries.snapshot() as connection:
            warning = _checks(context, connection, viewer).warning_of_yank(af)
        if warning:
            request_state.of(context).warning = warning


def _viewer(context: RequestContext) -> Viewer:
    # Without policies, which may query other services: these checks do not depend on the caller.
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
