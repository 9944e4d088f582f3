# SPDX-License-Identifier: Apache-2.0

"""Checks of requirements when a package is added to a catalogue or removed.

A package becomes active only if its requirements are satisfied, and public only if public
packages satisfy them. A package is not removed while only this package satisfies a
requirement of an active package. A yanked package satisfies only ranges that are exactly its
version. Packages that engines provide satisfy requirements as well. The checks take no lock:
two requests at the same time may both pass.
"""

import collections
import functools
import itertools
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Protocol

from oslo_config import cfg
from oslo_log import log as logging

from glare_murano.eligibility import Eligibility
from glare_murano.package import Version, VersionSpec
from glare_murano.package.manifest import CORE_LIBRARY
from glare_murano.package.rules import Rule
from glare_murano.resolver import newest_first
from glare_murano.service.database import Database, DependentsRecord, PackageRecord
from glare_murano.service.refusals import RefusedRequest
from glare_murano.service.settings import Settings

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
        "deleted, deactivated or, in Glance, hidden from projects that can see it, that no active "
        "package depends on it alone.",
    ),
}
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
_CORE_LIBRARY_HINT = (
    f"{CORE_LIBRARY} is Murano's core library, which an administrator publishes for all projects"
)
# The most packages, or versions, that one message names.
_MAX_NAMED = 10


_Concerns = Callable[[DependentsRecord, VersionSpec], bool]


class Checked(Protocol):
    """An added or removed package."""

    @property
    def id(self) -> str:
        """The id of the artifact or the image."""

    @property
    def name(self) -> str:
        """The FQN of the package."""

    @property
    def version(self) -> str:
        """The version of the package."""

    @property
    def owner(self) -> str:
        """The project that owns the package."""

    @property
    def visibility(self) -> str:
        """``private``, ``public``, or another visibility of the service."""

    @property
    def requirements(self) -> Mapping[str, str]:
        """The requirements of the package: FQN -> range."""


class FailedCheck(RefusedRequest):
    """The refusal of a request whose check has failed.

    :ivar rule: the failed check.
    :ivar problems: a line for each problem.
    """

    def __init__(self, rule: Rule, problems: list[str]) -> None:
        super().__init__(HTTPStatus.CONFLICT, "\n".join(problems))
        self.rule = rule
        self.problems = problems


