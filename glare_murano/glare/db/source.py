# SPDX-License-Identifier: Apache-2.0

"""The resolver's source of versions and requirements: Glare's database.

A level of the graph takes three statements at most, for versions, for yanked ones among
them, and for metadata, with any number of packages and versions.
"""

import collections
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import cachetools
from oslo_config import cfg
from sqlalchemy.engine import Connection, Row

from glare_murano import fields
from glare_murano.glare.db import queries
from glare_murano.glare.db.queries import PackageMetadata
from glare_murano.glare.policies import Viewer
from glare_murano.package import Version, VersionSpec
from glare_murano.resolver import PackageVersion, Requirements, newest_first
from glare_murano.wire import Query, Release

# Options of the group [artifact_type:murano].
OPTIONS = [
    cfg.FloatOpt(
        "plan_seconds",
        min=0.001,
        default=5,
        help="The longest time that planning the answer to a dependency query, or listing "
        "subclasses, may take, in seconds. After that the query is refused, with the package or "
        "class where it stopped.",
    )
]

# The metadata of active artifacts never changes. The cache saves a fifth of the time
# of a query. The limit counts classes and requirements, of which an artifact has 8,000
# at most: about 20 MB, or 60 MB for the longest names. An artifact counts as three.
_CACHE_SIZE = 100_000
_ARTIFACT_SIZE = 3


def _size(metadata: PackageMetadata) -> int:
    return _ARTIFACT_SIZE + len(metadata.requirements) + len(metadata.classes)


_cache: cachetools.LRUCache[str, PackageMetadata] = cachetools.LRUCache(_CACHE_SIZE, _size)
_lock = threading.Lock()


def plan_seconds() -> float:
    """Return the longest time of a plan."""
    return float(cfg.CONF[f"artifact_type:{fields.TYPE_NAME}"].plan_seconds)


class GlareSource:
    """Versions and requirements for one query; see ``resolver.Source``.

    :param connection: to Glare's database, in a transaction.
    :param viewer: the caller, to whom the artifacts have to be visible.
    """

    def __init__(self, connection: Connection, viewer: Viewer, query: Query) -> None:
        self._connection = connection
        self._viewer = viewer
        self._query = query
        # The best artifact of each version found so far.
        self._artifacts: dict[PackageVersion, Row] = {}
        self._metadata: dict[str, PackageMetadata] = {}
        # Read for each query, since an active artifact may be yanked: id -> reason.
        self._yanked: dict[str, str] = {}
        # Names of packages of which metadata was read.
        self._read_names: set[str] = set()

    def versions(self, fqns: Collection[str]) -> Mapping[str, Sequence[Version]]:
        """See ``resolver.Source``."""
        found: dict[str, set[Version]] = collections.defaultdict(set)
        for package in self._find("name", fqns):
            found[package.fqn].add(package.version)
        # Some databases ignore case, so that other names may be found.
        return {fqn: newest_first(found[fqn]) for fqn in fqns if fqn in found}

    def requirements(
        self, packages: Collection[PackageVersion]
    ) -> Mapping[PackageVersion, Requirements]:
        """See ``resolver.Source``."""
        return {package: _ranges(metadata) for package, metadata in self._metadata_of(packages)}

    def is_withdrawn(self, package: PackageVersion) -> bool:
        """Check whether a found version serves only pins and ranges of exactly this version."""
        artifact = self._artifacts[package]
        is_wanted = self._query.prereleases or not package.version.prerelease
        return artifact.id in self._yanked or not (is_wanted or artifact.id == self._query.package)

    def package(self, artifact_id: str) -> PackageVersion | None:
        """Return the name and version of an artifact, if visible to the caller."""
        found = self._find("id", [artifact_id])
        # Some databases ignore case, and would find a draft that nothing else takes for one.
        return next((each for each in found if self._artifacts[each].id == artifact_id), None)

    def defining(self, class_names: Collection[str]) -> Mapping[str, Collection[PackageVersion]]:
        """Return the packages that define each of the classes."""
        defined: dict[str, set[str]] = collections.defaultdict(set)
        for class_name, artifact_id in queries.find_defining(self._connection, class_names):
            defined[artifact_id].add(class_name)
        packages = self._find("id", defined)
        # An artifact that is preferred to one of these may lack the class.
        self._find("name", {package.fqn for package in packages})
        found: dict[str, set[PackageVersion]] = collections.defaultdict(set)
        for package, artifact in self._artifacts.items():
            for class_name in defined.get(artifact.id, ()):
                found[class_name].add(package)
        return found

    def releases(self, packages: Collection[PackageVersion]) -> Iterator[Release]:
        """Yield the releases of versions, leaving out drafts without an archive."""
        for package, metadata in self._metadata_of(packages):
            artifact = self._artifacts[package]
            yield Release(
                fqn=package.fqn,
                version=package.version,
                requirements=_ranges(metadata),
                classes=frozenset(metadata.classes),
                id=artifact.id,
                digest=metadata.digest,
                size=metadata.size,
                owner=artifact.owner,
                visibility=artifact.visibility,
                yanked=self._yanked.get(artifact.id, ""),
            )

    def _metadata_of(
        self, packages: Collection[PackageVersion]
    ) -> Iterator[tuple[PackageVersion, PackageMetadata]]:
        unknown = [each for each in packages if self._artifacts[each].id not in self._metadata]
        if unknown:
            names = {each.fqn for each in unknown}
            # A choice that has changed may change again: read all versions at once.
            chosen = self._artifacts if names & self._read_names else unknown
            self._read_names |= names
            self._read_metadata({self._artifacts[each].id for each in chosen})
        for package in packages:
            metadata = self._metadata.get(self._artifacts[package].id)
            if metadata is not None:
                yield package, metadata

    def _find(self, column: str, values: Iterable[str]) -> list[PackageVersion]:
        """Find versions of packages, and remember the best artifact of each."""
        found = []
        for row in queries.find_usable(
            self._connection, self._viewer, column, values, self._query.package
        ):
            package = PackageVersion(row.name, queries.version_of(row))
            if self._is_usable(row):
                found.append(package)
                best = self._artifacts.get(package)
                if best is None or self._preference(row) > self._preference(best):
                    self._artifacts[package] = row
        ids = {self._artifacts[package].id for package in found}
        self._yanked |= queries.find_yanked(self._connection, ids)
        return found

    def _is_usable(self, artifact: Row) -> bool:
        if artifact.id == self._query.package:
            return True
        project_id = self._query.project_id
        return project_id is None or artifact.visibility == "public" or artifact.owner == project_id

    def _preference(self, artifact: Row) -> tuple[bool, bool, bool, str]:
        """Prefer the package of the query, then the project's own, then a public artifact."""
        project_id = self._query.project_id or self._viewer.project_id
        return (
            artifact.id == self._query.package,
            artifact.owner == project_id,
            artifact.visibility == "public",
            artifact.id,
        )

    def _read_metadata(self, ids: Collection[str]) -> None:
        unknown = set(ids) - self._metadata.keys()
        with _lock:
            cached = {id_: _cache[id_] for id_ in unknown if id_ in _cache}
        found = queries.find_metadata(self._connection, unknown - cached.keys())
        # The package of the query may be a draft, which can change.
        cacheable = {id_: each for id_, each in found.items() if id_ != self._query.package}
        with _lock:
            _cache.update(cacheable)
        self._metadata.update(cached | found)


def _ranges(metadata: PackageMetadata) -> dict[str, VersionSpec]:
    return {fqn: VersionSpec.of(text) for fqn, text in metadata.requirements.items()}
