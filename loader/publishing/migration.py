# SPDX-License-Identifier: Apache-2.0

"""Migrate packages from a Murano API into Glare or Glance, with their owners and fields.

In Glare and Glance, the project of the token becomes the owner of a package. Therefore a package
is uploaded within the scope of its project. The caller, who has to be an administrator, then
publishes public packages. If a package is refused, the packages that require it are also refused,
and all others are migrated. The next attempt migrates only the missing packages.
"""

import dataclasses
import enum
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

# A function that gets a package, the number of bytes so far, and the number of all bytes.


class Result(enum.StrEnum):
    """The result for a package."""

    READY = "would be migrated"
    MIGRATED = "migrated"
    SKIPPED = "skipped, was migrated before"
    LEFT_OUT = "left out"
    REFUSED = "refused"


@dataclasses.dataclass(frozen=True)
class SourcePackage:
    """A package in a list of Murano's API.

    :param owner: the id of its project.
    :param fields: its mutable fields, under their names in Glare.
    """

    id: str
    fqn: str
    owner: str
    is_public: bool
    is_enabled: bool
    fields: Mapping[str, Any]

    @property
    def visibility(self) -> Visibility:
        """The visibility of the package in the service."""
        return "public" if self.is_public else "private"

    def __str__(self) -> str:
        return f"{self.fqn} of {self.owner}"


@dataclasses.dataclass
class Migration:
    """A package in a migration.

    :ivar archive: the downloaded package, if it is valid.
    :ivar step: the step that publishes it; ``migrate`` needs it for the result ``READY``.
    :ivar reason: why it is left out or refused.
    """

    package: SourcePackage
    result: Result = Result.READY
    reason: str = ""
    archive: LocalPackage | None = None
    repository: Repository | None = None
    step: Step | None = None

    @property
    def version(self) -> Version | None:
        """The version in the package's archive; None before the archive is read."""
        return self.archive.version if self.archive else None

    def end(self, result: Result, reason: object = "") -> None:
        """Set the result of the package's migration, with its reason."""
        self.result, self.reason = result, str(reason)


def find(client: ServiceAdapter, *, all_projects: bool = False) -> Iterator[SourcePackage]:
    """Yield the packages of the project and public packages, or the packages of all projects.

    :param client: a client for Murano's API.
    :param all_projects: whether to yield the packages of all projects, for an administrator.
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
    """Download and check packages, several at once.

    Invalid packages are refused, with all their problems. Packages that are disabled in Murano
    are left out.

    :param folder: an empty directory for the archives.
    :param report: called after each download, from any thread.
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
        try:
            archive = local_packages.receive(pieces, folder / f"{number}.zip", str(package))
        except InvalidPackage as error:
            entry.end(Result.REFUSED, "\n".join(map(str, error.everything)))
        except errors.CatalogUnavailable:
            raise
        except errors.CatalogError as error:
            entry.end(Result.REFUSED, error)
        else:
            entry.archive = archive
            if archive.fqn != package.fqn:
                entry.end(Result.REFUSED, f"its archive contains {archive}")
            report(Progress(str(package), archive.size, archive.size))

    list(concurrency.results(download, range(len(entries))))
    _refuse_repeated(entries)
    return entries