class RequirementChecks:
    """The checks of one request.

    :param overrides: whether an administrator overrides the checks.
    """

    def __init__(self, database: Database, settings: Settings, overrides: bool = False) -> None:
        self._database = database
        self._settings = settings
        self._overrides = overrides

    def check_activation(self, packages: Collection[Checked]) -> None:
        """Check the requirements of packages before their activation.

        :raises FailedCheck: if some are not satisfied, and the check is enforced.
        """
        find = functools.partial(self._unsatisfied, packages, _is_usable, "visible", "upload")
        self._enforce("check_requirements", find)

    def check_publication(self, packages: Collection[Checked]) -> None:
        """Check that public packages satisfy the requirements of packages.

        :raises FailedCheck: if some are not satisfied, and the check is enforced.
        """
        find = functools.partial(self._unsatisfied, packages, _is_public, "public", "publish")
        self._enforce("check_public_requirements", find)

    def check_removal(self, package: Checked) -> None:
        """Check the dependents of a package before its deletion or deactivation.

        :raises FailedCheck: if only this package satisfies requirements of active packages, and
            the check is enforced.
        """
        self._enforce("check_dependents", functools.partial(self._last, package, _any))

    def check_hiding(self, package: Checked, keeping: Collection[str] = ()) -> None:
        """Check the dependents of a package before it is hidden from projects that can see it.

        :param keeping: the other projects that can still see the package.
        :raises FailedCheck: if the check is enforced, and a dependent would have no package in its
            range. The dependents are the packages of projects that can no longer see the package
            and, if the package was public, all public packages.
        """
        projects = {package.owner, *keeping}
        is_public = package.visibility == "public"

        def concerns(group: DependentsRecord, _: VersionSpec) -> bool:
            return group.owner not in projects or (is_public and group.visibility == "public")

        self._enforce("check_dependents", functools.partial(self._last, package, concerns))

    def warning_of_yank(self, package: Checked) -> str:
        """Return a warning if only this package satisfies requirements of active packages.

        :returns: the warning; empty if there are no such requirements.
        """
        if self._settings["check_dependents"] == "off":
            return ""
        version = Version(package.version)
        dependents = self._dependents(package, lambda _, spec: not spec.is_exactly(version))
        if not dependents:
            return ""
        warning = (
            f"no version of {package.name} is left for requirements of active packages, now that "
            f"{package.version} is yanked: {dependents}; upload another version in their ranges"
        )
        LOG.warning("%s", warning)
        return warning

    def _enforce(self, option: str, find_problems: Callable[[], Iterable[str]]) -> None:
        """Refuse the request for its problems, or log the problems, as the option says."""
        rule = _CHECKS[option][0]
        mode = self._settings[option]
        problems = [] if mode == "off" else [f"{problem} [{rule}]" for problem in find_problems()]
        if not problems:
            return
        if mode == "enforce" and not self._overrides:
            raise FailedCheck(rule, problems)
        reason = "an administrator overrides the check" if self._overrides else f"{option} is warn"
        for problem in problems:
            LOG.warning("Accepted, since %s: %s", reason, problem)

    def _unsatisfied(
        self,
        packages: Collection[Checked],
        is_usable: Callable[[PackageRecord, str], bool],
        kind: str,
        remedy: str,
    ) -> Iterator[str]:
        """Yield a message for each package with unsatisfied requirements."""
        # No package of a catalogue replaces a plug-in.
        required = {fqn for package in packages for fqn in self._requirements(package)}
        required -= self._settings.provided().keys()
        candidates: dict[str, list[PackageRecord]] = collections.defaultdict(list)
        for record in self._eligible(self._database.find_candidates(required)):
            candidates[record.name].append(record)
        ids = (record.id for record in itertools.chain.from_iterable(candidates.values()))
        yanked = self._database.find_yanked(ids)
        for package in packages:
            missing, unknown = [], set()
            for fqn, text in sorted(self._requirements(package).items()):
                available = [each for each in candidates[fqn] if is_usable(each, package.owner)]
                if not any(_is_in_range(each, VersionSpec.of(text), yanked) for each in available):
                    found = self._describe(fqn, available, yanked)
                    if not found:
                        # The message must not show that another project has the package.
                        found = f"missing, or not {kind}"
                        unknown.add(fqn)
                    missing.append(f"{fqn} in the range {text} ({found})")
            if missing:
                remedies = [f"{remedy} them first, or change the ranges"]
                if CORE_LIBRARY in unknown:
                    remedies.append(_CORE_LIBRARY_HINT)
                if unknown - {CORE_LIBRARY}:
                    remedies.append(_PROVIDED_HINT)
                yield (
                    f"no {kind} package satisfies these requirements of {package.name} "
                    f"{package.version}: {_join(missing)}; {'; '.join(remedies)}"
                )

    def _eligible(self, records: Iterable[PackageRecord]) -> list[PackageRecord]:
        """Return the packages that may be chosen by the rules of ``eligibility``."""
        rules = Eligibility(self._settings.reserved_names())
        return [each for each in records if not rules.find_objection(each)]

    def _requirements(self, package: Checked) -> dict[str, str]:
        """Return the requirements that packages of the catalogue must satisfy."""
        return {
            fqn: text
            for fqn, text in package.requirements.items()
            # If a package requires itself, the engine takes the package itself.
            if fqn != package.name and not self._is_provided(fqn, VersionSpec.of(text))
        }

    def _is_provided(self, fqn: str, spec: VersionSpec) -> bool:
        return any(map(spec.match, self._settings.provided().get(fqn, ())))

    def _describe(
        self, fqn: str, available: Iterable[PackageRecord], yanked: Container[str]
    ) -> str:
        """Return the existing versions of a package, for a message; empty if there are none."""
        marks = {each.version: " (yanked)" * (each.id in yanked) for each in available}
        published = [f"{version}{marks[version]}" for version in newest_first(marks)]
        of_engines = map(str, newest_first(self._settings.provided().get(fqn, ())))
        versions = {"available": _join(published), "provided by engines": _join(of_engines)}
        return "; ".join(f"{where}: {found}" for where, found in versions.items() if found)

    def _last(self, package: Checked, concerns: _Concerns) -> Iterator[str]:
        """Yield a message if only this package satisfies requirements of active packages."""
        if dependents := self._dependents(package, concerns):
            yield (
                f"only {package.name} {package.version} satisfies requirements of active packages: "
                f"{dependents}; upload another version in their ranges, or delete or deactivate "
                f"them first"
            )

    def _dependents(self, package: Checked, concerns: _Concerns) -> str:
        """Return, for a message, the packages with requirements that only this package satisfies.

        :param concerns: a function that returns whether to consider a group of dependents, given
            the group and its range.
        :returns: the names of the packages; empty if there are none.
        """
        version = Version(package.version)
        # Some databases ignore case.
        candidates = {
            record.id: record
            for record in self._database.find_candidates([package.name])
            if record.name == package.name
        }
        own = candidates.pop(package.id, None)
        if own is not None and not self._eligible([own]):
            # No package depends on an ineligible package: its name may have been reserved since.
            return ""
        others = self._eligible(candidates.values())
        yanked = self._database.find_yanked(record.id for record in others)
        owner = package.owner if package.visibility == "private" else None
        left = [
            group
            for group in self._database.find_dependents(package.name, owner)
            # Projects that cannot see the package do not depend on it.
            if (own is None or own.is_available_to(group.owner))
            and (spec := VersionSpec.of(group.range)).match(version)
            and concerns(group, spec)
            and not self._is_provided(package.name, spec)
            and not any(_satisfies(record, group, package, yanked) for record in others)
        ]
        if not left:
            return ""
        names = itertools.chain.from_iterable(self._visible_names(package, each) for each in left)
        # No more names are read than a message needs, since each project may have a group.
        named = _join(sorted(itertools.islice(names, _MAX_NAMED + 1)))
        return named or "packages of other projects"

    def _visible_names(self, package: Checked, group: DependentsRecord) -> Iterator[str]:
        """Yield a line for each dependent in a group, with its range, if the caller sees it."""
        viewer = self._database.viewer
        if group.visibility == "public" or group.owner == viewer.project_id or viewer.is_admin:
            for key in self._database.find_requiring(package.name, group, _MAX_NAMED + 1):
                yield f"{key} ({package.name} {group.range})"


