# SPDX-License-Identifier: Apache-2.0

"""Copy packages from one service to another, all of them or none.

Archives are copied byte by byte, so their digests do not change. After a failure, the next
attempt copies only what is missing.
"""

import dataclasses
import itertools
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from loader import concurrency, errors, progress
from loader.authoring import local_packages
from loader.authoring.local_packages import LocalPackage
from loader.catalogs.base import Catalog
from loader.catalogs.repository import Repository
from loader.catalogs.stored_package import StoredPackage, Visibility
from loader.progress import Report
from loader.publishing import publication, requirements, saving
from loader.publishing.publication import State, Step
from loader.publishing.target import Target
from loader.references import PackageReference

# Fields that a publisher may change.
_FIELDS = ("display_name", "description", "tags", "categories", "keywords")


@dataclasses.dataclass(frozen=True)
class Copy:
    """A package to be copied.

    :param source: the package in the source.
    :param step: the step that publishes it; None if the target has published the same archive.
    :param present: the package in the target; None if missing.
    """

    source: StoredPackage
    step: Step | None
    present: StoredPackage | None

    @property
    def state(self) -> State:
        """The state of the package in the target, before the copy."""
        return self.step.state if self.step else State.PUBLISHED


def choose(
    repository: Repository,
    catalog: Catalog,
    references: Iterable[PackageReference],
    *,
    closure: bool = False,
) -> list[StoredPackage]:
    """Return the newest package that can be loaded for each reference.

    :param closure: whether to also return the closure of the packages.
    :raises NotFound: if a package or a required package is missing.
    :raises CatalogError: if the service does not answer.
    """
    ids: dict[str, str] = {}
    for reference in references:
        release, required = saving.choose(
            catalog, *repository.name_and_range(reference), reference.id
        )
        ids |= {each.id: each.fqn for each in (required if closure else [release])}
    named = {package.id: package for package in repository.named(set(ids.values()))}
    missing = [f"{ids[i]} ({i})" for i in ids if i not in named]
    if missing:
        raise errors.NotFound(f"{', '.join(missing)} disappeared from {repository.name}; try again")
    return [named[artifact_id] for artifact_id in ids]


def plan(
    source: Repository,
    target: Repository,
    catalog: Catalog,
    packages: Sequence[StoredPackage],
    visibility: Visibility,
    folder: pathlib.Path,
    report: Report = progress.ignore,
) -> list[Copy]:
    """Download the packages that the target lacks, and compare them; change nothing.

    :param catalog: the releases that the user of the target can load.
    :param folder: an empty directory for the archives.
    :param report: called after each piece of a download, from any thread.
    :returns: a copy for each package, published packages first.
    :raises PublishError: if the target has a version with other files, or lacks a
        requirement; the message has all such problems.
    :raises InvalidPackages: if the archives break rules.
    :raises DigestMismatch: if an archive does not have the digest that the source lists.
    :raises CatalogError: if a service does not answer.
    """
    found = Target(target)
    same = _same(found, packages, visibility)
    waiting = [package for package in packages if package.id not in same]
    copies = [Copy(p, None, same[p.id]) for p in packages if p.id in same]

    def download(package: StoredPackage) -> LocalPackage:
        place = f"{package} of {source.name}"
        pieces = saving.checked(source.download(package), package, source.name, report)
        file = folder / f"{waiting.index(package)}.zip"
        archive = local_packages.receive(pieces, file, place)
        if archive.key != package.key:
            raise errors.CatalogError(f"{source.name} sent {archive} as the archive of {package}")
        return archive

    by_key = {package.key: package for package in waiting}
    archives = list(concurrency.results(download, waiting))
    requirements.find(archives, found, catalog, (), visibility)
    for step in publication.plan(found, archives, visibility):
        package = by_key[step.package.key]
        copies.append(Copy(package, step, step.stored))
    return copies


def copy(
    target: Repository,
    copies: Iterable[Copy],
    visibility: Visibility,
    report: Report = progress.ignore,
) -> None:
    """Upload the missing packages, publish them with one request, and copy yanks.

    :raises PublishError: if packages cannot be published; the message has all problems.
    :raises CatalogError: if the service refuses; then no package is published, and drafts stay.
    """
    copies = list(copies)
    sources = {copy.source.key: copy.source for copy in copies}

    def fields(package: LocalPackage) -> Mapping[str, Any]:
        source = sources[package.key].fields
        return {name: source[name] for name in _FIELDS if name in source}

    steps = [copy.step for copy in copies if copy.step]
    uploaded = publication.upload(target, steps, fields, report)
    if uploaded:
        publication.publish(target, uploaded, visibility)
    stored = {copy.source.key: copy.present for copy in copies if copy.present}
    stored |= {package.key: package for package in uploaded}
    for copy in copies:
        reason, package = copy.source.yanked, stored[copy.source.key]
        if reason and package.yanked != reason:
            target.yank(package, reason)


def _same(
    target: Target, packages: Iterable[StoredPackage], visibility: Visibility
) -> dict[str, StoredPackage]:
    """Return id of a package in the source -> the target's published package with this archive."""
    project = target.repository.project()
    digests = {(package.key, package.digest): package.id for package in packages}
    named = target.named({key.fqn for key, _ in digests})
    return {
        digests[found.key, found.digest]: found
        for found in itertools.chain.from_iterable(named.values())
        if (found.key, found.digest) in digests
        and found.status == "active"
        and (found.visibility == "public" or (found.owner == project and visibility == "private"))
    }
