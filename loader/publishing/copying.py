# SPDX-License-Identifier: Apache-2.0

"""Copy packages from one service to another, all of them or none.

Archives are copied byte by byte, so their digests do not change. If a copy fails, the next attempt
copies only what is missing.
"""

import dataclasses
import itertools
import logging
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
from loader.publishing import exports, publication, requirements
from loader.publishing.publication import State, Step
from loader.publishing.requirements import Warn
from loader.publishing.target import Target
from loader.references import PackageReference

LOG = logging.getLogger(__name__)

# A publisher may change these fields, so they may differ from those in the archive.
_FIELDS = ("display_name", "description", "tags", "categories", "keywords")


@dataclasses.dataclass(frozen=True)
class Copy:
    """A package to copy, and what the target service has of it.

    :param source: the package in the service from which it is copied.
    :param step: the step that publishes it in the target; None if the target has already published
        the same archive.
    :param present: the package in the target; None if it is missing there.
    """

    source: StoredPackage
    step: Step | None
    present: StoredPackage | None

    @property
    def state(self) -> State:
        """The state of the package in the target before the copy."""
        return self.step.state if self.step else State.PUBLISHED


def choose(
    repository: Repository,
    catalog: Catalog,
    references: Iterable[PackageReference],
    *,
    closure: bool = False,
) -> list[StoredPackage]:
    """Return the packages to copy: for each reference, the newest one that can be loaded.

    :param catalog: the catalogue of the service from which packages are copied.
    :param closure: whether to return also all packages that the chosen ones require, directly or
        through others.
    :raises NotFound: if a package or a required package is missing.
    :raises CatalogError: if the service does not answer.
    """
    ids: dict[str, str] = {}
    for reference in references:
        release, required = exports.choose(
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
    warn: Warn = LOG.warning,
) -> list[Copy]:
    """Download the packages that the target lacks, and check them; the target is not changed.

    :param catalog: a catalogue of the target, with the rights of the user there.
    :param visibility: the visibility of the copies.
    :param folder: an empty directory for the archives.
    :param report: a function that is called after each piece of a download, from any thread.
    :param warn: a function that is called for each warning about a package.
    :returns: a ``Copy`` for each package; first those for packages that the target has published.
    :raises PublishError: if the target has a version with other files, lacks a required package,
        or would refuse a package; the message has all such problems.
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
        pieces = exports.checked(source.download(package), package, source.name, report)
        file = folder / f"{waiting.index(package)}.zip"
        archive = local_packages.receive(pieces, file, place)
        if archive.key != package.key:
            raise errors.CatalogError(f"{source.name} sent {archive} as the archive of {package}")
        return archive

    by_key = {package.key: package for package in waiting}
    archives = list(concurrency.results(download, waiting))
    for archive in archives:
        for warning in archive.warnings:
            warn(f"{archive.place}: {warning}")
    requirements.find(archives, found, catalog, (), visibility, warn)
    steps = publication.plan(found, archives, visibility)
    publication.check_uploads(target, steps, lambda archive: _fields(by_key[archive.key]))
    for step in steps:
        package = by_key[step.package.key]
        copies.append(Copy(package, step, step.stored))
    return copies


def copy(
    target: Repository,
    copies: Iterable[Copy],
    visibility: Visibility,
    report: Report = progress.ignore,
) -> None:
    """Upload the missing packages, publish them, and yank the copies of yanked packages.

    :param copies: the result of ``plan``.
    :param report: a function that is called after each piece of an upload, from any thread.
    :raises PublishError: if packages cannot be published; the message has all problems.
    :raises CatalogError: if the service refuses a request. Then drafts stay, and packages that
        earlier requests have published stay published.
    """
    copies = list(copies)
    sources = {copy.source.key: copy.source for copy in copies}

    steps = [copy.step for copy in copies if copy.step]
    uploaded = publication.upload(
        target, steps, lambda package: _fields(sources[package.key]), report
    )
    if uploaded:
        publication.publish(target, uploaded, visibility)
    stored = {copy.source.key: copy.present for copy in copies if copy.present}
    stored |= {package.key: package for package in uploaded}
    for copy in copies:
        reason, package = copy.source.yanked, stored[copy.source.key]
        if reason and package.yanked != reason:
            target.yank(package, reason)


def _fields(source: StoredPackage) -> Mapping[str, Any]:
    """Return the fields of a package that a publisher may change, so that they are copied."""
    return {name: source.fields[name] for name in _FIELDS if name in source.fields}


def _same(
    target: Target, packages: Iterable[StoredPackage], visibility: Visibility
) -> dict[str, StoredPackage]:
    """Return the packages that the target has already published with the same archive.

    A package in the target has to be public. If ``visibility`` is ``private``, a package of the
    user's own project counts as well.

    :returns: a mapping of a package's id in the source to the package in the target.
    """
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
