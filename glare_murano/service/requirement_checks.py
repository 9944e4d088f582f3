# SPDX-License-Identifier: Apache-2.0

"""Check requirements when a package is added to a catalogue, or removed from it.

A package may become active only if its requirements are satisfied. The base classes of its classes
must be in the package itself, or in packages that it requires. A package may become public only if
public packages satisfy its requirements. A package may be removed only if other packages satisfy
all requirements that active packages have on it. A draft satisfies requirements only if the same
request publishes the draft and the packages that require it. A yanked package satisfies only ranges
that are exactly its version. Extension plug-ins of the engines satisfy requirements as well.

The checks take no lock, but report the packages that a request must lock; see ``package_locks``.
"""

import collections
import functools
import itertools
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Protocol

from oslo_config import cfg
from oslo_log import log as logging

from glare_murano.eligibility import Eligibility
from glare_murano.package import Version, VersionSpec
from glare_murano.package.manifest import CORE_LIBRARY, PROVIDED_HINT
from glare_murano.package.rules import Rule
from glare_murano.resolver import PackageVersion, demands_of, newest_first
from glare_murano.selection import ACTIVE
from glare_murano.service.database import Database, DependentsRecord, PackageRecord
from glare_murano.service.refusals import RefusedRequest
from glare_murano.service.settings import Settings

LOG = logging.getLogger(__name__)

_MODES = [
    ("enforce", "Refuse the request with 409."),
    ("warn", "Accept the request and log a warning."),
    ("off", "Do not check."),
]

