# SPDX-License-Identifier: Apache-2.0

"""Migrate packages from Murano's API to Glare or Glance, with their owners and fields.

In Glare and Glance, a package belongs to the project whose token uploads it. So each package is
uploaded with a token for its owner's project. A public package is then published with the rights of
the caller, who has to be an administrator.

If a package is refused, the packages that require it are refused as well, and all others are
migrated. The next attempt migrates only the missing packages.
"""

import contextlib
import dataclasses
import enum
import functools
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from glare_murano import wire
from glare_murano.package import (
    GlareMuranoError,
    InvalidPackage,
    Version,
    VersionSpec,
)
from glare_murano.package.manifest import CORE_LIBRARY
from glare_murano.resolver import PackageVersion
from loader import concurrency, errors, progress
from loader.authoring import local_packages
from loader.authoring.local_packages import LocalPackage
from loader.catalogs import murano, stored_package
from loader.catalogs.base import Catalog
from loader.catalogs.repository import Repository
from loader.catalogs.stored_package import StoredPackage, Visibility
from loader.progress import Progress, Report
from loader.publishing import ordering, publication, requirements
from loader.publishing.publication import PublishError, State, Step
from loader.publishing.target import Target
from loader.transport.adapter import ServiceAdapter


class Result(enum.StrEnum):
    """What happens to a package in the migration."""

    READY = "would be migrated"
    MIGRATED = "migrated"
    SKIPPED = "skipped, was migrated before"
    LEFT_OUT = "left out"
    REFUSED = "refused"


@dataclasses.dataclass(frozen=True)
class SourcePackage:
    """A package that Murano's API lists.

    :param owner: the id of the project that owns it.
    :param is_enabled: whether Murano lets users deploy it.
    :param fields: the fields that users may change, under their names in Glare.
    """

    id: str
    fqn: str
    owner: str
    is_public: bool
    is_enabled: bool
    fields: Mapping[str, Any]

    @property
    def visibility(self) -> Visibility:
        """The visibility that the package gets in the service."""
        return "public" if self.is_public else "private"

    def __str__(self) -> str:
        return f"{self.fqn} of {self.owner}"


@dataclasses.dataclass
class Migration:
    """The migration of one package.

    :ivar result: what happens to the package; ``READY`` until the migration ends.
    :ivar reason: why the package is left out or refused.
    :ivar archive: the downloaded package; None before the download, or if it is invalid.
    :ivar repository: the service, with a token for the owner's project; ``compare`` sets it.
    :ivar step: the step that publishes the package; ``compare`` sets it.
    :ivar warnings: mistakes in the package that the service accepts.
    """

    package: SourcePackage
    result: Result = Result.READY
    reason: str = ""
    archive: LocalPackage | None = None
    repository: Repository | None = None
    step: Step | None = None
    warnings: list[str] = dataclasses.field(default_factory=list)

    @property
    def version(self) -> Version | None:
        """The version in the package's archive; None before the archive is read."""
        return self.archive.version if self.archive else None

    def end(self, result: Result, reason: object = "") -> None:
        """End the migration of the package with a result and a reason."""
        self.result, self.reason = result, str(reason)


def find(client: ServiceAdapter, *, all_projects: bool = False) -> Iterator[SourcePackage]:
    """Yield the packages that Murano's API lists.

    :param client: a client for Murano's API.
    :param all_projects: whether to yield the packages of all projects, for an administrator; by
        default, those of the user's project and public ones.
    :raises CatalogError: if Murano does not answer.
    """
    query = [("include_disabled", "true"), ("limit", str(murano.PAGE))]
    if not all_projects:
        query.append(("catalog", "true"))
    for item in client.items(murano.PATH, "packages", query, murano.next_marker):
        try:
            yield _package(item)
        except GlareMuranoError as error:
            raise errors.CatalogError(
                f"{client.name} sent an unknown form of a package: {error}"
            ) from error


