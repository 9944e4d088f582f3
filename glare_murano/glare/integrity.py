# SPDX-License-Identifier: Apache-2.0

"""What must hold between packages when one of them comes, or goes.

A package becomes active only if what it requires is there, and public only if
that is public; the last package that an active one needs does not go. A check
sees the catalogue as it is at that moment; two requests at once may both pass.
What an active package requires is planned elsewhere: see ``dependencies``.
"""

import collections
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from glare.common import exception, policy
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models
from oslo_config import cfg
from oslo_log import log as logging

from glare_murano import fields
from glare_murano.glare import metrics, request_state
from glare_murano.glare.db.queries import VERSION, among, checked, looked_up, version_of
from glare_murano.package import Version, VersionSpec
from glare_murano.package.rules import Rule
from glare_murano.resolver import newest_first

LOG = logging.getLogger(__name__)

_MODES = [
    ("enforce", "Refuse it, with 409."),
    ("warn", "Let it pass, and log a warning."),
    ("off", "Do not look."),
]

# Options of the group [artifact_type:murano].
OPTIONS = [
    cfg.StrOpt(
        "check_requirements",
        choices=_MODES,
        default="enforce",
        help="What to do with a package that is to become active while nothing that its project "
        "can see satisfies one of its requirements. Drafts of the same project count once their "
        "archive is uploaded.",
    ),
    cfg.StrOpt(
        "check_public_requirements",
        choices=_MODES,
        default="enforce",
        help="What to do with a package that is to become public while no public package "
        "satisfies one of its requirements.",
    ),
    cfg.StrOpt(
        "check_dependents",
        choices=_MODES,
        default="enforce",
        help="What to do with the last package that an active one needs, when it is to be deleted "
        "or deactivated.",
    ),
]

# How many packages, or versions, one message names.
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

    def serves(self, owner: str) -> bool:
        """Whether what this project activates may count on it."""
        return self.is_public or self.owner == owner


def check_activation(context: Any, af: Any) -> None:
    """Hold that everything that a package requires is there.

    :param af: the artifact that is to become active.
    :raises glare.common.exception.Conflict: if the operator has it enforced.
    """
    _check(
        context,
        "check_requirements",
        Rule.REQUIREMENT_MISSING,
        lambda: _missing(af, lambda candidate: candidate.serves(af.owner), "package", "upload"),
    )


def check_publication(context: Any, af: Any) -> None:
    """Hold that everything that a package requires is public.

    :raises glare.common.exception.Conflict: if the operator has it enforced.
    """
    _check(
        context,
        "check_public_requirements",
        Rule.REQUIREMENT_PRIVATE,
        lambda: _missing(af, lambda candidate: candidate.is_public, "public package", "publish"),
    )


def check_removal(context: Any, af: Any) -> None:
    """Hold that no active package needs this one.

    :param af: the artifact that is to be deleted or deactivated.
    :raises glare.common.exception.Conflict: if the operator has it enforced.
    """
    if af.status == "active" or (af.status == "drafted" and _is_uploaded(af)):
        _check(
            context, "check_dependents", Rule.REQUIREMENT_LAST, lambda: _left_without(context, af)
        )


def _check(context: Any, option: str, rule: Rule, look: Callable[[], str]) -> None:
    """Do what the operator has chosen for a check."""
    mode = cfg.CONF[f"artifact_type:{fields.TYPE_NAME}"][option]
    if mode == "off":
        return
    problem = look()
    if not problem:
        return
    overridden = request_state.of(context).overrides_checks
    if mode == "enforce" and not overridden:
        metrics.REFUSED.labels(rule).inc()
        LOG.info("Refused: %s [%s]", problem, rule)
        raise exception.Conflict(message=f"{problem} [{rule}]")
    reason = "an administrator overrides the check" if overridden else f"{option} is warn"
    LOG.warning("Let pass, since %s: %s [%s]", reason, problem, rule)


