# SPDX-License-Identifier: Apache-2.0

"""The lock file: a closure, written down so that it can be had again exactly.

It holds what was asked for and every release that it came to, with the digest
of its archive. A locked closure is loaded through ``LockedCatalog``, which needs
no other catalogue for what lies in the cache. The file is YAML, sorted, so that
a version control system shows what changed.
"""

import contextlib
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

_FORM = 1
_SIZE = re.compile(r"(0|[1-9][0-9]{0,17})\Z")
_COMMENT = "# The packages of a deployment, exactly. Update it by the program that wrote it.\n"


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
        for choice in resolved.chosen:
            if not choice.release.digest:
                raise errors.LockError(
                    f"{choice.release} lies in {choice.catalog.folder(choice.release)} and has no "
                    f"archive whose digest could be locked; take it from a catalogue of archives"
                )
        # A lock does not say where a release was found.
        locked = (
            dataclasses.replace(c.release, id=c.release.digest, owner=None, visibility=None)
            for c in resolved.chosen
        )
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

        :raises LockError: if it cannot be read, or is not a valid lock file.
        """
        file = pathlib.Path(path)
        try:
            with file.open("rb") as stream:
                data = stream.read(safe_yaml.MAX_SIZE + 1)
            return cls._parse(data, file.name)
        except OSError as error:
            raise errors.LockError(f"cannot read the lock file {file}: {error}") from error
        except ValueError as error:
            raise errors.LockError(f"{file} is not a valid lock file: {error}") from error

    @classmethod
    def _parse(cls, data: bytes, name: str) -> "Lock":
        root = safe_yaml.compose(data, name)
        if root is None:
            raise ValueError("it is empty")
        content = wire.mapping(_plain(root))
        if "form" not in content:
            raise ValueError("form is missing")
        if content["form"] != str(_FORM):
            raise ValueError(
                f"it has the form {quoted(str(content['form']))}, and only {_FORM} is known; a "
                f"newer release of the loader may know it"
            )
        for key in ("requirements", "releases"):
            if key not in content:
                raise ValueError(f"{key} is missing")
        with _at("requirements"):
            requirements = wire.ranges_from_json(content["requirements"])
        with _at("releases"):
            items = wire.sequence(content["releases"])
        return cls(requirements, tuple(sorted(_read_releases(items), key=_order)))

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write the lock file, as a whole or not at all.

        :raises LockError: if it cannot be written.
        """
        file = pathlib.Path(path)
        content = {
            "form": _FORM,
            "requirements": wire.ranges_to_json(self.requirements.items()),
            "releases": [
                wire.release_to_json(dataclasses.replace(release, id=""))
                for release in self.releases
            ],
        }
        text = yaml.dump(content, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
        data = f"{_COMMENT}{text}".encode()
        if len(data) > safe_yaml.MAX_SIZE:
            raise errors.LockError(
                f"the lock file {file} would be larger than {safe_yaml.MAX_SIZE} bytes"
            )
        try:
            fs.replace(file, data)
        except OSError as error:
            raise errors.LockError(f"cannot write the lock file {file}: {error}") from error


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
            line = safe_yaml.line_of(key_node.start_mark)
            raise ValueError(f"line {line}: {quoted(key)} is written twice")
        found[key] = _plain(value)
    return found


def _read_releases(items: Iterable[Any]) -> Iterator[Release]:
    """Read the releases of a lock file, each version of a package once."""
    numbers: dict[resolver.PackageVersion, int] = {}
    for number, item in enumerate(items, 1):
        name = item.get("name") if isinstance(item, dict) else None
        with _at(f"release {number} ({name})" if isinstance(name, str) else f"release {number}"):
            release = _read_release(wire.mapping(item))
            first = numbers.setdefault(release.key, number)
            if first != number:
                raise ValueError(f"release {first} is {release} as well; leave one of them")
        yield release


def _read_release(item: Mapping[str, Any]) -> Release:
    size = item.get("size")
    if isinstance(size, str) and _SIZE.match(size):
        item = {**item, "size": int(size)}
    release = wire.release_from_json(item)
    if not release.digest:
        raise ValueError("sha256 is missing")
    return dataclasses.replace(release, id=release.digest)


@contextlib.contextmanager
def _at(where: str) -> Iterator[None]:
    """Name the place in the file of an error."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


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
