# SPDX-License-Identifier: Apache-2.0

"""Integrity of the catalogue when a package is added or removed.

A package becomes active only if its requirements are satisfied, and public only
if public packages satisfy them. The last package that an active one needs stays.
The checks are not locked: two requests at the same time may both pass.
"""

import collections
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import sqlalchemy as sa
from glare.common import exception
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models
from oslo_config import cfg
from oslo_log import log as logging
from sqlalchemy import orm

from glare_murano import fields
from glare_murano.glare import metrics, policies, request_state
from glare_murano.glare.db.queries import VERSION, among, checked, looked_up, version_of
from glare_murano.glare.interfaces import Artifact, RequestContext
from glare_murano.package import Version, VersionSpec
from glare_murano.package.rules import Rule
from glare_murano.resolver import newest_first

LOG = logging.getLogger(__name__)

_MODES = [
    ("enforce", "Refuse the request with 409."),
    ("warn", "Accept the request and log a warning."),
    ("off", "Do not check."),
]

# Options of the group [artifact_type:murano].
OPTIONS = [
    cfg.StrOpt(
        "check_requirements",
        choices=_MODES,
        default="enforce",
        help="Whether to check, when a package is activated, that its requirements are satisfied: "
        "by active packages that its project can see, or by drafts of the same project with an "
        "uploaded archive.",
    ),
    cfg.StrOpt(
        "check_public_requirements",
        choices=_MODES,
        default="enforce",
        help="Whether to check, when a package is published, that public packages satisfy its "
        "requirements.",
    ),
    cfg.StrOpt(
        "check_dependents",
        choices=_MODES,
        default="enforce",
        help="Whether to check, when a package is deleted or deactivated, that no active package "
        "depends on it alone.",
    ),
]

# Packages, or versions, that one message names.
_MAX_NAMED = 10


@dataclasses.dataclass(frozen=True)
class _Candidate:
    """A package that may satisfy a requirement."""

    name: str
    version: Version
    owner: str
    visibility: str
    status: str

    @property
    def is_public(self) -> bool:
        return self.visibility == "public" and self.status == "active"

    def is_usable_by(self, project_id: str) -> bool:
        return self.is_public or self.owner == project_id


@dataclasses.dataclass(frozen=True)
class _Dependents:
    """The active packages of a project and visibility that require a package in one range."""

    range: str
    owner: str
    visibility: str

    def accept(self, candidate: _Candidate, replaced: Artifact) -> bool:
        """Return whether a candidate satisfies them in place of an artifact."""
        if self.visibility == "public" and replaced.visibility == "public":
            is_usable = candidate.is_public
        else:
            is_usable = candidate.is_usable_by(self.owner)
        return is_usable and VersionSpec.of(self.range).match(candidate.version)


def check_activation(context: RequestContext, af: Artifact) -> None:
    """Check that the requirements of a package are satisfied.

    :raises glare.common.exception.Conflict: if they are not, and the check is enforced.
    """

    def find_problem() -> str:
        return _unsatisfied(af, lambda found: found.is_usable_by(af.owner), "package", "upload")

    _enforce(context, "check_requirements", Rule.REQUIREMENT_MISSING, find_problem)


def check_publication(context: RequestContext, af: Artifact) -> None:
    """Check that public packages satisfy the requirements of a package.

    :raises glare.common.exception.Conflict: if they do not, and the check is enforced.
    """

    def find_problem() -> str:
        return _unsatisfied(af, lambda found: found.is_public, "public package", "publish")

    _enforce(context, "check_public_requirements", Rule.REQUIREMENT_PRIVATE, find_problem)


def check_removal(context: RequestContext, af: Artifact) -> None:
    """Check that no active package depends on this one alone.

    :param af: the artifact that is to be deleted or deactivated.
    :raises glare.common.exception.Conflict: if one does, and the check is enforced.
    """
    is_uploaded = af.archive is not None and af.archive["status"] == "active"
    if af.status == "active" or (af.status == "drafted" and is_uploaded):
        _enforce(
            context, "check_dependents", Rule.REQUIREMENT_LAST, lambda: _dependent(context, af)
        )


def _enforce(
    context: RequestContext, option: str, rule: Rule, find_problem: Callable[[], str]
) -> None:
    """Refuse a problem, or log it, as the option says."""
    mode = cfg.CONF[f"artifact_type:{fields.TYPE_NAME}"][option]
    problem = "" if mode == "off" else find_problem()
    if not problem:
        return
    is_overridden = request_state.of(context).overrides_checks
    if mode == "enforce" and not is_overridden:
        metrics.REFUSED.labels(rule).inc()
        LOG.info("Refused: %s [%s]", problem, rule)
        raise exception.Conflict(message=f"{problem} [{rule}]")
    reason = "an administrator overrides the check" if is_overridden else f"{option} is warn"
    LOG.warning("Accepted, since %s: %s [%s]", reason, problem, rule)