def read(
    client: ServiceAdapter,
    packages: Iterable[SourcePackage],
    folder: pathlib.Path,
    report: Report = progress.ignore,
) -> list[Migration]:
    """Download and check packages, several at once, and return a migration for each.

    Invalid packages are refused, with all their problems. Packages that are disabled in Murano are
    left out.

    :param folder: an empty directory for the archives.
    :param report: a function that is called after each download, from any thread.
    :raises CatalogUnavailable: if Murano does not answer.
    :raises OSError: if an archive cannot be written.
    """
    # If a list changes while its pages are read, they may have a package twice.
    entries = [Migration(package) for package in {each.id: each for each in packages}.values()]

    def download(number: int) -> None:
        entry = entries[number]
        package = entry.package
        if not package.is_enabled:
            entry.end(Result.LEFT_OUT, "the package is disabled in Murano; enable it there first")
            return
        label = f"the archive of package {package}"
        pieces = client.download(murano.archive_path(package.id), label)
        with _refusing(entry):
            archive = local_packages.receive(pieces, folder / f"{number}.zip", str(package))
            entry.archive = archive
            entry.warnings += map(str, archive.warnings)
            if archive.fqn != package.fqn:
                entry.end(Result.REFUSED, f"its archive contains {archive}")
            report(Progress(str(package), archive.size, archive.size))

    list(concurrency.results(download, range(len(entries))))
    _refuse_repeated(entries)
    return entries


def compare(
    entries: Iterable[Migration], repository: Repository, scope: Callable[[str], Repository]
) -> None:
    """Compare packages with those in the service, and plan how to publish each of them.

    For each package, the requests have a token for its owner's project. This ends the migration of
    a package that is published already, and of a package that the service would refuse. The core
    library is left out if the service has one.

    :param repository: the service, with the rights of the caller.
    :param scope: a function that takes a project's id, and returns the service with the caller's
        rights in this project.
    :raises CatalogUnavailable: if a service does not answer.
    """
    ready = _ready(entries)
    scopes = {owner: _scoped(scope, owner) for owner in {e.package.owner for e in ready}}
    stored = repository.named([CORE_LIBRARY], stored_package.ACTIVE)
    core = [str(each) for each in stored if _is_public(each) and not each.yanked]

    def compare_one(entry: Migration) -> None:
        found = scopes[entry.package.owner]
        if isinstance(found, str):
            entry.end(Result.REFUSED, found)
            return
        entry.repository = found
        try:
            (entry.step,) = publication.plan(
                Target(found), [_archive(entry)], entry.package.visibility
            )
            publication.check_uploads(found, [entry.step], lambda _: entry.package.fields)
        except PublishError as error:
            entry.end(Result.REFUSED, error)
            return
        stored = entry.step.stored
        if entry.step.state is State.PUBLISHED:
            is_own = stored is None or stored.owner == entry.package.owner
            entry.end(Result.SKIPPED, "" if is_own else f"{stored} is public with the same files")
        elif core and entry.package.fqn == CORE_LIBRARY:
            reason = (
                f"it belongs to the release of the engine; published already: {', '.join(core)}"
            )
            entry.end(Result.LEFT_OUT, reason)

    list(concurrency.results(compare_one, ready))


def check_requirements(
    entries: Iterable[Migration], repository: Repository, catalog: Catalog
) -> None:
    """Refuse packages with unsatisfied requirements.

    A migrated package, a package in the service, or an extension plug-in of the engine satisfies a
    requirement. If the service does not enforce requirements, a package with unsatisfied ones gets
    warnings instead.

    :param repository: the service, with the rights of the caller.
    :param catalog: the service's catalogue, which knows the engine's extension plug-ins.
    :raises CatalogError: if the service does not answer.
    """
    entries = list(entries)
    found = _Requirements(entries, repository, catalog)
    for group in _groups(_ready(entries)):
        is_changed = True
        while is_changed:
            is_changed = False
            for entry in _ready(group):
                if problems := found.refusals(entry):
                    entry.end(Result.REFUSED, "\n".join(problems))
                    is_changed = True
    for entry in _ready(entries):
        entry.warnings += found.unsatisfied(entry).values()


