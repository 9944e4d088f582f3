# SPDX-License-Identifier: Apache-2.0

"""Read versions and requirements from the database of a service, for the resolver.

The resolver reads the graph of requirements level by level: first the roots, then the packages that
the roots require, and so on. Each level takes at most three database queries for each thousand
packages: for versions, for the reasons of yanks, and for metadata. All visible packages of a name
are found before the rules of ``eligibility`` exclude some of them.
"""

import collections
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar

import cachetools

from glare_murano.eligibility import Eligibility, Excluded
from glare_murano.inheritance import ExtendingRecord
from glare_murano.package import InvalidName, Version, VersionSpec
from glare_murano.package.manifest import check_fqn
from glare_murano.package.reserved_names import NO_RESERVED_NAMES, ReservedNames
from glare_murano.resolver import PackageVersion, Requirements, newest_first
from glare_murano.service.database import Database, PackageMetadata, PackageRecord
from glare_murano.wire import Query, Release

# The largest size of the cache, about 20 MB, or 60 MB for the longest names. The size of a package
# is the number of its classes and requirements, which is at most 8,000, and three more.
_CACHE_SIZE = 100_000
_PACKAGE_SIZE = 3

_T = TypeVar("_T")


def _size(metadata: PackageMetadata) -> int:
    return _PACKAGE_SIZE + len(metadata.requirements) + len(metadata.classes)


class MetadataCache:
    """A cache of the metadata of published packages, by ``PackageRecord.cache_key``.

    The metadata of a published package never changes. With the cache, a query takes a fifth less
    time.
    """

    def __init__(self) -> None:
        self._cache: cachetools.LRUCache[str, PackageMetadata] = cachetools.LRUCache(
            _CACHE_SIZE, _size
        )
        self._lock = threading.Lock()

    def find(self, keys: Iterable[str]) -> dict[str, PackageMetadata]:
        """Return the cached metadata for the given keys, by key. Unknown keys are left out."""
        with self._lock:
            return {key: self._cache[key] for key in keys if key in self._cache}

    def add(self, metadata: Mapping[str, PackageMetadata]) -> None:
        """Add metadata of published packages, by key."""
        with self._lock:
            self._cache.update(metadata)

    def clear(self) -> None:
        """Remove all metadata from the cache."""
        with self._lock:
            self._cache.clear()


METADATA_CACHE = MetadataCache()