def _missing(af: Any, counts: Callable[[_Candidate], bool], kind: str, remedy: str) -> str:
    """What an artifact requires, and no candidate that counts satisfies; empty if nothing."""
    # The engine looks nowhere else for what a package requires of itself.
    requirements = {fqn: text for fqn, text in af.requirements.items() if fqn != af.name}
    available: dict[str, set[Version]] = collections.defaultdict(set)
    for candidate in filter(counts, _candidates(requirements)):
        available[candidate.name].add(candidate.version)
    told = []
    for fqn, text in sorted(requirements.items()):
        if VersionSpec.of(text).select(available[fqn]) is None:
            there = _named(map(str, newest_first(available[fqn]))) or "no version"
            told.append(f"{fqn} in the range {text} (there is {there})")
    if not told:
        return ""
    return (
        f"{af.name} {af.version} requires what no {kind} satisfies: {_named(told)}; "
        f"{remedy} that first, or change the range"
    )


def _left_without(context: Any, af: Any) -> str:
    """Which active packages would lose what they need; empty if none."""
    version = Version(af.version)
    others = [
        candidate
        for candidate in _candidates([af.name], except_id=af.id)
        if candidate.name == af.name
    ]
    session = database.get_session()
    with session.begin():
        groups = [
            group
            for group in _groups(session, af)
            if group.spec.match(version) and not group.is_served(others, af)
        ]
        members = (name for group in groups for name in _members(session, af, group, context))
        # No more than a message names: there may be a group for each project.
        names = list(itertools.islice(members, _MAX_NAMED + 1))
    if not groups:
        return ""
    hidden = "" if names else "packages of other projects"
    return (
        f"{af.name} {af.version} is the last package that active ones need: "
        f"{_named(sorted(names)) or hidden}; upload another version in their range, or delete "
        f"or deactivate them first"
    )


@dataclasses.dataclass(frozen=True)
class _Group:
    """Active packages of one project that require a package in the same range."""

    text: str
    owner: str
    visibility: str

    @property
    def spec(self) -> VersionSpec:
        return VersionSpec.of(self.text)

    def is_served(self, candidates: Iterable[_Candidate], af: Any) -> bool:
        """Whether one of the candidates satisfies it in the place of the artifact."""
        needs_public = self.visibility == "public" and af.visibility == "public"
        return any(
            (candidate.is_public if needs_public else candidate.serves(self.owner))
            and self.spec.match(candidate.version)
            for candidate in candidates
        )


def _requiring(session: Any, af: Any, *columns: Any) -> Any:
    """Rows of the active packages that require an artifact's package, and can see the artifact."""
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
    if af.visibility == "public":
        return query
    return query.filter(models.Artifact.owner == af.owner)


def _groups(session: Any, af: Any) -> list[_Group]:
    rows = _requiring(
        session,
        af,
        models.ArtifactProperty.key_name,
        models.ArtifactProperty.string_value,
        models.Artifact.owner,
        models.Artifact.visibility,
    ).distinct()
    # A database may compare without regard to case.
    return [_Group(*row) for key_name, *row in rows if key_name == af.name]


def _members(session: Any, af: Any, group: _Group, context: Any) -> list[str]:
    """The packages of a group, as far as the caller may know of them."""
    see_all = policy.authorize("artifact:list_all_artifacts", {}, context, do_raise=False)
    if not (see_all or group.visibility == "public" or group.owner == context.project_id):
        return []
    rows = (
        _requiring(
            session,
            af,
            models.Artifact.name,
            *VERSION,
        )
        .filter(
            models.ArtifactProperty.string_value == group.text,
            models.Artifact.owner == group.owner,
            models.Artifact.visibility == group.visibility,
        )
        .limit(_MAX_NAMED + 1)
    )
    return [f"{row.name} {version_of(row)} ({af.name} {group.text})" for row in rows]


def _candidates(fqns: Iterable[str], except_id: str = "") -> list[_Candidate]:
    """Every active package of these names, and every draft whose archive is uploaded."""
    uploaded = (
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
                sa.and_(models.Artifact.status == "drafted", uploaded),
            )
        ),
    )
    session = database.get_session()
    with session.begin():
        return [
            _Candidate(row.name, version_of(row), row.owner, row.visibility, row.status)
            for row in looked_up(session.connection(), statement, fqns)
        ]


def _is_uploaded(af: Any) -> bool:
    archive: Mapping[str, Any] | None = af.archive
    return archive is not None and archive["status"] == "active"


def _named(names: Iterable[str]) -> str:
    """Names in a message: some of many, and that there are more."""
    found = list(names)
    told = ", ".join(found[:_MAX_NAMED])
    return f"{told} and more" if len(found) > _MAX_NAMED else told
