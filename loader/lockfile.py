# SPDX-License-Identifier: Apache-2.0

"""The lock file: the releases of a closure, for loading exactly these again.

A lock file has the requirements and every release of their closure with its digest.
Archives in the cache are loaded from a ``LockedCatalog`` without a network. The file
is sorted YAML, for version control.
"""

import dataclasses
import os
import pathlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from glare_murano import resolver, wire
from glare_murano.package import Version, VersionSpec, safe_yaml
from glare_murano.package.errors import quoted
from glare_murano.wire import Answer, Query, Release
from loader import errors, fs, resolution
from loader.catalogs.base import Catalog, newest_first
from loader.resolution import as_catalogs, names

_FORM = 1
_SIZE = re.compile(r"(0|[1-9][0-9]{0,17})\Z")
_COMMENT = "# The packages of a deployment, exactly. Update it by the program that wrote it.\n"


@dataclasses.dataclass(frozen=True, repr=False)
class Lock:
    """A closure with its requirements.

    >>> lock = Lock.create(DirectoryCatalog("packages"), {"org.wiki": "1"})
    >>> lock
    <Lock of org.wiki 1: io.murano 0.1.0, org.db 1.2.0, org.wiki 1.1.0>
    >>> lock.save("packages.lock")
    >>> Lock.load("packages.lock") == lock
    True

    :param requirements: FQN -> range.
    :param releases: the closure, sorted by name and version.
    """

    requirements: Mapping[str, VersionSpec]
    releases: tuple[Release, ...]

    def __repr__(self) -> str:
        requirements = ", ".join(f"{fqn} {spec}" for fqn, spec in self.requirements.items())
        return f"<Lock of {requirements}: {', '.join(map(str, self.releases))}>"

    @classmethod
    def create(
        cls, catalogs: Catalog | Iterable[Catalog], requirements: Mapping[str, str | VersionSpec]
    ) -> "Lock":
        """Lock the closure of requirements.

        >>> Lock.create([DirectoryCatalog("packages")], {"org.db": "<1.2", "io.murano": "*"})
        <Lock of org.db <1.2, io.murano *: io.murano 0.1.0, org.db 1.0.0>

        :param catalogs: one catalogue, or several in the order of preference.
        :raises InvalidRange: if a range is not valid.
        :raises NoSuchPackage: if packages are missing; the message names all of them.
        :raises LockError: if a release has no digest, or there is no catalogue.
        :raises CatalogError: if a catalogue cannot be read.
        """
        if not isinstance(requirements, Mapping):
            raise TypeError(
                f"requirements must be a mapping such as {{'org.db': '1'}}, not {requirements!r}"
            )
        specs = {fqn: VersionSpec.of(range) for fqn, range in requirements.items()}
        return cls._resolve(as_catalogs(catalogs), specs, {})

    def update(
        self, catalogs: Catalog | Iterable[Catalog], fqns: Collection[str] | None = None
    ) -> "Lock":
        """Return a lock with the newest versions of some packages, or of all.

        The other packages keep their versions, unless the ranges then need a second
        version, and never get another archive of the same version.

        >>> old = Lock.create(DirectoryCatalog("packages"), {"org.db": "1", "org.wiki": "1"})
        >>> old.update(DirectoryCatalog("packages"), ["org.db"]) == old
        True

        :param fqns: the packages to update; by default, all.
        :raises LockError: if a package to update is not in the lock, or a version to
            keep is missing or has another archive now; also as in ``create``.
        :raises NoSuchPackage: if packages are missing; the message names all of them.
        :raises CatalogError: if a catalogue cannot be read.
        """
        if isinstance(fqns, str):
            # A string would be read letter by letter.
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
        updated = self._resolve(found, self.requirements, pins)
        updated._check_digests(kept, found)
        return updated

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
            return _parse(data, file.name)
        except OSError as error:
            raise errors.LockError(f"cannot read the lock file {file}: {error}") from error
        except ValueError as error:
            raise errors.LockError(f"{file} is not a valid lock file: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the lock file, completely or not at all.

        >>> lock.save("packages.lock")

        :raises LockError: if the file cannot be written.
        """
        file = pathlib.Path(path)
        releases = (dataclasses.replace(release, id="") for release in self.releases)
        content = {
            "form": _FORM,
            "requirements": wire.ranges_to_json(self.requirements.items()),
            "releases": list(map(wire.release_to_json, releases)),
        }
        text = yaml.dump(content, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
        data = f"{_COMMENT}{text}".encode()
        if len(data) > safe_yaml.MAX_SIZE:
            raise errors.LockError(
                f"the lock file {file} would exceed {safe_yaml.MAX_SIZE} bytes; lock fewer packages"
            )
        try:
            fs.replace(file, data)
        except OSError as error:
            raise errors.LockError(f"cannot write the lock file {file}: {error}") from error

    @classmethod
    def _resolve(
        cls,
        catalogs: Sequence[Catalog],
        requirements: Mapping[str, VersionSpec],
        pins: Mapping[str, Collection[Version]],
    ) -> "Lock":
        if not catalogs:
            raise errors.LockError("there is no catalogue to find packages in; pass at least one")
        resolved = resolution.resolve(catalogs, Query(tuple(requirements.items()), pins=pins))
        _check_found(resolved, catalogs, pins)
        for choice in resolved.chosen:
            if not choice.release.digest:
                raise errors.LockError(
                    f"{choice.release} in {choice.catalog.folder(choice.release)} has no archive "
                    f"whose digest could be locked; use a catalogue of archives"
                )
        # Locks are the same in every project and for every catalogue.
        releases = (
            dataclasses.replace(c.release, id=c.release.digest, owner=None, visibility=None)
            for c in resolved.chosen
        )
        return cls(dict(requirements), _sorted(releases))._without_unused()

    def _without_unused(self) -> "Lock":
        """Return this lock without unused releases.

        An update may keep a version while other packages need a newer one, which then
        satisfies all requirements.
        """
        query = Query(tuple(self.requirements.items()))
        chosen = resolution.resolve([LockedCatalog(self)], query).choices
        used = tuple(r for r in self.releases if r.version in chosen.get(r.fqn, ()))
        return self if used == self.releases else Lock(self.requirements, used)._without_unused()

    def _check_digests(self, kept: Iterable[Release], catalogs: Iterable[Catalog]) -> None:
        """Check that the releases to keep still have the same archives."""
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
    """A catalogue of the releases of a lock.

    >>> locked = LockedCatalog(lock, DirectoryCatalog("packages"))
    >>> with PackageLoader(locked, "cache") as packages:
    ...     packages.load_package("org.db")
    <MuranoPLPackage org.db 1.2.0>
    """

    def __init__(self, lock: Lock, catalogs: Catalog | Iterable[Catalog] = ()) -> None:
        """Make a catalogue.

        :param catalogs: for archives missing in the cache; only archives with the
            locked digests are fetched.
        """
        super().__init__("the lock file")
        self._lock = lock
        self._catalogs = as_catalogs(catalogs)

    def releases(self, fqn: str) -> list[Release]:
        """Return the locked releases of a package, the newest first."""
        return [release for release in reversed(self._lock.releases) if release.fqn == fqn]

    def releases_defining(self, class_name: str) -> list[Release]:
        """Return the locked releases that define a class, the newest first."""
        return newest_first(r for r in self._lock.releases if class_name in r.classes)

    def resolve(self, query: Query) -> Answer:
        """Return the closure of a query, as if all locked versions were pinned.

        Each range gets its newest locked version. Choosing the fewest versions again
        could give another closure.
        """
        pins = {fqn: list(versions) for fqn, versions in query.pins.items()}
        for release in self._lock.releases:
            pins.setdefault(release.fqn, []).append(release.version)
        resolved = resolution.by_level([self], dataclasses.replace(query, pins=pins))
        releases = tuple((choice.release, choice.demands) for choice in resolved.chosen)
        return Answer(releases, resolved.unsatisfied, resolved.undefined)

    def fetch(self, release: Release) -> Iterable[bytes]:
        """Fetch an archive with the locked digest from one of the other catalogues.

        :raises CatalogError: if none has the archive, also in the middle.
        """
        found = []
        for catalog in self._catalogs:
            for candidate in catalog.releases(release.fqn):
                if candidate.version == release.version:
                    if candidate.digest == release.digest:
                        return catalog.fetch(candidate)
                    found.append(f"{catalog.name} has {candidate.digest or 'no digest'}")
        failure = f"was not found in {names(self._catalogs)}"
        if not self._catalogs:
            failure = "cannot be fetched, since the lock file is used without other catalogues"
        raise errors.CatalogError(
            f"{release} is locked with the SHA-256 {release.digest}, which is not in the cache and "
            + "; ".join([failure, *found])
        )


def _check_found(
    resolved: resolution.Resolution,
    catalogs: Sequence[Catalog],
    pins: Mapping[str, Collection[Version]],
) -> None:
    """Check the closure for missing packages and missing locked versions."""
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


def _parse(data: bytes, name: str) -> Lock:
    root = safe_yaml.compose(data, name)
    if root is None:
        raise ValueError("the file is empty")
    content = wire.mapping(_plain(root))
    form = wire.get(content, "form", wire.string)
    if form != str(_FORM):
        raise ValueError(
            f"the form is {quoted(form)}, but only {_FORM} is supported; use a newer release of "
            f"the loader"
        )
    requirements = wire.get(content, "requirements", wire.ranges_from_json)
    releases = _read_releases(wire.get(content, "releases", wire.sequence))
    return Lock(requirements, _sorted(releases))


def _plain(node: yaml.Node) -> Any:
    """Return a node's value with each scalar as written, since 1.10 is a version."""
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item) for item in node.value]
    if not isinstance(node, yaml.MappingNode):
        return safe_yaml.strings(node)
    found: dict[str, Any] = {}
    for key_node, value in node.value:
        key = safe_yaml.key_of(key_node)
        if key in found:
            line = safe_yaml.line_of(key_node)
            raise ValueError(f"line {line}: {quoted(key)} is written twice")
        found[key] = _plain(value)
    return found


def _read_releases(items: Iterable[Any]) -> Iterator[Release]:
    numbers: dict[resolver.PackageVersion, int] = {}
    for number, item in enumerate(items, 1):
        try:
            release = _read_release(wire.mapping(item))
            first = numbers.setdefault(release.key, number)
            if first != number:
                raise ValueError(f"release {first} is {release} as well; remove one of them")
        except ValueError as error:
            name = item.get("name") if isinstance(item, dict) else None
            title = f"release {number} ({name})" if isinstance(name, str) else f"release {number}"
            raise ValueError(f"{title}: {error}") from error
        yield release


def _read_release(item: Mapping[str, Any]) -> Release:
    size = item.get("size")
    if isinstance(size, str) and _SIZE.match(size):
        item = {**item, "size": int(size)}
    release = wire.release_from_json(item)
    if not release.digest:
        raise ValueError("sha256 is missing")
    return dataclasses.replace(release, id=release.digest)


def _sorted(releases: Iterable[Release]) -> tuple[Release, ...]:
    return tuple(sorted(releases, key=lambda r: (r.fqn, r.version.precedence_key, str(r.version))))
