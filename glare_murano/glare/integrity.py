# SPDX-License-Identifier: Apache-2.0

"""Integrity of the catalogue when a package is added or removed.

A package becomes active only if its requirements are satisfied, and public only if
public packages satisfy them. A package stays while it alone satisfies a requirement
of an active package. The checks are not locked: two requests at the same time may
both pass.
"""

import collections
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator

from glare.common import exception
from oslo_config import cfg
from oslo_log import log as logging
from sqlalchemy.engine import Connection, Row

from glare_murano import fields
from glare_murano.glare import metrics, policies, request_state
from glare_murano.glare.db import queries
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

# Option -> rule, help.
_CHECKS = {
    "check_requirements": (
        Rule.REQUIREMENT_MISSING,
        "activated, that its requirements are satisfied: by active packages that its project can "
        "see, or by drafts of the same project with an uploaded archive.",
    ),
    "check_public_requirements": (
        Rule.REQUIREMENT_PRIVATE,
        "published, that public packages satisfy its requirements.",
    ),
    "check_dependents": (
        Rule.REQUIREMENT_LAST,
        "deleted or deactivated, that no active package depends on it alone.",
    ),
}
# Options of the group [artifact_type:murano].
OPTIONS = [
    cfg.StrOpt(
        name,
        choices=_MODES,
        default="enforce",
        help=f"Whether to check, when a package is {description}",
    )
    for name, (_, description) in _CHECKS.items()
]

# Packages, or versions, that one message names.
_MAX_NAMED = 10


def check_activation(context: RequestContext, af: Artifact) -> None:
    """Check the requirements of a package before its activation.

    :raises glare.common.exception.Conflict: for unsatisfied ones, if the check is enforced.
    """
    is_usable = functools.partial(_is_usable, project_id=af.owner)
    find = functools.partial(_unsatisfied, af, is_usable, "package", "upload")
    _enforce(context, "check_requirements", find)


def check_publication(context: RequestContext, af: Artifact) -> None:
    """Check the requirements of a package among public packages.

    :raises glare.common.exception.Conflict: for unsatisfied ones, if the check is enforced.
    """
    find = functools.partial(_unsatisfied, af, _is_public, "public package", "publish")
    _enforce(context, "check_public_requirements", find)


def check_removal(context: RequestContext, af: Artifact) -> None:
    """Check the dependents of a package before its deletion or deactivation.

    :raises glare.common.exception.Conflict: if active packages depend on this package
        alone, and the check is enforced.
    """
    is_uploaded = af.archive is not None and af.archive["status"] == "active"
    if af.status == "active" or (af.status == "drafted" and is_uploaded):
        _enforce(context, "check_dependents", functools.partial(_dependent, context, af))


def _enforce(context: RequestContext, option: str, find_problem: Callable[[], str]) -> None:
    """Refuse a problem, or log it, as the option says."""
    rule = _CHECKS[option][0]
    mode = cfg.CONF[f"artifact_type:{fields.TYPE_NAME}"][option]
    problem = "" if mode == "off" else find_problem()
    if not problem:
        return
    is_overridden = request_state.of(context).overrides_checks
    if mode == "enforce" and not is_overridden:
        metrics.REFUSED.labels(rule).inc()
        LOG.info("Refused: %s [%s]", problem, rule)
        raise exception.Conflict(f"{problem} [{rule}]")
    reason = "an administrator overrides the check" if is_overridden else f"{option} is warn"
    LOG.warning("Accepted, since %s: %s [%s]", reason, problem, rule)


def _unsatisfied(af: Artifact, is_usable: Callable[[Row], bool], kind: str, remedy: str) -> str:
    """Return a message with the unsatisfied requirements; empty if there are none."""
    # The engine takes the package itself for its requirement on itself.
    requirements = {fqn: text for fqn, text in af.requirements.items() if fqn != af.name}
    available: dict[str, set[Version]] = collections.defaultdict(set)
    with queries.snapshot() as connection:
        for row in filter(is_usable, queries.find_candidates(connection, requirements)):
            available[row.name].add(queries.version_of(row))
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
    """Return a message with the packages that depend on an artifact alone; empty if none."""
    version = Version(af.version)
    viewer = policies.viewer_of(context)
    owner = None if af.visibility == "public" else af.owner
    with queries.snapshot() as connection:
        # Some databases ignore case.
        others = [
            row
            for row in queries.find_candidates(connection, [af.name], except_id=af.id)
            if row.name == af.name
        ]
        left = [
            group
            for group in queries.find_dependents(connection, af.name, owner)
            if group.key_name == af.name
            and VersionSpec.of(group.string_value).match(version)
            and not any(_satisfies(row, group, af) for row in others)
        ]
        if not left:
            return ""
        names = itertools.chain.from_iterable(
            _visible_names(connection, af, group, viewer) for group in left
        )
        # No more than a message names: there may be a group for each project.
        named = _join(sorted(itertools.islice(names, _MAX_NAMED + 1)))
    return (
        f"only {af.name} {af.version} satisfies requirements of active packages: "
        f"{named or 'packages of other projects'}; upload another version in their ranges, or "
        f"delete or deactivate them first"
    )


def _satisfies(candidate: Row, group: Row, replaced: Artifact) -> bool:
    """Return whether a candidate can replace an artifact for a group of dependents."""
    if group.visibility == "public" and replaced.visibility == "public":
        is_usable = _is_public(candidate)
    else:
        is_usable = _is_usable(candidate, group.owner)
    return is_usable and VersionSpec.of(group.string_value).match(queries.version_of(candidate))


def _is_usable(candidate: Row, project_id: str) -> bool:
    return _is_public(candidate) or candidate.owner == project_id


def _is_public(candidate: Row) -> bool:
    return bool(candidate.visibility == "public" and candidate.status == "active")


def _visible_names(
    connection: Connection, af: Artifact, group: Row, viewer: policies.Viewer
) -> Iterator[str]:
    """Yield the packages of a group with their requirement, if visible to the caller."""
    if group.visibility == "public" or group.owner == viewer.project_id or viewer.is_admin:
        range_ = group.string_value
        for row in queries.find_requiring(
            connection, af.name, range_, group.owner, group.visibility, _MAX_NAMED + 1
        ):
            yield f"{row.name} {queries.version_of(row)} ({af.name} {range_})"


def _join(names: Iterable[str]) -> str:
    """Join some of many names for a message."""
    named = list(itertools.islice(names, _MAX_NAMED + 1))
    joined = ", ".join(named[:_MAX_NAMED])
    return f"{joined} and more" if len(named) > _MAX_NAMED else joined
