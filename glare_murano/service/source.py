# SPDX-License-Identifier: Apache-2.0

"""The resolver's source of versions and requirements: the database of a service.

A level of the graph takes at most three queries, for any number of packages and versions: for
versions, for the yanked ones among them, and for metadata. All visible packages of a name are
found before one of them is chosen by the rules of ``eligibility``.
"""

import collections
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar

import cachetools

from glare_murano.eligibility import Eligibility, Excluded
from glare_murano.inheritance import ExtendingRecord
from glare_murano.package import Version, VersionSpec
from glare_murano.package.reserved_names import NO_RESERVED_NAMES, ReservedNames
from glare_murano.resolver import PackageVersion, Requirements, newest_first
from glare_murano.service.database import Database, PackageMetadata, PackageRecord
from glare_murano.wire import Query, Release

# The largest number of classes and requirements in the cache: about 20 MB, or 60 MB for the longest
# names. A package has at most 8,000 of them, and itself counts as three more.
_CACHE_SIZE = 100_000
_PACKAGE_SIZE = 3

_T = TypeVar("_T")


def _size(metadata: PackageMetadata) -> int:
    return _PACKAGE_SIZE + len(metadata.requirements) + len(metadata.classes)


class MetadataCache:
    """The metadata of published packages, which never changes, by ``PackageRecord.cache_key``.

    The cache saves a fifth of the time of a query.
    """

    def __init__(self) -> None:
        self._cache: cachetools.LRUCache[str, PackageMetadata] = cachetools.LRUCache(
            _CACHE_SIZE, _size
        )
        self._lock = threading.Lock()

    def find(self, keys: Iterable[str]) -> dict[str, PackageMetadata]:
        """Return the cached metadata, by key."""
        with self._lock:
            return {key: self._cache[key] for key in keys if key in self._cache}

    def add(self, metadata: Mapping[str, PackageMetadata]) -> None:
        """Add the metadata of published packages."""
        with self._lock:
            self._cache.update(metadata)

    def clear(self) -> None:
        """Remove everything."""
        with self._lock:
            self._cache.clear()


METADATA_CACHE = MetadataCache()