# Option -> rule, and the end of its help text.
_CHECKS = {
    "check_requirements": (
        Rule.REQUIREMENT_MISSING,
        "activated, that its requirements are satisfied: by active packages that its project can "
        "see, or by packages that are activated in the same publication; and that the base classes "
        "of its classes are in these packages.",
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

_CORE_LIBRARY_HINT = (
    f"{CORE_LIBRARY} is Murano's core library, which an administrator publishes for all projects"
)
_PUBLISH_HINT = "publish them first, or change the ranges"
_TOGETHER_HINT = (
    "a draft counts only in the publication that publishes it: publish the drafts in one request "
    'with the package that requires them (POST /murano/v1/publications, or "openstack murano '
    'package publish")'
)
# The largest number of packages, or of versions, that a message lists.
_MAX_NAMED = 10


_Concerns = Callable[[DependentsRecord, VersionSpec], bool]
# A function that takes a package and a project, and returns whether the package can satisfy
# requirements of the project's packages.
_IsUsable = Callable[[PackageRecord, str], bool]


class Checked(Protocol):
    """A package that a request changes. Each service implements this protocol."""

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
        """The visibility: ``private``, ``public``, or another one that the service has."""

    @property
    def requirements(self) -> Mapping[str, str]:
        """The requirements of the package: FQN -> range."""

    @property
    def class_definitions(self) -> Collection[str]:
        """The names of the package's classes."""

    @property
    def inherits(self) -> Mapping[str, str]:
        """The base classes: base class -> the package's direct subclasses, joined by commas."""


class FailedCheck(RefusedRequest):
    """A request is refused, since a check has failed.

    :ivar rule: the rule that the failed check enforces.
    :ivar problems: a line for each problem.
    """

    def __init__(self, rule: Rule, problems: list[str]) -> None:
        super().__init__(HTTPStatus.CONFLICT, "\n".join(problems))
        self.rule = rule
        self.problems = problems


class RequirementChecks:
    """The checks of requirements for one request.

    :param overrides: whether the caller overrides the checks, and may do so. Then problems are only
        logged.
    :param changed: all packages that the request activates or makes public, as they are after the
        request. The checks treat them as if the request had succeeded.
    :param locked: the ids of the packages that the request has locked; empty before it takes locks.
    :ivar relied_on: the ids of packages that satisfy a requirement and are not in ``changed``. If
        several packages satisfy a requirement, only one is added, if possible a locked one.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        overrides: bool = False,
        changed: Iterable[Checked] = (),
        locked: Collection[str] = (),
    ) -> None:
        self.relied_on: set[str] = set()
        self._database = database
        self._settings = settings
        self._overrides = overrides
        self._changed = {package.id: package for package in changed}
        self._locked = locked
        # FQN -> the packages that may satisfy requirements, as they are after the request.
        self._found: dict[str, list[PackageRecord]] = {}
        self._yanked: dict[str, str] = {}

    def check_activation(self, packages: Collection[Checked]) -> None:
        """Check the requirements and the base classes of packages before their activation.

        :raises FailedCheck: if a requirement is not satisfied or a base class is missing, and the
            option ``check_requirements`` enforces the check.
        """
        find = functools.partial(self._unsatisfied, packages, _is_usable, "visible")
        self._enforce("check_requirements", find)

    def check_publication(self, packages: Collection[Checked]) -> None:
        """Check that public packages satisfy the requirements of packages that become public.

        Base classes must be in these public packages, or in the package itself.

        :raises FailedCheck: if a requirement is not satisfied or a base class is missing, and the
            option ``check_public_requirements`` enforces the check.
        """
        find = functools.partial(self._unsatisfied, packages, _is_public, "public")
        self._enforce("check_public_requirements", find)

    def check_removal(self, package: Checked) -> None:
        """Check that other packages can replace a package, before it is deleted or deactivated.

        :raises FailedCheck: if only this package satisfies requirements of active packages, and the
            option ``check_dependents`` enforces the check.
        """
        self._enforce("check_dependents", functools.partial(self._last, package, _any))

    def check_hiding(self, package: Checked, keeping: Collection[str] = ()) -> None:
        """Check that other packages can replace a package, before it is hidden from projects.

        The dependents of this package are the active packages that require it. The check considers
        the dependents in projects that can no longer see this package. If this package was public,
        the check also considers all public dependents.

        :param keeping: the projects, besides the owner, that can still see the package.
        :raises FailedCheck: if only this package satisfies a requirement of a considered dependent,
            and the option ``check_dependents`` enforces the check.
        """
        projects = {package.owner, *keeping}
        is_public = package.visibility == "public"

        def concerns(group: DependentsRecord, _: VersionSpec) -> bool:
            return group.owner not in projects or (is_public and group.visibility == "public")

        self._enforce("check_dependents", functools.partial(self._last, package, concerns))

    def warning_of_yank(self, package: Checked) -> str:
        """Return a warning about the yank of a package that active packages require.

        Ranges that are exactly the version of the package do not count: a yanked package still
        satisfies them. If the request has taken its locks, the warning is also logged.

        :returns: the warning; empty if other packages satisfy all other requirements, or if the
            option ``check_dependents`` is ``off``. If the check takes too long, the warning says
            that the requirements were not checked.
        """
        if self._settings["check_dependents"] == "off":
            return ""
        version = Version(package.version)
        try:
            dependents = self._dependents(package, lambda _, spec: not spec.is_exactly(version))
        except RefusedRequest as refusal:
            return f"the dependents of {package.name} {package.version} were not checked: {refusal}"
        if not dependents:
            return ""
        warning = (
            f"no version of {package.name} is left for requirements of active packages, now that "
            f"{package.version} is yanked: {dependents}; upload another version in their ranges"
        )
        if self._locked:
            LOG.warning("%s", warning)
        return warning

    def _enforce(self, option: str, find_problems: Callable[[], Iterable[str]]) -> None:
        """Find problems, and refuse the request or log the problems, depending on an option.

        :param option: the name of the option, which is a key of ``_CHECKS``.
        :param find_problems: a function that finds the problems. It is not called if the option is
            ``off``.
        :raises FailedCheck: if there are problems, and the check is enforced.
        """
        rule = _CHECKS[option][0]
        mode = self._settings[option]
        problems = [] if mode == "off" else [f"{problem} [{rule}]" for problem in find_problems()]
        if not problems:
            return
        if mode == "enforce" and not self._overrides:
            raise FailedCheck(rule, problems)
        reason = "an administrator overrides the check" if self._overrides else f"{option} is warn"
        # A request is checked twice: before and after it takes locks. Only the second check accepts
        # it.
        for problem in problems if self._locked else ():
            LOG.warning("Accepted, since %s: %s", reason, problem)

    def _unsatisfied(
        self,
        packages: Collection[Checked],
        is_usable: _IsUsable,
        kind: str,
    ) -> Iterator[str]:
        """Yield a message for each package that has unsatisfied requirements or lacks base classes.

        :param packages: the packages whose requirements are checked.
        :param is_usable: a function that returns whether a package can satisfy requirements of a
            project's packages.
        :param kind: which packages can satisfy requirements, for the message: ``visible`` or
            ``public``.
        """
        # A package in the catalogue cannot replace a plug-in of the engines.
        required = {fqn for package in packages for fqn in self._requirements(package)}
        candidates = self._candidates(required - self._settings.provided().keys())
        defining = self._defining(packages)
        for package in packages:
            missing, unknown, drafts = [], set(), False
            for fqn, text in sorted(self._requirements(package).items()):
                spec = VersionSpec.of(text)
                found = candidates.get(fqn, ())
                is_available = _by_project(is_usable, package.owner)
                if self._satisfy(spec, found, is_available):
                    continue
                available = filter(is_available, found)
                own = [each for each in found if _is_draft_of(each, package.owner)]
                drafts |= any(spec.match(each.version) for each in own)
                described = self._describe(fqn, available, own)
                if not described:
                    # The message must not show that another project has the package.
                    described = f"missing, or not {kind}"
                    unknown.add(fqn)
                missing.append(f"{fqn} in the range {text} ({described})")
            if missing:
                remedies = [_TOGETHER_HINT if drafts else _PUBLISH_HINT]
                if CORE_LIBRARY in unknown:
                    remedies.append(_CORE_LIBRARY_HINT)
                if unknown - {CORE_LIBRARY}:
                    remedies.append(PROVIDED_HINT)
                yield (
                    f"no {kind} package satisfies these requirements of {package.name} "
                    f"{package.version}: {_join(missing)}; {'; '.join(remedies)}"
                )
            elif bases := self._undefined(package, candidates, is_usable, defining):
                yield (
                    f"no {kind} package that {package.name} {package.version} requires has these "
                    f"base classes: {_join(bases)}; add their packages to Require"
                )

    def _defining(self, packages: Iterable[Checked]) -> Mapping[str, set[str]]:
        """Find the packages that define the foreign base classes of the given packages.

        A base class is foreign if it is not in the package of the subclass.

        :returns: foreign base class -> the ids of the packages that define it.
        """
        bases = {base for package in packages for base in _foreign_bases(package)}
        found = collections.defaultdict(set)
        for name, id_ in self._database.find_defining(bases) if bases else ():
            found[name].add(id_)
        for changed in self._changed.values():
            for name in bases.intersection(changed.class_definitions):
                found[name].add(changed.id)
        return found

    def _undefined(
        self,
        package: Checked,
        candidates: Mapping[str, Collection[PackageRecord]],
        is_usable: _IsUsable,
        defining: Mapping[str, set[str]],
    ) -> list[str]:
        """Describe the foreign base classes that no usable package in a required range defines.

        A base class is foreign if it is not in the package of the subclass. If the package requires
        a plug-in of the engines, the list is empty, since the service does not know all classes of
        plug-ins.

        :param package: the package.
        :param candidates: FQN -> the packages that may satisfy a requirement on this FQN.
        :param is_usable: as in ``_unsatisfied``.
        :param defining: foreign base class -> the ids of the packages that define it.
        """
        if self._settings.provided().keys() & package.requirements.keys():
            return []
        usable = {
            record.id
            for fqn, text in package.requirements.items()
            for record in candidates.get(fqn, ())
            if is_usable(record, package.owner)
            and _is_in_range(record, VersionSpec.of(text), self._yanked)
        }
        return [
            f"{base} (of {package.inherits[base]})"
            for base in _foreign_bases(package)
            if usable.isdisjoint(defining.get(base, ()))
        ]

    def _candidates(self, fqns: Collection[str]) -> Mapping[str, list[PackageRecord]]:
        """Return the packages that may satisfy requirements, by FQN.

        Packages in ``changed`` are returned as they will be after the request.

        :param fqns: the required packages.
        """
        unknown = {fqn for fqn in fqns if fqn not in self._found}
        if unknown:
            self._found |= {fqn: [] for fqn in unknown}
            found = map(self._as_changed, self._database.find_candidates(unknown))
            # Some databases ignore case, and so return other names as well.
            eligible = [each for each in self._eligible(found) if each.name in unknown]
            for record in sorted(eligible, key=_newest_last, reverse=True):
                self._found[record.name].append(record)
            self._yanked |= self._database.find_yanked(record.id for record in eligible)
        return self._found

    def _as_changed(self, record: PackageRecord) -> PackageRecord:
        changed = self._changed.get(record.id)
        if changed is None:
            return record
        return record._replace(status=ACTIVE, visibility=changed.visibility)

    def _satisfy(
        self,
        spec: VersionSpec,
        candidates: Collection[PackageRecord],
        is_usable: Callable[[PackageRecord], bool],
    ) -> bool:
        """Return whether at least one usable candidate satisfies a requirement.

        If so, one such candidate is added to ``relied_on``, unless it is in ``changed``. A yanked
        candidate satisfies only a range that is exactly its version.

        :param spec: the required range.
        :param candidates: the packages to check.
        :param is_usable: a function that returns whether a package may satisfy the requirement.
        """
        preferred = self._changed.keys() | self._locked | self.relied_on
        # These packages are tried first: if a request relies on few packages, it takes few locks.
        first = (each for each in candidates if each.id in preferred)
        for record in itertools.chain(first, candidates):
            if is_usable(record) and _is_in_range(record, spec, self._yanked):
                if record.id not in self._changed:
                    self.relied_on.add(record.id)
                return True
        return False

    def _eligible(self, records: Iterable[PackageRecord]) -> list[PackageRecord]:
        """Return the packages that may be chosen by the rules of ``eligibility``."""
        rules = Eligibility(self._settings.reserved_names())
        return [each for each in records if not rules.find_objection(each)]

    def _requirements(self, package: Checked) -> dict[str, str]:
        """Return the requirements that other packages must satisfy: FQN -> range.

        Requirements that the package itself or a plug-in of the engines satisfies are left out.
        """
        if not package.requirements:
            # A draft without an archive has no version either.
            return {}
        release = PackageVersion(package.name, Version(package.version))
        specs = {fqn: VersionSpec.of(text) for fqn, text in package.requirements.items()}
        return {
            demand.fqn: demand.spec.text
            for demand in demands_of(release, specs)
            if not self._is_provided(demand.fqn, demand.spec)
        }

    def _is_provided(self, fqn: str, spec: VersionSpec) -> bool:
        return any(map(spec.match, self._settings.provided().get(fqn, ())))

    def _describe(
        self, fqn: str, available: Iterable[PackageRecord], drafts: Iterable[PackageRecord]
    ) -> str:
        """List the existing versions of a required package, for a message; empty if there are none.

        :param fqn: the required package.
        :param available: the packages that the project could use if they were in the range.
        :param drafts: the drafts of the project.
        """
        marks = {each.version: " (yanked)" * (each.id in self._yanked) for each in available}
        published = [f"{version}{marks[version]}" for version in newest_first(marks)]
        versions = {
            "available": published,
            "drafts": map(str, newest_first({each.version for each in drafts})),
            "provided by engines": map(str, newest_first(self._settings.provided().get(fqn, ()))),
        }
        joined = {where: _join(found) for where, found in versions.items()}
        return "; ".join(f"{where}: {found}" for where, found in joined.items() if found)

    def _last(self, package: Checked, concerns: _Concerns) -> Iterator[str]:
        """Yield a message if only the given package satisfies requirements of active packages.

        :param concerns: as in ``_dependents``.
        """
        if dependents := self._dependents(package, concerns):
            yield (
                f"only {package.name} {package.version} satisfies requirements of active packages: "
                f"{dependents}; delete or deactivate these first, each before the packages that it "
                f"requires, or upload another version in the ranges"
            )

    def _dependents(self, package: Checked, concerns: _Concerns) -> str:
        """Name the active packages with requirements that only the given package satisfies.

        The database returns the dependents of the given package in groups: the packages of one
        project that have the same visibility and require the given package in the same range.

        :param concerns: a function that takes a group and its range, and returns whether to
            consider the group.
        :returns: the names of the packages, for a message; empty if there are none. If the caller
            may see none of them, the string says only that they belong to other projects.
        """
        version = Version(package.version)
        candidates = {each.id: each for each in self._candidates([package.name])[package.name]}
        own = candidates.pop(package.id, None)
        if own is None:
            # The package may not be chosen, since its name was reserved later. So no package
            # depends on it.
            return ""
        others = candidates.values()
        owner = package.owner if package.visibility == "private" else None
        left = [
            group
            for group in self._database.find_dependents(package.name, owner)
            # Projects that cannot see the package do not depend on it.
            if own.is_available_to(group.owner)
            and (spec := VersionSpec.of(group.range)).match(version)
            and concerns(group, spec)
            and not self._is_provided(package.name, spec)
            and not self._satisfy(spec, others, _replacing(package, group))
        ]
        if not left:
            return ""
        names = itertools.chain.from_iterable(self._visible_names(package, each) for each in left)
        # Only as many names are read as a message lists, since there may be many groups.
        named = _join(sorted(itertools.islice(names, _MAX_NAMED + 1)))
        return named or "packages of other projects"

    def _visible_names(self, package: Checked, group: DependentsRecord) -> Iterator[str]:
        """Describe each package in a group by name and range, if the caller may see the group."""
        viewer = self._database.viewer
        if group.visibility == "public" or group.owner == viewer.project_id or viewer.is_admin:
            for key in self._database.find_requiring(package.name, group, _MAX_NAMED + 1):
                yield f"{key} ({package.name} {group.range})"


def _foreign_bases(package: Checked) -> list[str]:
    """Return the base classes that the package itself does not define: its foreign base classes."""
    own = set(package.class_definitions)
    return sorted(base for base in package.inherits if base not in own)


def _any(_group: DependentsRecord, _spec: VersionSpec) -> bool:
    return True


def _replacing(package: Checked, group: DependentsRecord) -> Callable[[PackageRecord], bool]:
    """Return a function that returns whether a package can replace a removed or hidden package.

    :param package: the removed or hidden package.
    :param group: the packages that require the removed or hidden package.
    """
    are_public = group.visibility == "public" and package.visibility == "public"
    return _by_project(_is_public if are_public else _is_usable, group.owner)


def _by_project(is_usable: _IsUsable, project_id: str) -> Callable[[PackageRecord], bool]:
    return lambda record: is_usable(record, project_id)


def _newest_last(record: PackageRecord) -> Any:
    return record.version.precedence_key


def _is_in_range(candidate: PackageRecord, spec: VersionSpec, yanked: Container[str]) -> bool:
    version = candidate.version
    return spec.is_exactly(version) if candidate.id in yanked else spec.match(version)


def _is_usable(candidate: PackageRecord, project_id: str) -> bool:
    return candidate.status == ACTIVE and candidate.is_available_to(project_id)


def _is_public(candidate: PackageRecord, _project_id: str) -> bool:
    return candidate.visibility == "public" and candidate.status == ACTIVE


def _is_draft_of(candidate: PackageRecord, project_id: str) -> bool:
    return candidate.status != ACTIVE and candidate.owner == project_id


def _join(names: Iterable[str]) -> str:
    """Join the first ``_MAX_NAMED`` names for a message, and say whether there are more."""
    named = list(itertools.islice(names, _MAX_NAMED + 1))
    joined = ", ".join(named[:_MAX_NAMED])
    return f"{joined} and more" if len(named) > _MAX_NAMED else joined
