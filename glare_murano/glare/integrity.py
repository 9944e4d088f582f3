# SPDX-License-Identifier: Apache-2.0

"""Integrity of the catalogue when a package is added or removed.

A package becomes active only if its requirements are satisfied, and public only if
public packages satisfy them. A package stays while it alone satisfies a requirement
of an active package. A yanked package satisfies only ranges of exactly its version. Packages
that engines provide satisfy requirements, too. The checks are not locked: two requests at
the same time may both pass.
"""

import collections
import functools
import itertools
from collections.abc import Callable, Container, Iterable, Iterator

from glare.common import exception
from oslo_config import cfg
from oslo_log import log as logging
from sqlalchemy.engine import Connection, Row

from glare_murano import fields
from glare_murano.glare import metrics, policies, provided, request_state
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

_PROVIDED_HINT = (
    "if engines provide one as an extension plug-in, the operator names it in the option "
    "provided_packages"
)
# Packages, or versions, that one message names.
_MAX_NAMED = 10


def check_activation(
    context: RequestContext, connection: Connection, packages: Iterable[Artifact]
) -> None:
    """Check the requirements of packages that are being activated.

    :raises glare.common.exception.Conflict: for unsatisfied ones, if the check is enforced.
    """
    find = functools.partial(_unsatisfied, connection, packages, _is_usable, "visible", "upload")
    _enforce(context, "check_requirements", find)


def check_publication(
    context: RequestContext, connection: Connection, packages: Iterable[Artifact]
) -> None:
    """Check the requirements of packages among public packages.

    :raises glare.common.exception.Conflict: for unsatisfied ones, if the check is enforced.
    """
    find = functools.partial(_unsatisfied, connection, packages, _is_public, "public", "publish")
    _enforce(context, "check_public_requirements", find)


def check_removal(context: RequestContext, af: Artifact) -> None:
    """Check the dependents of a package before its deletion or deactivation.

    :raises glare.common.exception.Conflict: if active packages depend on this package
        alone, and the check is enforced.
    """
    is_uploaded = af.archive is not None and af.archive["status"] == "active"
    if af.status == "active" or (af.status == "drafted" and is_uploaded):
        _enforce(context, "check_dependents", functools.partial(_last, context, af))


def warn_of_yank(context: RequestContext, af: Artifact) -> None:
    """Warn before a yank if active packages depend on this package alone."""
    mode = cfg.CONF[f"artifact_type:{fields.TYPE_NAME}"].check_dependents
    if af.status != "active" or mode == "off":
        return
    version = Version(af.version)
    dependents = _dependents(context, af, lambda spec: not spec.is_exactly(version))
    if dependents:
        warning = (
            f"no version of {af.name} is left for requirements of active packages, now that "
            f"{af.version} is yanked: {dependents}; upload another version in their ranges"
        )
        LOG.warning("%s", warning)
        request_state.of(context).warning = warning


def _enforce(
    context: RequestContext, option: str, find_problems: Callable[[], Iterable[str]]
) -> None:
    """Refuse problems, or log them, as the option says."""
    rule = _CHECKS[option][0]
    mode = cfg.CONF[f"artifact_type:{fields.TYPE_NAME}"][option]
    problems = [] if mode == "off" else [f"{problem} [{rule}]" for problem in find_problems()]
    if not problems:
        return
    is_overridden = request_state.of(context).overrides_checks
    if mode == "enforce" and not is_overridden:
        metrics.REFUSED.labels(rule).inc(len(problems))
        raise exception.Conflict("\n".join(problems))
    reason = "an administrator overrides the check" if is_overridden else f"{option} is warn"
    for problem in problems:
        LOG.warning("Accepted, since %s: %s", reason, problem)