class _Requirements:
    """Finds the requirements of migrated packages that nothing satisfies."""

    def __init__(
        self, entries: Sequence[Migration], repository: Repository, catalog: Catalog
    ) -> None:
        self._repository = repository
        self._catalog = catalog
        self._migrated: dict[str, list[Migration]] = {}
        for entry in entries:
            self._migrated.setdefault(entry.package.fqn, []).append(entry)
        names = {fqn for entry in _ready(entries) for fqn in _archive(entry).requirements}
        self._stored = stored_package.by_name(repository.named(names, stored_package.ACTIVE))

    def refusals(self, entry: Migration) -> list[str]:
        """Return a message for each unsatisfied requirement that the service would not accept."""
        return [
            problem
            for fqn, problem in self.unsatisfied(entry).items()
            if requirements.is_enforced(
                self._checks, entry.package.visibility, is_hidden=self._is_found(entry, fqn)
            )
        ]

    def unsatisfied(self, entry: Migration) -> dict[str, str]:
        """Return a message for each unsatisfied requirement, by the required package's FQN."""
        visibility = entry.package.visibility
        return {
            fqn: _problem(fqn, spec, self._migrated.get(fqn, ()))
            for fqn, spec in _archive(entry).requirements.items()
            if not self._is_found(entry, fqn, visibility)
            and not requirements.is_external(self._catalog, fqn, spec)
        }

    @functools.cached_property
    def _checks(self) -> Mapping[str, str]:
        return self._repository.checks()

    def _is_found(self, entry: Migration, fqn: str, visibility: Visibility = "private") -> bool:
        """Return whether a migrated package, or one in the service, satisfies a requirement.

        :param entry: the requiring package.
        :param fqn: the name of the required package.
        :param visibility: the requirement is checked as if the requiring package had this
            visibility.
        """
        owner, spec = entry.package.owner, _archive(entry).requirements[fqn]
        return any(
            _serves(other, owner, spec, visibility) for other in self._migrated.get(fqn, ())
        ) or any(
            requirements.satisfies(package, spec, visibility)
            for package in self._stored.get(fqn, ())
            if _is_public(package) or package.owner == owner
        )


def migrate(
    entries: Iterable[Migration], repository: Repository, report: Report = progress.ignore
) -> None:
    """Upload the packages that are ready, several at once, and publish them.

    Required packages are published first. Packages that require each other are published together.

    :param repository: the service, with the rights of the caller; it publishes public packages.
    :param report: a function that is called after each piece of an upload, from any thread.
    :raises CatalogUnavailable: if the service does not answer; uploaded drafts stay.
    """
    ready = _ready(entries)
    drafts: dict[str, StoredPackage] = {}

    def upload(entry: Migration) -> None:
        if entry.step is None:
            raise ValueError(f"{entry.package} was not compared")
        owner, archive = entry.package.owner, entry.step.package
        with _refusing(entry):
            drafts[entry.package.id] = publication.upload_one(
                _repository(entry),
                entry.step,
                entry.package.fields,
                lambda p: report(dataclasses.replace(p, name=f"{archive} of {owner}")),
            )

    list(concurrency.results(upload, ready))
    for group in filter(None, map(_ready, _groups(ready))):
        # All packages of a group have one visibility; in a private group, they have one owner.
        package = group[0].package
        publisher = repository if package.is_public else _repository(group[0])
        with _refusing(*group):
            publication.publish(
                publisher, [drafts[e.package.id] for e in group], package.visibility
            )
            for entry in group:
                entry.end(Result.MIGRATED)


def _refuse_repeated(entries: Iterable[Migration]) -> None:
    """If a project has several packages with the same name and version, refuse all but the first.

    Only packages whose migration has not ended count.
    """
    seen: dict[tuple[str, PackageVersion], str] = {}
    for entry in _ready(entries):
        key = entry.package.owner, _archive(entry).key
        first = seen.setdefault(key, entry.package.id)
        if first != entry.package.id:
            entry.end(
                Result.REFUSED,
                f"the project has {_archive(entry)} twice in Murano, as {first} and "
                f"{entry.package.id}; delete one of them there",
            )


