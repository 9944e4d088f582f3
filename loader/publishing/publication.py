# SPDX-License-Identifier: Apache-2.0

"""Publish packages from this host, all of them or none.

Everything is checked first. Then the archives are uploaded as drafts, several at once. One request
publishes up to 100 drafts, so that the packages may require each other. After a failure, the drafts
stay, and the next attempt uploads only the missing archives.
"""

import dataclasses
import enum
import io
import itertools
import logging
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from glare_murano import fields as table
from glare_murano import wire
from glare_murano.package import InvalidVersion, Problem, Version
from glare_murano.package.rules import Rule
from glare_murano.resolver import PackageVersion
from loader import concurrency, errors, progress
from loader.authoring import local_packages
from loader.authoring.local_packages import LocalPackage
from loader.catalogs import stored_package
from loader.catalogs.base import own_first
from loader.catalogs.repository import Repository
from loader.catalogs.stored_package import StoredPackage, Visibility
from loader.progress import Progress, Report
from loader.publishing import ordering
from loader.publishing.target import Target
from loader.transport.failures import Conflict

LOG = logging.getLogger(__name__)

_ACTIVE = "active"
_DRAFTED = "drafted"
# The fields that the service never reads from an archive. They are set when the draft is created,
# which saves a request.
_OF_PUBLISHER = frozenset(field.name for field in table.FIELDS if field.fill is None)
# How many seconds pass before each further attempt, if another process changes the same package.
_WAITS = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0)


class State(enum.StrEnum):
    """The state of a package in the repository before it is published."""

    MISSING = "missing"  # or a draft with another archive, or without one
    UPLOADED = "uploaded"  # a draft with this archive
    PRIVATE = "private"  # active, but not public
    PUBLISHED = "published"