class CatalogSource:
    """Versions and requirements for one query; see ``resolver.Source``.

    :ivar excluded: FQN -> visible packages that must not be chosen, for all FQNs looked up.
    """

    def __init__(
        self, database: Database, query: Query, reserved: ReservedNames = NO_RESERVED_NAMES
    ) -> None:
        """Make a source; nothing is looked up yet.

        :param reserved: the operator's reserved names; by default, none are reserved.
        """
        self._database = database
        self._query = query
        self._eligibility = Eligibility(reserved, query.private_overrides)
        # The versions of each name looked up so far.
        self._versions: dict[str, Sequence[Version]] = {}
        # The best package of each version found so far.
        self._packages: dict[PackageVersion, PackageRecord] = {}
        self._metadata: dict[str, PackageMetadata] = {}
        # Read for each query, since an active package may be yanked: id -> reason.
        self._yanked: dict[str, str] = {}
        # Names of packages of which metadata was read.
        self._read_names: set[str] = set()
        self.excluded: dict[str, list[Excluded]] = {}

    def versions(self, fqns: Collection[str]) -> Mapping[str, Sequence[Version]]:
        """See ``resolver.Source``."""
        self._look_up(fqns)
        return {fqn: self._versions[fqn] for fqn in fqns if self._versions[fqn]}

    def requirements(
        self, packages: Collection[PackageVersion]
    ) -> Mapping[PackageVersion, Requirements]:
        """See ``resolver.Source``."""
        return {package: _ranges(metadata) for package, metadata in self._metadata_of(packages)}

    def is_exact_only(self, package: PackageVersion) -> bool:
        """Return whether a found version satisfies only pins and ranges of exactly this version."""
        record = self._packages[package]
        is_wanted = self._query.prereleases or not package.version.prerelease
        return record.id in self._yanked or not (is_wanted or record.id == self._query.package)

    def package(self, package_id: str) -> PackageRecord | None:
        """Return a package; None if it is not visible to the caller."""
        # Some databases ignore the case of the id, but the other methods compare it exactly.
        found = self._usable("id", [package_id])
        return next((record for record in found if record.id == package_id), None)

    def defining(self, class_names: Collection[str]) -> Mapping[str, Collection[PackageVersion]]:
        """Return the packages that define each of the classes, if they may define it."""
        defined: dict[str, set[str]] = collections.defaultdict(set)
        for class_name, package_id in self._database.find_defining(class_names):
            defined[package_id].add(class_name)
        # All packages of these names are looked up: another package of the same version may be
        # preferred, and may lack the class.
        self._look_up({record.name for record in self._usable("id", defined)})
        found: dict[str, set[PackageVersion]] = collections.defaultdict(set)
        for package, record in self._packages.items():
            for class_name in defined.get(record.id, ()):
                if self._eligibility.allows_class(class_name, record):
                    found[class_name].add(package)
        return found

    def find_extending(self, base_names: Iterable[str]) -> Iterable[ExtendingRecord]:
        """See ``inheritance.Extensions``."""
        found = list(self._database.find_extending(base_names))
        # All packages of these names are looked up: another package of the same version may be
        # preferred, and may have other classes.
        self._look_up({each.package.fqn for each in found})
        best = {record.id: record for record in self._packages.values()}
        for each in found:
            if each.id in best:
                allowed = self._eligibility.allows_class
                names = [name for name in each.subclasses if allowed(name, best[each.id])]
                yield each._replace(subclasses=names)

    def find_requirements(self, ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """See ``inheritance.Extensions``."""
        return self._database.find_requirements(ids)

    def releases(self, packages: Collection[PackageVersion]) -> Iterator[Release]:
        """Yield the releases of versions; leave out drafts that have no archive."""
        for package, metadata in self._metadata_of(packages):
            record = self._packages[package]
            yield Release(
                fqn=package.fqn,
                version=package.version,
                requirements=_ranges(metadata),
                classes=frozenset(metadata.classes),
                id=record.id,
                digest=metadata.digest,
                size=metadata.size,
                owner=record.owner,
                visibility=record.visibility,
                yanked=self._yanked.get(record.id, ""),
            )

    def _metadata_of(
        self, packages: Collection[PackageVersion]
    ) -> Iterator[tuple[PackageVersion, PackageMetadata]]:
        unknown = [each for each in packages if self._packages[each].id not in self._metadata]
        if unknown:
            names = {each.fqn for each in unknown}
            # A second version of a package was chosen, and others may follow: read the metadata of
            # all found versions at once.
            chosen = self._packages if names & self._read_names else unknown
            self._read_names |= names
            self._read_metadata(self._packages[each] for each in chosen)
        for package in packages:
            metadata = self._metadata.get(self._packages[package].id)
            if metadata is not None:
                yield package, metadata

    def _look_up(self, fqns: Collection[str]) -> None:
        """Find all versions of packages, and remember the best package of each version."""
        unknown = [fqn for fqn in fqns if fqn not in self._versions]
        if not unknown:
            return
        found = self._usable("name", unknown)
        selected, excluded = self._eligibility.select(
            record for record in found if not self._is_requested(record)
        )
        selected += filter(self._is_requested, found)
        for record in selected:
            best = self._packages.get(record.key)
            if best is None or self._preference(record) > self._preference(best):
                self._packages[record.key] = record
        # Some databases ignore case, and may find other names.
        versions = _by_name((key.fqn, key.version) for key in {each.key for each in selected})
        others = _by_name((each.key.fqn, each) for each in excluded)
        for fqn in unknown:
            self._versions[fqn] = newest_first(versions.get(fqn, ()))
            self.excluded[fqn] = others.get(fqn, [])
        best_ids = {self._packages[record.key].id for record in selected}
        self._yanked |= self._database.find_yanked(best_ids)

    def _usable(self, column: Literal["id", "name"], values: Iterable[str]) -> list[PackageRecord]:
        """Find the packages that the query's project can see."""
        project_id = self._query.project_id
        return [
            record
            for record in self._database.find_usable(column, values, self._query.package)
            if project_id is None
            or record.id == self._query.package
            or record.is_available_to(project_id)
        ]

    def _is_requested(self, record: PackageRecord) -> bool:
        """Return whether a package is the query's package, which may be private and a draft."""
        is_requested = record.id == self._query.package
        return is_requested and not self._eligibility.find_objection(record)

    def _preference(self, record: PackageRecord) -> tuple[bool, bool, bool, str]:
        """Return a key to prefer the query's package, then the project's own, then a public one."""
        project_id = self._query.project_id or self._database.viewer.project_id
        return (
            record.id == self._query.package,
            record.owner == project_id,
            record.visibility == "public",
            record.id,
        )

    def _read_metadata(self, packages: Iterable[PackageRecord]) -> None:
        keys = {each.id: each.cache_key for each in packages if each.id not in self._metadata}
        known = METADATA_CACHE.find(keys.values())
        found = self._database.find_metadata({id_ for id_ in keys if keys[id_] not in known})
        METADATA_CACHE.add({keys[id_]: each for id_, each in found.items() if keys[id_]})
        self._metadata |= {id_: known[key] for id_, key in keys.items() if key in known}
        self._metadata |= found


def _by_name(pairs: Iterable[tuple[str, _T]]) -> Mapping[str, list[_T]]:
    found: dict[str, list[_T]] = collections.defaultdict(list)
    for name, value in pairs:
        found[name].append(value)
    return found


def _ranges(metadata: PackageMetadata) -> dict[str, VersionSpec]:
    return {fqn: VersionSpec.of(text) for fqn, text in metadata.requirements.items()}