def _unsatisfied(
    af: Artifact, is_usable: Callable[[_Candidate], bool], kind: str, remedy: str
) -> str:
    """Return a message that names the unsatisfied requirements; empty if there are none."""
    # The engine takes the package itself for its requirement on itself.
    requirements = {fqn: text for fqn, text in af.requirements.items() if fqn != af.name}
    available: dict[str, set[Version]] = collections.defaultdict(set)
    for candidate in filter(is_usable, _candidates(requirements)):
        available[candidate.name].add(candidate.version)
    missing = [
        f"{fqn} in the range {text} "
        f"(available: {_join(map(str, newest_first(available[fqn]))) or 'none'})"
        for fqn, text in sorted(requirements.items())
        if VersionSpec.of(text).select(available[fqn]) is None
    ]
    if not missing:
        return ""
    return (
        f"no {kind} satisfies these requirements of {af.name} {af.version}: {_join(missing)}; "
        f"{remedy} them first, or change the ranges"
    )


def _dependent(context: RequestContext, af: Artifact) -> str:
    """Return a message that names packages which depend on an artifact alone; empty if none."""
    version = Version(af.version)
    others = [found for found in _candidates([af.name], except_id=af.id) if found.name == af.name]
    session = database.get_session()
    with session.begin():
        groups = [
            group
            for group in _find_dependents(session, af)
            if VersionSpec.of(group.range).match(version)
            and not any(group.accept(other, af) for other in others)
        ]
        if not groups:
            return ""
        names = itertools.chain.from_iterable(
            _visible_names(session, af, group, context) for group in groups
        )
        # No more than a message names: there may be a group for each project.
        named = _join(sorted(itertools.islice(names, _MAX_NAMED + 1)))
    return (
        f"active packages depend on {af.name} {af.version} alone: "
        f"{named or 'packages of other projects'}; upload another version in their ranges, or "
        f"delete or deactivate them first"
    )


def _find_dependents(session: orm.Session, af: Artifact) -> list[_Dependents]:
    rows = _requiring(
        session,
        af,
        models.ArtifactProperty.key_name,
        models.ArtifactProperty.string_value,
        models.Artifact.owner,
        models.Artifact.visibility,
    ).distinct()
    # Some databases ignore case.
    return [_Dependents(*row) for key_name, *row in rows if key_name == af.name]


def _visible_names(
    session: orm.Session, af: Artifact, group: _Dependents, context: RequestContext
) -> Iterator[str]:
    """Yield the packages of a group that the caller can see, with their requirement."""
    is_visible = group.visibility == "public" or group.owner == context.project_id
    if not is_visible and not policies.sees_all_projects(context):
        return
    rows = (
        _requiring(session, af, models.Artifact.name, *VERSION)
        .filter(
            models.ArtifactProperty.string_value == group.range,
            models.Artifact.owner == group.owner,
            models.Artifact.visibility == group.visibility,
        )
        .limit(_MAX_NAMED + 1)
    )
    for row in rows:
        yield f"{row.name} {version_of(row)} ({af.name} {group.range})"


def _requiring(session: orm.Session, af: Artifact, *columns: Any) -> orm.Query:
    """Select columns of the active packages that require a package and can see the artifact."""
    query = (
        session.query(*columns)
        .select_from(models.ArtifactProperty)
        .join(models.Artifact, models.Artifact.id == models.ArtifactProperty.artifact_id)
        .filter(
            models.ArtifactProperty.name == "requirements",
            models.ArtifactProperty.key_name == af.name,
            models.Artifact.type_name == fields.TYPE_NAME,
            models.Artifact.status == "active",
            models.Artifact.name != af.name,
        )
    )
    return query if af.visibility == "public" else query.filter(models.Artifact.owner == af.owner)


def _candidates(fqns: Iterable[str], except_id: str = "") -> list[_Candidate]:
    """Return the active packages with these names, and the drafts with an uploaded archive."""
    is_uploaded = (
        sa.select(models.ArtifactBlob.artifact_id)
        .where(
            models.ArtifactBlob.artifact_id == models.Artifact.id,
            models.ArtifactBlob.name == fields.ARCHIVE,
            models.ArtifactBlob.status == "active",
        )
        .exists()
    )
    statement = sa.select(
        models.Artifact.name,
        *VERSION,
        models.Artifact.owner,
        models.Artifact.visibility,
        models.Artifact.status,
    ).where(
        among(models.Artifact.name),
        models.Artifact.id != except_id,
        checked(models.Artifact.type_name == fields.TYPE_NAME),
        checked(
            sa.or_(
                models.Artifact.status == "active",
                sa.and_(models.Artifact.status == "drafted", is_uploaded),
            )
        ),
    )
    session = database.get_session()
    with session.begin():
        return [
            _Candidate(row.name, version_of(row), row.owner, row.visibility, row.status)
            for row in looked_up(session.connection(), statement, fqns)
        ]


def _join(names: Iterable[str]) -> str:
    """Join names for a message, which names some of many."""
    named = list(itertools.islice(names, _MAX_NAMED + 1))
    joined = ", ".join(named[:_MAX_NAMED])
    return f"{joined} and more" if len(named) > _MAX_NAMED else joined