def _package(item: Any) -> SourcePackage:
    item = wire.mapping(item)
    fields = {
        "display_name": item.get("name"),
        "description": item.get("description"),
        "categories": wire.get(item, "categories", _strings),
        "tags": wire.get(item, "tags", _strings),
    }
    return SourcePackage(
        id=wire.get(item, "id", wire.string),
        fqn=wire.get(item, "fully_qualified_name", wire.string),
        owner=wire.get(item, "owner_id", wire.string),
        is_public=item.get("is_public") is True,
        is_enabled=item.get("enabled") is not False,
        fields={name: value for name, value in fields.items() if value},
    )


def _strings(value: Any) -> list[str]:
    return sorted(map(wire.string, wire.sequence(value)))


def _scoped(scope: Callable[[str], Repository], owner: str) -> Repository | str:
    """Return the service with a token for a project, or the reason why this fails, as a string."""
    remedy = (
        f"give your user a role in the project {owner} (openstack role add), and run the command "
        f"again; or delete the package, if there is no such project any more"
    )
    try:
        repository = scope(owner)
        if (project := repository.project()) == owner:
            return repository
        return f"the credentials are those of the project {project}; {remedy}"
    except errors.CatalogUnavailable:
        raise
    except errors.CatalogError as error:
        return f"you cannot authenticate for its project: {error}; {remedy}"


def _is_public(package: StoredPackage) -> bool:
    return package.visibility == "public"


def _ready(entries: Iterable[Migration]) -> list[Migration]:
    return [entry for entry in entries if entry.result is Result.READY]


@contextlib.contextmanager
def _refusing(*entries: Migration) -> Iterator[None]:
    """Refuse packages if the ``with`` block raises an error about them.

    The error may be that a package is invalid, or that the service refuses a request.

    :raises CatalogUnavailable: if the service does not answer.
    """
    try:
        yield
    except errors.CatalogUnavailable:
        raise
    except (InvalidPackage, errors.CatalogError) as error:
        found = error.everything if isinstance(error, InvalidPackage) else [error]
        for entry in entries:
            entry.end(Result.REFUSED, "\n".join(map(str, found)))


def _repository(entry: Migration) -> Repository:
    if entry.repository is None:
        raise ValueError(f"{entry.package} was not compared")
    return entry.repository


def _archive(entry: Migration) -> LocalPackage:
    if entry.archive is None:
        raise ValueError(f"{entry.package} was not read")
    return entry.archive


def _serves(other: Migration, owner: str, spec: VersionSpec, visibility: Visibility) -> bool:
    """Return whether a package in the migration satisfies a requirement of another package in it.

    A package that was refused or left out satisfies nothing.

    :param other: the package that may satisfy the requirement.
    :param owner: the project of the requiring package.
    :param spec: the required range.
    :param visibility: the visibility of the requiring package.
    """
    is_visible = other.package.is_public or (
        other.package.owner == owner and visibility == "private"
    )
    is_left = other.result in (Result.READY, Result.SKIPPED)
    return is_left and is_visible and other.version is not None and spec.match(other.version)


def _problem(fqn: str, spec: VersionSpec, others: Sequence[Migration]) -> str:
    refused = [f"{o.package} is {o.result}" for o in others if o.result is Result.REFUSED]
    listed = errors.listed(str(other.version) for other in others if other.version)
    found = "; ".join(refused) or f"Murano has: {listed}"
    versions = [other.version for other in others if other.version]
    return (
        f"it requires {fqn} in the range {spec}, which was not found ({found}); "
        f"{requirements.remedy(fqn, versions)}"
    )


def _groups(entries: Iterable[Migration]) -> list[list[Migration]]:
    """Group packages that require each other; the groups that others require come first."""
    by_id = {entry.package.id: entry for entry in entries}
    required = {
        entry.package.id: [
            other.package.id
            for fqn, spec in _archive(entry).requirements.items()
            for other in by_id.values()
            if other.package.fqn == fqn
            and _serves(other, entry.package.owner, spec, entry.package.visibility)
        ]
        for entry in by_id.values()
    }
    return [[by_id[i] for i in group] for group in ordering.required_first(required)]
