# SPDX-License-Identifier: Apache-2.0

"""The lock file, which lists exact releases, so that later deployments load the same ones.

A lock file has a list of requirements. It also has all releases that these need, directly or
through other releases, each with its digest. A ``LockedCatalog`` has these releases. It needs no
network if the cache has their archives. The file is sorted YAML, so that version control shows
small differences.
"""

import collections
import dataclasses
import logging
import os
import pathlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from glare_murano import resolver
from glare_murano.package import Version, VersionSpec, parse_version, safe_yaml
from glare_murano.package.errors import quoted, shown
from glare_murano.package.manifest import check_required_name
from glare_murano.wire import Answer, Query, Release
from loader import errors, fs, resolution, version_changes
from loader.catalogs.base import Catalog, newest_first
from loader.counters import Counters
from loader.lockfiles import lock_form
from loader.resolution import as_catalogs, names
from loader.version_changes import VersionChange

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, repr=False)
class Lock:
    """A list of requirements, and the exact releases that satisfy them.

    >>> lock = Lock.create(DirectoryCatalog("packages"), {"org.wiki": "1"})
    >>> lock
    <Lock of org.wiki 1: io.murano 0.1.0, org.db 1.2.0, org.wiki 1.1.0>
    >>> lock.save("packages.lock")
    >>> Lock.load("packages.lock") == lock
    True

    :param requirements: a mapping of FQNs to ranges.
    :param releases: all releases, sorted by name and version.
    :param external: the extension plug-ins of the engine that are required: a mapping of their
        names to their versions, the newest first.
    """

    requirements: Mapping[str, VersionSpec]
    releases: tuple[Release, ...]
    external: Mapping[str, tuple[Version, ...]] = dataclasses.field(default_factory=dict)

    def __repr__(self) -> str:
        requirements = ", ".join(f"{fqn} {spec}" for fqn, spec in self.requirements.items())
        return f"<Lock of {requirements}: {', '.join(map(str, self.releases))}>"

    @classmethod
    def create(
        cls,
        catalogs: Catalog | Iterable[Catalog],
        requirements: Mapping[str, str | VersionSpec],
        provided: Mapping[str, Iterable[str]] | None = None,
    ) -> "Lock":
        """Choose the releases for requirements, and return a lock with them.

        >>> Lock.create([DirectoryCatalog("packages")], {"org.db": "<1.2", "io.murano": "*"})
        <Lock of org.db <1.2, io.murano *: io.murano 0.1.0, org.db 1.0.0>

        :param catalogs: one catalogue, or several in the order of preference.
        :param requirements: a mapping of FQNs to ranges.
        :param provided: a mapping of the names of the engine's extension plug-ins to their
            versions, in addition to those in the service's configuration.
        :raises InvalidName: if a name is not valid.
        :raises InvalidRange: if a range is not valid.
        :raises NoSuchPackage: if packages are missing; the message names all of them.
        :raises LockError: if a release has no digest, or there is no catalogue.
        :raises CatalogError: if a catalogue cannot be read.
        """
        if not isinstance(requirements, Mapping):
            raise TypeError(
                f"requirements must be a mapping such as {{'org.db': '1'}}, not {requirements!r}"
            )
        specs = {
            check_required_name(fqn): VersionSpec.of(range) for fqn, range in requirements.items()
        }
        plugins = {fqn: list(map(parse_version, texts)) for fqn, texts in (provided or {}).items()}
        return cls._resolve(as_catalogs(catalogs), specs, {}, plugins)

    def update(
        self, catalogs: Catalog | Iterable[Catalog], fqns: Collection[str] | None = None
    ) -> "Lock":
        """Return another lock, in which some or all packages have their newest versions.

        Packages that are not updated keep their versions. They get another version only if a range
        requires it, and never another archive of the same version.

        >>> old = Lock.create(DirectoryCatalog("packages"), {"org.db": "1", "org.wiki": "1"})
        >>> old.update(DirectoryCatalog("packages"), ["org.db"]) == old
        True

        :param fqns: the packages to update; by default, all.
        :raises LockError: as in ``create``; also if a package to update is not in the lock, or if a
            version to keep is missing or has another archive now.
        :raises NoSuchPackage: if packages are missing; the message names all of them.
        :raises CatalogError: if a catalogue cannot be read.
        """
        if isinstance(fqns, str):
            # A string would be read as a list of its letters.
            raise errors.LockError(
                f"expected a list of packages to update, such as [{quoted(fqns)}], not a string"
            )
        locked = {release.fqn for release in self.releases}
        if unknown := sorted(set(fqns or ()) - locked):
            raise errors.LockError(
                f"{', '.join(unknown)}: not in the lock, which has {', '.join(sorted(locked))}"
            )
        kept = [r for r in self.releases if fqns is not None and r.fqn not in fqns]
        pins: dict[str, list[Version]] = {}
        for release in kept:
            pins.setdefault(release.fqn, []).append(release.version)
        found = as_catalogs(catalogs)
        updated = self._resolve(found, self.requirements, pins, self.external)
        updated._check_digests(kept, found)
        return updated

    def changes(self, updated: "Lock") -> list[VersionChange]:
        """Return the differences between this lock and an updated one.

        If only the archive of a version was replaced, the change has the same versions in
        ``before`` and ``after``.

        >>> Lock.create(DirectoryCatalog("packages"), {"org.wiki": "1.0.0"}).changes(lock)
        [VersionChange(fqn='org.wiki', before=(Version('1.0.0'),), after=(Version('1.1.0'),))]
        """
        digests = {release.key: release.digest for release in self.releases}
        replaced = {r.fqn for r in updated.releases if digests.get(r.key, r.digest) != r.digest}
        return version_changes.between(self._versions(), updated._versions(), replaced)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Lock":
        """Read a lock file.

        >>> lock = Lock.load("packages.lock")

        :raises LockError: if the file cannot be read, or is not a valid lock file.
        """
        file = pathlib.Path(path)
        try:
            with file.open("rb") as stream:
                data = stream.read(safe_yaml.MAX_SIZE + 1)
            return cls(*lock_form.parse(data, file.name))
        except FileNotFoundError as error:
            raise errors.LockError(
                f"there is no lock file {file}; name another file, or create it, such as by "
                f'"openstack murano lock create"'
            ) from error
        except OSError as error:
            raise errors.LockError(
                f"cannot read the lock file {file}: {error.strerror}; name a readable file"
            ) from error
        except ValueError as error:
            raise errors.LockError(f"{file} is not a valid lock file: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the lock to a file. If this fails, an existing file is not changed.

        >>> lock.save("packages.lock")

        :raises LockError: if the file cannot be written.
        """
        file = pathlib.Path(path)
        try:
            data = lock_form.dump(self.requirements, self.releases, self.external)
            # This checks that the file can be read again, for example that it is not too large.
            lock_form.parse(data, file.name)
            fs.replace(file, data)
        except OSError as error:
            raise errors.LockError(
                f"cannot write the lock file {file}: {error.strerror}; name a file in a writable "
                f"directory"
            ) from error
        except ValueError as error:
            raise errors.LockError(f"cannot write the lock file {file}: {error}") from error

    @classmethod
    def _resolve(
        cls,
        catalogs: Sequence[Catalog],
        requirements: Mapping[str, VersionSpec],
        pins: Mapping[str, Collection[Version]],
        provided: Mapping[str, Collection[Version]],
    ) -> "Lock":
        if not catalogs:
            raise errors.LockError("there is no catalogue to find packages in; pass at least one")
        query = Query(tuple(requirements.items()), pins=pins, provided=provided)
        resolved = resolution.resolve(catalogs, query)
        _check_found(resolved, catalogs, pins)
        for choice in resolved.chosen:
            if not choice.release.digest:
                directory = choice.catalog.directory(choice.release)
                raise errors.LockError(
                    f"{choice.release} in {directory} is a directory, "
                    f"without a digest to lock; replace the directory by a ZIP file of its content"
                )
        releases = (lock_form.lockable(choice.release) for choice in resolved.chosen)
        external: dict[str, set[Version]] = collections.defaultdict(set)
        for found in resolved.external:
            external[found.demand.fqn].add(found.version)
        by_fqn = {fqn: resolver.newest_first(external[fqn]) for fqn in sorted(external)}
        return cls(dict(requirements), lock_form.in_order(releases), by_fqn)._without_unused()

    def _without_unused(self) -> "Lock":
        """Return this lock without the releases that nothing requires.

        An update may keep a version of a package while other packages require a newer version. If
        the newer version satisfies all requirements, nothing requires the kept version any more.
        """
        query = Query(tuple(self.requirements.items()))
        chosen = resolution.resolve([LockedCatalog(self)], query).choices
        used = tuple(r for r in self.releases if r.version in chosen.get(r.fqn, ()))
        if used == self.releases:
            return self
        return dataclasses.replace(self, releases=used)._without_unused()

    def _versions(self) -> dict[str, list[Version]]:
        found: dict[str, list[Version]] = {}
        for release in self.releases:
            found.setdefault(release.fqn, []).append(release.version)
        return found

    def _check_digests(self, kept: Iterable[Release], catalogs: Iterable[Catalog]) -> None:
        """Check that kept releases still have the same archives in this updated lock.

        :param kept: the releases before the update whose versions the update had to keep.
        :param catalogs: the catalogues, for the message.
        :raises LockError: if a kept release has another archive now.
        """
        locked = {release.key: release.digest for release in kept}
        for release in self.releases:
            digest = locked.get(release.key, release.digest)
            if digest != release.digest:
                raise errors.LockError(
                    f"{release} is locked with the SHA-256 {digest}, but is another archive in "
                    f"{names(catalogs)}, with {release.digest}; if that is intended, update "
                    f"{release.fqn} as well"
                )


class LockedCatalog(Catalog):
    """A catalogue that has exactly the releases in a lock.

    >>> locked = LockedCatalog(lock, DirectoryCatalog("packages"))
    >>> with PackageLoader(locked, "cache") as packages:
    ...     packages.load("org.db")
    <MuranoPLPackage org.db 1.2.0>
    """

    def __init__(self, lock: Lock, catalogs: Catalog | Iterable[Catalog] = ()) -> None:
        """Make a catalogue; no file is read.

        :param lock: the lock with the releases.
        :param catalogs: the catalogues that have the archives. An archive is fetched from them if
            the cache lacks it, and only with the locked digest.
        """
        super().__init__("the lock file")
        self._lock = lock
        self._catalogs = as_catalogs(catalogs)
        self._by_fqn: dict[str, list[Release]] = {}
        for release in reversed(lock.releases):
            self._by_fqn.setdefault(release.fqn, []).append(release)

    @property
    def counters(self) -> Counters:
        total = Counters()
        for catalog in self._catalogs:
            total.add(catalog.counters)
        return total

    def releases(self, fqn: str) -> list[Release]:
        return self._by_fqn.get(fqn, [])

    def releases_defining(self, class_name: str) -> list[Release]:
        return newest_first(r for r in self._lock.releases if class_name in r.classes)

    def resolve(self, query: Query) -> Answer:
        """Choose all releases that a query requires, as if all locked versions were pinned.

        For each range, the newest locked version is chosen. Other catalogues choose as few versions
        as possible. With their rule, a query could get other versions than when the lock was
        created. If the query has pins for a package, they count instead of all locked versions.
        """
        pins = {fqn: list(versions) for fqn, versions in query.pins.items() if versions}
        for fqn, releases in self._by_fqn.items():
            pins.setdefault(fqn, [release.version for release in releases])
        provided = {**self._lock.external, **query.provided}
        locked = dataclasses.replace(query, pins=pins, provided=provided)
        resolved = resolution.by_level([self], locked)
        chosen = tuple((choice.release, choice.demands) for choice in resolved.chosen)
        why = {choice.release.key: choice.why for choice in resolved.chosen} if query.why else {}
        return Answer(chosen, resolved.unsatisfied, resolved.undefined, why, resolved.external)

    def close(self) -> None:
        for catalog in self._catalogs:
            catalog.close()

    def remedy(self, missing: str) -> str:
        return f"create the lock file again from catalogues with {missing}"

    def fetch(self, release: Release) -> Iterable[bytes]:
        """Fetch an archive from the first catalogue that has the release with the locked digest.

        If this release was yanked, a warning is logged.

        :raises CatalogError: if no catalogue has it.
        """
        found = []
        for catalog in self._catalogs:
            for candidate in catalog.releases(release.fqn):
                if candidate.version == release.version:
                    if candidate.digest == release.digest:
                        if candidate.yanked:
                            reason = shown(candidate.yanked)
                            LOG.warning("%s is locked, but was yanked: %s", candidate, reason)
                        return catalog.fetch(candidate)
                    found.append(f"{catalog.name} has {candidate.digest or 'no digest'}")
        failure = f"was not found in {names(self._catalogs)}"
        remedy = "restore this archive there, or create the lock file again"
        if not self._catalogs:
            failure = "cannot be fetched, since the lock file is used without other catalogues"
            remedy = "pass the catalogues that it was created from"
        raise errors.CatalogError(
            f"{release} is locked with the SHA-256 {release.digest}, which is not in the cache and "
            + "; ".join([failure, *found, remedy])
        )

    def check(self, release: Release, read: Callable[[], Release]) -> None:
        """Check that a loaded package has the same requirements and classes as in the lock.

        :param release: the release in the lock.
        :param read: a function that reads the release from the package.
        :raises LockError: if the package has other requirements or classes.
        """
        found = read()
        for fqn in sorted(release.requirements.keys() | found.requirements.keys()):
            locked, written = release.requirements.get(fqn), found.requirements.get(fqn)
            if locked != written:
                raise _mismatch(release, f"requirements: {fqn}", locked, written)
        if release.classes != found.classes:
            # The message has only the differences, since a package may have many classes.
            lists = (
                sorted(release.classes - found.classes),
                sorted(found.classes - release.classes),
            )
            raise _mismatch(release, "class_definitions", *map(errors.listed, lists))


def _mismatch(release: Release, key: str, locked: object, written: object) -> errors.LockError:
    return errors.LockError(
        f"{release} is locked with {key} {locked or 'none'}, but the package has "
        f"{written or 'none'}; create the lock file again"
    )


def _check_found(
    resolved: resolution.Resolution,
    catalogs: Sequence[Catalog],
    pins: Mapping[str, Collection[Version]],
) -> None:
    """Check that no required package is missing, and no version that an update keeps.

    :param resolved: the packages that were chosen, and those that are missing.
    :param pins: the versions that an update of the lock keeps.
    :raises LockError: if a version that the update keeps is missing.
    :raises NoSuchPackage: if another package is missing.
    """
    missing = [resolved.error(unsatisfied, catalogs) for unsatisfied in resolved.unsatisfied]
    for error in missing:
        locked = error.spec.select(pins.get(error.fqn, ()))
        if locked is not None:
            raise errors.LockError(
                f"{error.fqn} is locked to {locked}, which {names(catalogs)} no longer has "
                f"(available: {errors.listed(map(str, error.available))}); update {error.fqn} as "
                f"well; the requirements on it: {error.chains}"
            )
    if missing:
        raise errors.NoSuchPackage.combine(missing)
