# SPDX-License-Identifier: Apache-2.0

"""The lock file: a closure, written down so that it can be had again exactly.

It holds what was asked for and every release that it came to, with the digest
of its archive. A locked closure is loaded through ``LockedCatalog``, which needs
no other catalogue for what lies in the cache. The file is YAML, sorted, so that
a version control system shows what changed.
"""

import dataclasses
import os
import pathlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from glare_murano import resolver
from glare_murano.package import Version, VersionSpec, safe_yaml
from glare_murano.package.errors import quoted
from loader import errors, fs, lockform, resolution
from loader.catalogs.base import Answer, Catalog, Query, Release, newest_first


@dataclasses.dataclass(frozen=True)
class Lock:
    """A closure, and what was asked for.

    :param requirements: FQN -> range.
    :param releases: all of the closure, sorted by name and version.
    """

    requirements: Mapping[str, VersionSpec]
    releases: tuple[Release, ...]

    @classmethod
    def create(cls, catalogs: Sequence[Catalog], requirements: Mapping[str, VersionSpec]) -> "Lock":
        """Lock what requirements come to now.

        :raises NoSuchPackage: if one of the closure is missing.
        :raises LockError: if a release has no digest to lock it by, or there is
            no catalogue.
        :raises CatalogError: if a catalogue does not answer.
        """
        return cls._resolved(catalogs, requirements, {})

    def update(self, catalogs: Sequence[Catalog], fqns: Collection[str] | None = None) -> "Lock":
        """The newest that the ranges allow: of some packages, or of all.

        The others stay as they are, where the ranges upon them allow it without
        a second version. Of what stays, no other archive is accepted than the
        one that is locked.

        :param fqns: which packages; None means all.
        :raises LockError: if one of them is not in the lock, or a version that
            stays is gone, or another archive by now; or as in ``create``.
        :raises NoSuchPackage: if one of the closure is missing.
        :raises CatalogError: if a catalogue does not answer.
        """
        if isinstance(fqns, str):
            # It would be read letter by letter.
            raise errors.LockError(
                f"expected a list of packages to update, such as [{quoted(fqns)}], not one text"
            )
        locked = {release.fqn for release in self.releases}
        if unknown := sorted(set(fqns or ()) - locked):
            raise errors.LockError(
                f"{', '.join(unknown)}: not in the lock, which holds {', '.join(sorted(locked))}"
            )
        staying = [r for r in self.releases if fqns is not None and r.fqn not in fqns]
        kept: dict[str, list[Version]] = {}
        for release in staying:
            kept.setdefault(release.fqn, []).append(release.version)
        updated = self._resolved(catalogs, self.requirements, kept)
        updated._check_archives(staying, catalogs)
        return updated

    def _check_archives(self, staying: Collection[Release], catalogs: Sequence[Catalog]) -> None:
        """Refuse another archive in the place of one that was locked and is to stay."""
        locked = {(release.fqn, release.version): release.digest for release in staying}
        for release in self.releases:
            digest = locked.get((release.fqn, release.version), release.digest)
            if digest != release.digest:
                raise errors.LockError(
                    f"{release} is locked with the SHA-256 {digest}, and in {_names(catalogs)} it "
                    f"is another archive, with {release.digest}; if that is wanted, update "
                    f"{release.fqn} as well"
                )

    @classmethod
    def _resolved(
        cls,
        catalogs: Sequence[Catalog],
        requirements: Mapping[str, VersionSpec],
        pins: Mapping[str, Collection[Version]],
    ) -> "Lock":
        if not catalogs:
            raise errors.LockError("there is no catalogue to find packages in; give one at least")
        resolved = resolution.resolve(catalogs, Query(tuple(requirements.items()), pins=pins))
        for missing in resolved.unsatisfied:
            raise _missing(missing, resolved, catalogs, pins)
        releases = [choice.catalog.identified(choice.release) for choice in resolved.chosen]
        for release in releases:
            if not release.digest:
                raise errors.LockError(
                    f"{release} lies in {release.folder} and has no archive whose digest could "
                    f"be locked; take it from a catalogue of archives"
                )
        # Where it was found is not locked.
        locked = (dataclasses.replace(r, reference=r.digest) for r in releases)
        return cls(dict(requirements), tuple(sorted(locked, key=_order)))._closed()

    def _closed(self) -> "Lock":
        """The same without what is not loaded from it.

        A version that is kept in an update may stand beside a newer one that
        others need, and that serves for both.
        """
        query = Query(tuple(self.requirements.items()))
        planned = resolution.resolve([LockedCatalog(self)], query).choices
        left = tuple(r for r in self.releases if r.version in planned.get(r.fqn, ()))
        return self if left == self.releases else Lock(self.requirements, left)._closed()

    @classmethod
    def load(cls, path: "str | os.PathLike[str]") -> "Lock":
        """Read a lock file.

        :raises LockError: if it cannot be read, or is none.
        """
        file = pathlib.Path(path)
        try:
            with file.open("rb") as stream:
                data = stream.read(safe_yaml.MAX_SIZE + 1)
            requirements, releases = lockform.read(data, file.name)
        except OSError as error:
            raise errors.LockError(f"cannot read the lock file {file}: {error}") from error
        except ValueError as error:
            raise errors.LockError(f"{file} is no lock file: {error}") from error
        return cls(requirements, tuple(sorted(releases, key=_order)))

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write the lock file, as a whole or not at all.

        :raises LockError: if it cannot be written.
        """
        file = pathlib.Path(path)
        data = lockform.write(self.requirements, self.releases)
        if len(data) > safe_yaml.MAX_SIZE:
            raise errors.LockError(
                f"the lock file {file} would be larger than {safe_yaml.MAX_SIZE} bytes"
            )
        try:
            fs.replace(file, data)
        except OSError as error:
            raise errors.LockError(f"cannot write the lock file {file}: {error}") from error


class LockedCatalog(Catalog):
    """The releases of a lock, and nothing else."""

    def __init__(self, lock: Lock, catalogs: Sequence[Catalog] = ()) -> None:
        """Make a catalogue.

        :param catalogs: where an archive is fetched that is not in the cache;
            only one with the digest of the lock.
        """
        super().__init__("the lock file")
        self._lock = lock
        self._catalogs = tuple(catalogs)

    def releases(self, fqn: str) -> list[Release]:
        """See the interface."""
        return [release for release in reversed(self._lock.releases) if release.fqn == fqn]

    def resolve(self, query: Query) -> Answer:
        """The closure of a query, as if all that is locked were pinned.

        Each range takes the newest version in it that is locked. To look for
        fewer ones, as among all that there are, would come to another closure
        than the one that was locked.
        """
        pins = {fqn: list(versions) for fqn, versions in query.pins.items()}
        for release in self._lock.releases:
            pins.setdefault(release.fqn, []).append(release.version)
        resolved = resolution.by_level([self], dataclasses.replace(query, pins=pins))
        return Answer(
            tuple((choice.release, choice.demands) for choice in resolved.chosen),
            resolved.unsatisfied,
            resolved.undefined,
        )

    def releases_defining(self, class_name: str) -> list[Release]:
        """See the interface."""
        found = [release for release in self._lock.releases if class_name in release.classes]
        return newest_first(found)

    def fetch(self, release: Release) -> Iterable[bytes]:
        """See the interface."""
        found = []
        for catalog in self._catalogs:
            for candidate in catalog.releases(release.fqn):
                if candidate.version == release.version:
                    candidate = catalog.identified(candidate)
                    if candidate.digest == release.digest:
                        return catalog.fetch(candidate)
                    found.append(f"{catalog.name} has one with {candidate.digest or 'no digest'}")
        sought = (
            f"was not found in {_names(self._catalogs)}"
            if self._catalogs
            else "cannot be fetched, since the lock file is used without other catalogues"
        )
        raise errors.CatalogError(
            f"{release} is locked with the SHA-256 {release.digest}, which is not in the cache and "
            f"{sought}" + "".join(f"; {text}" for text in found)
        )


def _missing(
    missing: resolver.Unsatisfied,
    resolved: resolution.Resolution,
    catalogs: Sequence[Catalog],
    pins: Mapping[str, Collection[Version]],
) -> errors.LoaderError:
    """What to say of a range that no version is in, or that the one is gone that was locked."""
    fqn, spec, requirer = missing.demand.fqn, missing.demand.spec, missing.demand.requirer
    required_by = str(requirer) if requirer is not None else None
    chains = resolved.upon(fqn, spec, required_by)
    gone = spec.select(pins.get(fqn, ()))
    if gone is None:
        names = [catalog.name for catalog in catalogs]
        return errors.NoSuchPackage(fqn, spec, missing.available, names, required_by, chains=chains)
    there = errors.listed(map(str, missing.available)) or "no version of it at all"
    return errors.LockError(
        f"{fqn} is locked to {gone}, which {_names(catalogs)} no longer has: there is {there}; "
        f"update {fqn} as well; the requirements upon it: {chains}"
    )


def _names(catalogs: Iterable[Catalog]) -> str:
    return ", ".join(catalog.name for catalog in catalogs)


def _order(release: Release) -> Any:
    return release.fqn, release.version.precedence_key, str(release.version)