class CatalogSource:
    """The versions and requirements of a service's packages, for one query.

    This class implements ``resolver.Source`` and ``inheritance.Extensions``. A query can contain
    the id of one stored package: the requested package. Then the closure of this package is
    planned. Only the requested package may be a draft.

    :ivar excluded: for each FQN that was looked up, the visible packages that must not be chosen.
    """

    def __init__(
        self, database: Database, query: Query, reserved: ReservedNames = NO_RESERVED_NAMES
    ) -> None:
        """Make a source, without any query of the database.

        :param database: the database of the service.
        :param query: the dependency query.
        :param reserved: the operator's reserved names; by default, no names are reserved.
        """
        self._database = database
        self._budget = database.budget
        self._query = query
        self._eligibility = Eligibility(reserved, query.private_overrides)
        # The versions of each package that was looked up so far: FQN -> versions.
        self._versions: dict[str, Sequence[Version]] = {}
        # The preferred package of each version that was found so far; see ``_preference``.
        self._packages: dict[PackageVersion, PackageRecord] = {}
        self._metadata: dict[str, PackageMetadata] = {}
        # The parsed requirements, by the id of the package. Both the plan and the answer use them.
        self._requirements: dict[str, Requirements] = {}
        # The yanked packages: id -> reason. ``MetadataCache`` does not have them, since they
        # change.
        self._yanked: dict[str, str] = {}
        # The FQNs of the packages whose metadata was read.
        self._read_names: set[str] = set()
        self.excluded: dict[str, list[Excluded]] = {}

    def versions(self, fqns: Collection[str]) -> Mapping[str, Sequence[Version]]:
        """Return the versions of packages; see ``resolver.Source.versions``."""
        self._look_up(fqns)
        return {fqn: self._versions[fqn] for fqn in fqns if self._versions[fqn]}

    def requirements(
        self, packages: Collection[PackageVersion]
    ) -> Mapping[PackageVersion, Requirements]:
        """Return the requirements of releases; see ``resolver.Source.requirements``."""
        found = self._watch(self._metadata_of(packages), "reading requirements")
        return {package: self._ranges(package, metadata) for package, metadata in found}

    def is_exact_only(self, package: PackageVersion) -> bool:
        """Return whether a version is exact-only.

        An exact-only version is chosen only if it is pinned, or if a range names exactly this
        version. All yanked versions are exact-only. If the query does not allow pre-releases, they
        are exact-only as well, except the package that the query names by its id.

        :param package: a version that ``versions`` or ``defining`` has returned.
        """
        record = self._packages[package]
        is_wanted = self._query.prereleases or not package.version.prerelease
        return record.id in self._yanked or not (is_wanted or record.id == self._query.package)

    def package(self, package_id: str) -> PackageRecord | None:
        """Return the package with an id; None if it was not found.

        A package is found if it is active, and visible to both the caller and the query's project.
        If the query has no project, only the caller counts. The package that the query names by its
        id only has to be visible to the caller; it may be a draft or deactivated.
        """
        # Some databases ignore the case of the id, but the rest of this class does not.
        found = self._usable("id", [package_id])
        return next((record for record in found if record.id == package_id), None)

    def defining(self, class_names: Collection[str]) -> Mapping[str, Collection[PackageVersion]]:
        """Return the packages that define classes: class name -> packages.

        A package is left out if the reserved names forbid its project to define the class.
        """
        defined: dict[str, set[str]] = collections.defaultdict(set)
        for class_name, package_id in self._database.find_defining(filter(_is_fqn, class_names)):
            defined[package_id].add(class_name)
        # All packages with these FQNs are looked up: another package with the same version may be
        # preferred, and may lack the class.
        self._look_up({record.name for record in self._usable("id", defined)})
        found: dict[str, set[PackageVersion]] = collections.defaultdict(set)
        for package, record in self._watch(self._packages.items(), "looking up classes"):
            for class_name in defined.get(record.id, ()):
                if self._eligibility.allows_class(class_name, record):
                    found[class_name].add(package)
        return found

    def find_extending(self, base_names: Iterable[str]) -> Iterable[ExtendingRecord]:
        """Find packages that extend classes; see ``inheritance.Extensions``."""
        found = list(self._database.find_extending(base_names))
        # All packages with these FQNs are looked up: another package with the same version may be
        # preferred, and may have other classes.
        self._look_up({each.package.fqn for each in found})
        for each in self._budget.watch(found, "looking up subclasses"):
            best = self._packages.get(each.package)
            if best is not None and best.id == each.id:
                allowed = self._eligibility.allows_class
                names = [name for name in each.subclasses if allowed(name, best)]
                yield each._replace(subclasses=names)

    def find_requirements(self, ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Find the requirements of packages; see ``inheritance.Extensions``."""
        return self._database.find_requirements(ids)

    def releases(self, packages: Collection[PackageVersion]) -> Iterator[Release]:
        """Yield the releases with given FQNs and versions, with their metadata.

        Drafts without an archive are left out.
        """
        for package, metadata in self._watch(self._metadata_of(packages), "reading metadata"):
            record = self._packages[package]
            yield Release(
                fqn=package.fqn,
                version=package.version,
                requirements=self._ranges(package, metadata),
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
            # If the resolver requests another version of a package, it may request even more. So
            # the metadata of all found versions is read at once.
            chosen = self._packages if names & self._read_names else unknown
            self._read_names |= names
            self._read_metadata(self._packages[each] for each in chosen)
        for package in packages:
            metadata = self._metadata.get(self._packages[package].id)
            if metadata is not None:
                yield package, metadata

    def _look_up(self, fqns: Collection[str]) -> None:
        """Look up packages by FQN, and store the versions that may be chosen.

        If several packages have the same FQN and version, the one with the greatest ``_preference``
        is stored. Packages that must not be chosen are stored in ``excluded``.
        """
        unknown = [fqn for fqn in fqns if fqn not in self._versions]
        if not unknown:
            return
        step = "looking up packages by name"
        found = self._usable("name", unknown)
        selected, excluded = self._eligibility.select(
            record for record in self._budget.watch(found, step) if not self._is_requested(record)
        )
        selected += filter(self._is_requested, found)
        for record in self._budget.watch(selected, step):
            best = self._packages.get(record.key)
            if best is None or self._preference(record) > self._preference(best):
                self._packages[record.key] = record
        # Some databases ignore case, and so return other names as well.
        versions = _by_name((key.fqn, key.version) for key in {each.key for each in selected})
        others = _by_name((each.key.fqn, each) for each in excluded)
        for fqn in self._budget.watch(unknown, step, lambda fqn: f"package {fqn}"):
            self._versions[fqn] = newest_first(versions.get(fqn, ()))
            self.excluded[fqn] = others.get(fqn, [])
        best_ids = {self._packages[record.key].id for record in selected}
        self._yanked |= self._database.find_yanked(best_ids)

    def _usable(self, column: Literal["id", "name"], values: Iterable[str]) -> list[PackageRecord]:
        """Find the packages that the query can use, by id or by FQN.

        A package is found if it is active, and visible to both the caller and the query's project.
        If the query has no project, only the caller counts. The package that the query names by its
        id only has to be visible to the caller; it may be a draft or deactivated.

        :param column: whether ``values`` are ids or FQNs.
        """
        project_id = self._query.project_id
        return [
            record
            for record in self._database.find_usable(column, values, self._query.package)
            if project_id is None
            or record.id == self._query.package
            or record.is_available_to(project_id)
        ]

    def _is_requested(self, record: PackageRecord) -> bool:
        """Return whether a package is the requested package, and may be chosen."""
        is_requested = record.id == self._query.package
        return is_requested and not self._eligibility.find_objection(record)

    def _preference(self, record: PackageRecord) -> tuple[bool, bool, bool, str]:
        """Return a key for the choice between packages with the same FQN and version.

        The package with the greatest key is preferred: the requested package, or else a package of
        the query's project, or else a public package. If the query has no project, the project of
        the viewer is used.
        """
        project_id = self._query.project_id or self._database.viewer.project_id
        return (
            record.id == self._query.package,
            record.owner == project_id,
            record.visibility == "public",
            record.id,
        )

    def _ranges(self, package: PackageVersion, metadata: PackageMetadata) -> Requirements:
        id_ = self._packages[package].id
        if id_ not in self._requirements:
            self._requirements[id_] = {
                fqn: VersionSpec.of(text) for fqn, text in metadata.requirements.items()
            }
        return self._requirements[id_]

    def _watch(
        self, items: Iterable[tuple[PackageVersion, _T]], step: str
    ) -> Iterator[tuple[PackageVersion, _T]]:
        return self._budget.watch(items, step, lambda item: f"package {item[0].fqn}")

    def _read_metadata(self, packages: Iterable[PackageRecord]) -> None:
        keys = {each.id: each.cache_key for each in packages if each.id not in self._metadata}
        known = METADATA_CACHE.find(keys.values())
        found = self._database.find_metadata({id_ for id_ in keys if keys[id_] not in known})
        METADATA_CACHE.add({keys[id_]: each for id_, each in found.items() if keys[id_]})
        self._metadata |= {id_: known[key] for id_, key in keys.items() if key in known}
        self._metadata |= found


def _is_fqn(text: str) -> bool:
    """Return whether a string is a valid name of a class.

    Only valid names are looked up, since databases fail to look up very long names.
    """
    try:
        return bool(check_fqn(text))
    except InvalidName:
        return False


def _by_name(pairs: Iterable[tuple[str, _T]]) -> Mapping[str, list[_T]]:
    found: dict[str, list[_T]] = collections.defaultdict(list)
    for name, value in pairs:
        found[name].append(value)
    return found