def compare(
    entries: Iterable[Migration], repository: Repository, scope: Callable[[str], Repository]
) -> None:
    """Compare packages with those in the service, each within the scope of its project.

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
    """Refuse packages whose requirements neither the migration nor the service satisfies.

    :param repository: the service, with the rights of the caller.
    :raises CatalogError: if the service does not answer.
    """
    entries = list(entries)
    migrated: dict[str, list[Migration]] = {}
    for entry in entries:
        migrated.setdefault(entry.package.fqn, []).append(entry)
    names = {fqn for entry in _ready(entries) for fqn in _archive(entry).requirements}
    stored = stored_package.by_name(repository.named(names, stored_package.ACTIVE))

    def is_satisfied(entry: Migration, fqn: str, spec: VersionSpec) -> bool:
        source = entry.package
        return (
            any(_serves(other, entry, spec) for other in migrated.get(fqn, ()))
            or any(
                requirements.satisfies(package, spec, source.visibility)
                for package in stored.get(fqn, ())
                if _is_public(package) or package.owner == source.owner
            )
            or requirements.is_external(catalog, fqn, spec)
        )

    for group in _groups(_ready(entries)):
        is_changed = True
        while is_changed:
            is_changed = False
            for entry in _ready(group):
                problems = [
                    _problem(fqn, spec, migrated.get(fqn, ()))
                    for fqn, spec in _archive(entry).requirements.items()
                    if not is_satisfied(entry, fqn, spec)
                ]
                if problems:
                    entry.end(Result.REFUSED, "\n".join(problems))
                    is_changed = True


def migrate(
    entries: Iterable[Migration], repository: Repository, report: Report = progress.ignore
) -> None:
    """Upload the packages that are ready, several at once, and publish them.

    Required packages are published first, and packages that require each other together.

    :param repository: the service, with the rights of the caller; it publishes public packages.
    :param report: called after each piece of an upload, from any thread.
    :raises CatalogUnavailable: if the service does not answer; drafts stay.
    """
    ready = _ready(entries)
    drafts: dict[str, StoredPackage] = {}

    def upload(entry: Migration) -> None:
        if entry.step is None:
            raise ValueError(f"{entry.package} was not compared")
        owner, archive = entry.package.owner, entry.step.package
        try:
            drafts[entry.package.id] = publication.upload_one(
                _repository(entry),
                entry.step,
                entry.package.fields,
                lambda p: report(dataclasses.replace(p, name=f"{archive} of {owner}")),
            )
        except errors.CatalogUnavailable:
            raise
        except errors.CatalogError as error:
            entry.end(Result.REFUSED, error)

    list(concurrency.results(upload, ready))
    for group in filter(None, map(_ready, _groups(ready))):
        # All packages of a group have one visibility; in a private group, they have one owner.
        package = group[0].package
        publisher = repository if package.is_public else _repository(group[0])
        try:
            publication.publish(
                publisher, [drafts[e.package.id] for e in group], package.visibility
            )
        except errors.CatalogUnavailable:
            raise
        except errors.CatalogError as error:
            _end(group, Result.REFUSED, error)
        else:
            _end(group, Result.MIGRATED)


def _refuse_repeated(entries: Iterable[Migration]) -> None:
    """Refuse packages if the project has another one with the same name and version."""
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
    """Return the service within the scope of a project, or why this is not possible."""
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


def _end(entries: Iterable[Migration], result: Result, reason: object = "") -> None:
    for entry in entries:
        entry.end(result, reason)


def _repository(entry: Migration) -> Repository:
    if entry.repository is None:
        raise ValueError(f"{entry.package} was not compared")
    return entry.repository


def _archive(entry: Migration) -> LocalPackage:
    if entry.archive is None:
        raise ValueError(f"{entry.package} was not read")
    return entry.archive


def _serves(other: Migration, entry: Migration, spec: VersionSpec) -> bool:
    """Return whether a package in the migration satisfies a requirement of another one."""
    is_visible = other.package.is_public or (
        other.package.owner == entry.package.owner and not entry.package.is_public
    )
    is_left = other.result in (Result.READY, Result.SKIPPED)
    return is_left and is_visible and other.version is not None and spec.match(other.version)


def _problem(fqn: str, spec: VersionSpec, others: Sequence[Migration]) -> str:
    refused = [f"{o.package} is {o.result}" for o in others if o.result is Result.REFUSED]
    listed = errors.listed(str(other.version) for other in others if other.version)
    found = "; ".join(refused) or f"Murano has: {listed}"
    return (
        f"it requires {fqn} in the range {spec}, which was not found ({found}); publish "
        f"one that it can use, and run the command again"
    )


def _groups(entries: Iterable[Migration]) -> list[list[Migration]]:
    """Group packages that require each other, and return the groups, required ones first."""
    by_id = {entry.package.id: entry for entry in entries}
    required = {
        entry.package.id: [
            other.package.id
            for fqn, spec in _archive(entry).requirements.items()
            for other in by_id.values()
            if other.package.fqn == fqn and _serves(other, entry, spec)
        ]
        for entry in by_id.values()
    }
    return [[by_id[i] for i in group] for group in ordering.required_first(required)]