class PublishError(errors.LoaderError):
    """Packages cannot be published.

    :ivar problems: all problems, each in a line of the message.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problems))


@dataclasses.dataclass(frozen=True)
class Step:
    """One package of a publication.

    :param package: the package on this host.
    :param state: the package's state in the repository before the publication.
    :param stored: the package in the repository; None if it is missing there.
    """

    package: LocalPackage
    state: State
    stored: StoredPackage | None = None


def plan(target: Target, packages: Collection[LocalPackage], visibility: Visibility) -> list[Step]:
    """Compare packages with those in the target, and plan how to publish them; nothing is changed.

    :param visibility: the visibility that the packages get.
    :returns: a step for each package, required packages first.
    :raises PublishError: if a version is published already with other files, is deactivated, or
        cannot be created again after it was deleted; or if it is a draft with other files, which
        the service does not replace. The message has all such problems.
    :raises CatalogError: if the service does not answer.
    """
    stored = _stored(target, packages)
    problems: list[str] = []
    steps = []
    for package in _required_first(packages):
        found = stored.get(package.key, ())
        steps.append(_step(target.repository, package, found, visibility, problems))
    problems += _blocked(target.repository, steps)
    if problems:
        raise PublishError(problems)
    return steps


def _blocked(repository: Repository, steps: Iterable[Step]) -> list[str]:
    """Return the problems of packages that cannot be created, since they were deleted before."""
    missing = {step.package.key: step.package.place for step in steps if step.stored is None}
    reasons = repository.blocked(list(missing)) if missing else {}
    return [f"{missing[key]}: {reason}" for key, reason in reasons.items()]


def check_unpublished(steps: Iterable[Step]) -> None:
    """Check that no package is published already.

    :raises PublishError: if packages are published already; the message names all of them.
    """
    published = [step for step in steps if step.state is State.PUBLISHED]
    if published:
        raise PublishError(
            [f"{s.package.place}: {s.package} is published already" for s in published]
        )


def check_uploads(
    repository: Repository,
    steps: Iterable[Step],
    fields: Callable[[LocalPackage], Mapping[str, Any]] = lambda _: {},
) -> None:
    """Check whether the service would refuse packages that have to be uploaded.

    The service may refuse forms that the dashboard cannot show, and it stores only values of a
    limited length.

    :param fields: a function that returns the fields that the publisher sets for a package.
    :raises PublishError: if the service would refuse packages; the message has all problems.
    :raises CatalogError: if the service does not answer.
    """
    waiting = [step.package for step in steps if step.state is State.MISSING]
    problems = [
        f"{package.place}: {problem}"
        for package in waiting
        for problem in _find_excess(package, fields(package))
    ]
    doubtful = [package for package in waiting if package.warnings]
    if doubtful and repository.checks()["check_forms"] == wire.ENFORCED:
        for package in doubtful:
            found = local_packages.find_form_problems(package)
            problems += [f"{package.place}: {problem}" for problem in found]
    if problems:
        raise PublishError(problems)


def _find_excess(package: LocalPackage, values: Mapping[str, Any]) -> Iterator[Problem]:
    try:
        table.check_version(str(package.version))
    except InvalidVersion as error:
        yield Problem(Rule.MANIFEST_LIMIT, "Version", str(error))
    yield from table.find_excess({**package.values, **values})


def upload(
    repository: Repository,
    steps: Sequence[Step],
    fields: Callable[[LocalPackage], Mapping[str, Any]] = lambda _: {},
    report: Report = progress.ignore,
) -> list[StoredPackage]:
    """Upload the missing archives as drafts, several at once, and set fields.

    :param fields: a function that returns the fields to set for a package that is not published
        yet, such as ``categories``.
    :param report: a function that is called after each piece of an upload, from any thread.
    :returns: the packages of all steps, except those that were published before.
    :raises PublishError: if packages cannot be uploaded. The message has all problems, and the
        other packages are uploaded.
    """

    def send(step: Step) -> StoredPackage | str:
        try:
            return upload_one(repository, step, fields(step.package), report)
        except errors.CatalogError as error:
            return f"{step.package.place}: {error}"

    waiting = [step for step in steps if step.state is not State.PUBLISHED]
    results = list(concurrency.results(send, waiting))
    if problems := [result for result in results if isinstance(result, str)]:
        raise PublishError(problems)
    return [result for result in results if not isinstance(result, str)]


def upload_one(
    repository: Repository,
    step: Step,
    values: Mapping[str, Any],
    report: Report,
) -> StoredPackage:
    """Upload the archive of a package as a draft, and set its fields.

    If another process uploads the same package, wait for it, and continue with its draft. If it has
    published the package meanwhile, return the published package.

    :param values: the fields to set.
    :param report: a function that is called after each piece of the upload.
    :raises CatalogError: if the service refuses the package.
    :raises PublishError: if another process has replaced the archive.
    """
    for wait in _WAITS:
        try:
            return _upload(repository, step, values, report)
        except Conflict as error:
            LOG.log(
                logging.WARNING if wait > 1 else logging.INFO,
                "%s; trying again in %g seconds, since another process may be uploading %s",
                error,
                wait,
                step.package,
            )
            time.sleep(wait)
            package = step.package
            found = _stored(Target(repository), [package]).get(package.key, ())
            problems: list[str] = []
            # With "private", an active package that is not public counts as published as well:
            # ``publish`` makes it public if needed.
            step = _step(repository, package, found, "private", problems)
            if problems:
                raise
            if step.state is State.PUBLISHED and step.stored is not None:
                return step.stored
    return _upload(repository, step, values, report)


def _upload(
    repository: Repository,
    step: Step,
    values: Mapping[str, Any],
    report: Report,
) -> StoredPackage:
    package = step.package
    early = {name: value for name, value in values.items() if name in _OF_PUBLISHER}
    stored = step.stored or repository.create(package.fqn, package.version, **early)
    if step.state is State.MISSING:
        progress = Progress(str(package), 0, package.size)
        with open(package.archive, "rb", buffering=0) as file:
            # The last byte is counted only when the service has accepted the package.
            watched = _CountedFile(
                file,
                lambda sent: report(
                    dataclasses.replace(progress, done=min(sent, package.size - 1))
                ),
            )
            stored = repository.upload(stored, io.BufferedReader(watched), package.size)
        report(dataclasses.replace(progress, done=package.size))
    # These fields are set after the upload: Glare refuses an archive that contradicts them.
    changed = {name: value for name, value in values.items() if stored.fields.get(name) != value}
    uploaded = stored.digest
    stored = repository.change(stored, **changed) if changed else stored
    if stored.digest != uploaded:
        raise PublishError([_replaced(repository, stored)])
    return stored


def publish(
    repository: Repository, packages: Sequence[StoredPackage], visibility: Visibility
) -> None:
    """Publish uploaded packages: activate them, with the given visibility.

    A request has at most 100 packages, and publishes all of them or none. Packages that require
    each other are in one request, if they fit.

    :raises CatalogError: if the service refuses a request; packages of earlier requests stay
        published.
    :raises PublishError: if another process has replaced an archive before the publication.
    """
    for batch in _batches(packages):
        published = _publish(repository, batch, visibility)
        if problems := [
            _replaced(repository, package)
            for package in batch
            if package.digest != published.get(package.id)
        ]:
            raise PublishError(problems)


def _replaced(repository: Repository, package: StoredPackage) -> str:
    return (
        f"{repository.name} has {package} with other files (artifact {package.id}), which another "
        f"process has uploaded at the same time; publish these files as another version"
    )


def _publish(
    repository: Repository, batch: Sequence[StoredPackage], visibility: Visibility
) -> Mapping[str, str]:
    """Publish packages with one request.

    :returns: a mapping of ids to the SHA-256 of the published archives.
    """
    for number, wait in enumerate(_WAITS):
        try:
            return repository.publish(batch, visibility)
        except Conflict:
            # Another process may be uploading the same archives again.
            if number and not _is_uploading(repository, batch):
                raise
            time.sleep(wait)
    return repository.publish(batch, visibility)


def _is_uploading(repository: Repository, packages: Collection[StoredPackage]) -> bool:
    """Return whether one of the given drafts has no archive any more.

    This is so while another process uploads the archive of the draft again.
    """
    ids = {package.id for package in packages}
    stored = repository.named({package.fqn for package in packages})
    return any(package.id in ids and not package.digest for package in stored)


def _batches(packages: Iterable[StoredPackage]) -> Iterator[list[StoredPackage]]:
    """Yield the packages for each request, required packages first."""
    batch: list[StoredPackage] = []
    for group in required_first(packages):
        is_cycle = len({package.fqn for package in group}) > 1
        is_whole = is_cycle and len(group) <= wire.MAX_PUBLICATIONS
        for unit in [group] if is_whole else [[package] for package in group]:
            if len(batch) + len(unit) > wire.MAX_PUBLICATIONS:
                yield batch
                batch = []
            batch += unit
    if batch:
        yield batch


def required_first(packages: Iterable[StoredPackage]) -> Iterator[list[StoredPackage]]:
    """Yield groups of packages, each group after the groups that it requires.

    A group has all versions of a package. Packages that require each other are in the same group.
    """
    named = stored_package.by_name(packages)
    required = {
        fqn: [name for p in found for name in p.fields.get("requirements") or () if name in named]
        for fqn, found in named.items()
    }
    for group in ordering.required_first(required):
        yield [package for fqn in group for package in named[fqn]]


def check_by_service(repository: Repository, steps: Iterable[Step], visibility: Visibility) -> None:
    """Let the service check a publication, if all its archives are uploaded already.

    The service checks the user's rights, and whether the required packages still exist. If an
    archive is not uploaded yet, or if there are more than 100 packages, nothing is checked.

    :raises CatalogError: if the service would refuse the publication.
    """
    waiting = [step for step in steps if step.state is not State.PUBLISHED]
    stored = [s.stored for s in waiting if s.stored is not None and s.state is not State.MISSING]
    # If a package is not uploaded yet, the service would refuse the request for this reason alone.
    if 0 < len(stored) == len(waiting) <= wire.MAX_PUBLICATIONS:
        repository.publish(stored, visibility, is_dry_run=True)


def _stored(
    target: Target, packages: Iterable[LocalPackage]
) -> Mapping[PackageVersion, Sequence[StoredPackage]]:
    """Return the packages in the target that have the names and versions of given packages.

    :returns: a mapping of names with versions to packages, the project's own first.
    """
    project = target.repository.project()
    named = target.named({package.fqn for package in packages})
    found: dict[PackageVersion, list[StoredPackage]] = {}
    for stored in itertools.chain.from_iterable(named.values()):
        # A package of another project counts only if every project can use it.
        is_public = stored.visibility == "public" and stored.status != _DRAFTED
        if is_public or project in (None, stored.owner):
            found.setdefault(stored.key, []).append(stored)
    return {version: own_first(same, project) for version, same in found.items()}


def _step(
    repository: Repository,
    package: LocalPackage,
    stored: Sequence[StoredPackage],
    visibility: Visibility,
    problems: list[str],
) -> Step:
    for found in stored:
        if found.status == _DRAFTED:
            state = _draft_state(repository, package, found)
            if state is None:
                problems.append(
                    f"{package.place}: {repository.name} has a draft of {package} with other files "
                    f"({found.id}), which it never replaces; publish these files as another version"
                )
                continue
            return Step(package, state, found)
        if found.status != _ACTIVE:
            problems.append(
                f"{package.place}: {package} is {found.status} in {repository.name}; reactivate "
                f"it, or publish another version"
            )
        elif not _is_same(repository, package, found):
            if found.visibility != "public" or visibility == "public":
                problems.append(
                    f"{package.place}: {package} is published in {repository.name} with other "
                    f"files ({found.id}); a version never changes, so publish these "
                    f"files as another version"
                )
                continue
            # A private package may be created beside the public one. The loader prefers it.
            return Step(package, State.MISSING)
        is_public = found.visibility == "public" or visibility == "private"
        return Step(package, State.PUBLISHED if is_public else State.PRIVATE, found)
    return Step(package, State.MISSING)


def _draft_state(
    repository: Repository, package: LocalPackage, draft: StoredPackage
) -> State | None:
    """Return the state of a package that is a draft in the repository.

    :param draft: the draft.
    :returns: None if the draft has other files than the package, and they cannot be replaced.
    """
    if draft.digest == package.digest:
        return State.UPLOADED
    if not draft.digest or repository.replaces_archives:
        return State.MISSING
    return State.UPLOADED if _is_same(repository, package, draft) else None


def _is_same(repository: Repository, package: LocalPackage, stored: StoredPackage) -> bool:
    if stored.digest == package.digest:
        return True
    with tempfile.TemporaryFile() as file:
        file.writelines(repository.download(stored))
        file.flush()
        return package.has_files_of(file)


def _required_first(packages: Iterable[LocalPackage]) -> list[LocalPackage]:
    named = by_name(packages)
    required = {
        fqn: [name for p in found.values() for name in p.requirements if name in named]
        for fqn, found in named.items()
    }
    ordered = itertools.chain.from_iterable(ordering.required_first(required))
    return [package for fqn in ordered for package in named[fqn].values()]


def by_name(packages: Iterable[LocalPackage]) -> dict[str, dict[Version, LocalPackage]]:
    """Group packages by their names, and then by their versions."""
    found: dict[str, dict[Version, LocalPackage]] = {}
    for package in packages:
        found.setdefault(package.fqn, {})[package.version] = package
    return found


class _CountedFile(io.RawIOBase):
    """A file that reports, after each read, how many bytes were read so far."""

    def __init__(self, file: IO[bytes], report: Callable[[int], object]) -> None:
        self._file = file
        self._report = report

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        count: int = self._file.readinto(buffer)  # type: ignore[attr-defined]
        self._report(self._file.tell())
        return count