def _any(_group: DependentsRecord, _spec: VersionSpec) -> bool:
    return True


def _satisfies(
    candidate: PackageRecord, group: DependentsRecord, replaced: Checked, yanked: Container[str]
) -> bool:
    """Return whether a candidate can replace a package for a group of dependents."""
    if group.visibility == "public" and replaced.visibility == "public":
        is_usable = _is_public(candidate, group.owner)
    else:
        is_usable = _is_usable(candidate, group.owner)
    return is_usable and _is_in_range(candidate, VersionSpec.of(group.range), yanked)


def _is_in_range(candidate: PackageRecord, spec: VersionSpec, yanked: Container[str]) -> bool:
    version = candidate.version
    return spec.is_exactly(version) if candidate.id in yanked else spec.match(version)


def _is_usable(candidate: PackageRecord, project_id: str) -> bool:
    if candidate.status == "active":
        return candidate.is_available_to(project_id)
    # Only its own project can use a draft.
    return candidate.owner == project_id


def _is_public(candidate: PackageRecord, _project_id: str) -> bool:
    return candidate.visibility == "public" and candidate.status == "active"


def _join(names: Iterable[str]) -> str:
    """Join names for a message, at most ``_MAX_NAMED`` of them."""
    named = list(itertools.islice(names, _MAX_NAMED + 1))
    joined = ", ".join(named[:_MAX_NAMED])
    return f"{joined} and more" if len(named) > _MAX_NAMED else joined