def _unsatisfied(
    connection: Connection,
    packages: Iterable[Artifact],
    is_usable: Callable[[Row, str], bool],
    kind: str,
    remedy: str,
) -> Iterator[str]:
    """Yield a message for each package with unsatisfied requirements."""
    required = {fqn for af in packages for fqn in _requirements(af)}
    candidates: dict[str, list[Row]] = collections.defaultdict(list)
    for row in queries.find_candidates(connection, required):
        candidates[row.name].append(row)
    ids = (row.id for row in itertools.chain.from_iterable(candidates.values()))
    yanked = queries.find_yanked(connection, ids)
    for af in packages:
        missing = {}
        for fqn, text in sorted(_requirements(af).items()):
            available = [row for row in candidates[fqn] if is_usable(row, af.owner)]
            if not any(_is_in_range(row, VersionSpec.of(text), yanked) for row in available):
                missing[f"{fqn} in the range {text}"] = _describe(fqn, available, yanked)
        if missing:
            # The message must not show that another project has the package.
            unknown = f"missing, or not {kind}"
            listed = _join(f"{range_} ({found or unknown})" for range_, found in missing.items())
            hint = "" if all(missing.values()) else f"; {_PROVIDED_HINT}"
            yield (
                f"no {kind} package satisfies these requirements of {af.name} {af.version}: "
                f"{listed}; {remedy} them first, or change the ranges{hint}"
            )


def _requirements(af: Artifact) -> dict[str, str]:
    """Return the requirements that packages of the catalogue have to satisfy."""
    return {
        fqn: text
        for fqn, text in af.requirements.items()
        # The engine takes the package itself for its requirement on itself.
        if fqn != af.name and not _is_provided(fqn, VersionSpec.of(text))
    }


def _is_provided(fqn: str, spec: VersionSpec) -> bool:
    return any(map(spec.match, provided.packages().get(fqn, ())))


def _describe(fqn: str, available: Iterable[Row], yanked: Container[str]) -> str:
    """Return the versions of a package that exist, for a message; empty if there are none."""
    marks = {queries.version_of(row): " (yanked)" * (row.id in yanked) for row in available}
    published = [f"{version}{marks[version]}" for version in newest_first(marks)]
    of_engines = map(str, newest_first(provided.packages().get(fqn, ())))
    versions = {"available": _join(published), "provided by engines": _join(of_engines)}
    return "; ".join(f"{where}: {found}" for where, found in versions.items() if found)


def _last(context: RequestContext, af: Artifact) -> Iterator[str]:
    """Yield a message if packages depend on an artifact alone."""
    if dependents := _dependents(context, af, lambda spec: True):
        yield (
            f"only {af.name} {af.version} satisfies requirements of active packages: {dependents}; "
            f"upload another version in their ranges, or delete or deactivate them first"
        )


def _dependents(
    context: RequestContext, af: Artifact, concerns: Callable[[VersionSpec], bool]
) -> str:
    """Return the packages that depend on an artifact alone, for a message; empty if none.

    :param concerns: returns whether a range is affected.
    """
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
        yanked = queries.find_yanked(connection, (row.id for row in others))
        left = [
            group
            for group in queries.find_dependents(connection, af.name, owner)
            if group.key_name == af.name
            and (spec := VersionSpec.of(group.string_value)).match(version)
            and concerns(spec)
            and not _is_provided(af.name, spec)
            and not any(_satisfies(row, group, af, yanked) for row in others)
        ]
        if not left:
            return ""
        names = itertools.chain.from_iterable(
            _visible_names(connection, af, group, viewer) for group in left
        )
        # No more than a message names: there may be a group for each project.
        named = _join(sorted(itertools.islice(names, _MAX_NAMED + 1)))
    return named or "packages of other projects"


def _satisfies(candidate: Row, group: Row, replaced: Artifact, yanked: Container[str]) -> bool:
    """Return whether a candidate can replace an artifact for a group of dependents."""
    if group.visibility == "public" and replaced.visibility == "public":
        is_usable = _is_public(candidate, group.owner)
    else:
        is_usable = _is_usable(candidate, group.owner)
    return is_usable and _is_in_range(candidate, VersionSpec.of(group.string_value), yanked)


def _is_in_range(candidate: Row, spec: VersionSpec, yanked: Container[str]) -> bool:
    version = queries.version_of(candidate)
    return spec.is_exactly(version) if candidate.id in yanked else spec.match(version)


def _is_usable(candidate: Row, project_id: str) -> bool:
    return _is_public(candidate, project_id) or candidate.owner == project_id


def _is_public(candidate: Row, _project_id: str) -> bool:
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
