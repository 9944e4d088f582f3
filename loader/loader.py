# SPDX-License-Identifier: Apache-2.0

"""The one door for engines: a requirement goes in, a package comes out.

It keeps what one deployment has loaded and planned, and has the rest resolved
and fetched. Which release answers a requirement is the resolution's affair,
where releases are found the catalogues', where they are kept the cache's, what
they hold the formats'.
"""

import logging
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

import platformdirs

from glare_murano import resolver
from glare_murano.package import InvalidPackage, Version, VersionSpec
from glare_murano.package.manifest import check_full_name, check_required_name
from glare_murano.wire import Query, Release
from loader import errors, resolution
from loader.cache.store import Cache
from loader.catalogs.base import Catalog
from loader.counters import Counters
from loader.fetcher import Fetcher
from loader.formats.base import Package
from loader.formats.registry import PackageTypes
from loader.offline import Memory
from loader.pins import Pins
from loader.resolution import Choice, Resolution

if TYPE_CHECKING:
    from keystoneauth1 import session as ksa_session

LOG = logging.getLogger(__name__)


class PackageLoader:
    """Loads packages for one deployment.

    :ivar pins: what the environment was deployed with; set it before the
        first package is loaded.
    """

    def __init__(
        self,
        catalogs: Sequence[Catalog] | None = None,
        cache: Cache | None = None,
        pins: Pins | None = None,
        package_types: PackageTypes | None = None,
        *,
        session: "ksa_session.Session | None" = None,
        project_id: str | None = None,
        fetcher: Fetcher | None = None,
        memory: Memory | None = None,
    ) -> None:
        """Make a loader; close it at the end.

        :param catalogs: where to look, in this order; by default in the Glare
            of a session.
        :param cache: where packages are kept; by default in the user's folder
            for caches. It is closed with the loader.
        :param package_types: which package types may be used; by default all
            that are installed.
        :param session: a keystoneauth session that authenticates, for the
            default of ``catalogs``.
        :param project_id: whose private packages that Glare may give; by
            default those of the session's project.
        :param fetcher: what brings archives into the cache.
        :param memory: what is asked where a catalogue does not answer; by
            default nothing is.
        :raises ValueError: if there are neither catalogues nor a session.
        :raises CacheError: if the user's folder cannot be used.
        """
        self._catalogs = _of_session(session, project_id) if catalogs is None else tuple(catalogs)
        self._cache = cache or Cache(platformdirs.user_cache_path("glare-murano"))
        self._package_types = package_types or PackageTypes()
        self._fetcher = fetcher or Fetcher(self._cache)
        self._memory = memory
        self.pins = pins or Pins()
        self._loaded: dict[str, dict[Version, Package]] = {}
        # All that was planned so far; it is replaced as a whole, since threads read it.
        self._resolved = Resolution()
        self._resolving = threading.Lock()
        self._of_headers: dict[tuple[str, VersionSpec], Package] = {}
        self._seconds = 0.0

    def close(self) -> None:
        """Give up the cache: nothing more can be read of what was loaded."""
        self._cache.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def load_package(self, fqn: str, spec: VersionSpec, required_by: str | None = None) -> Package:
        """Load a package: a pinned version in the range, one already loaded, or the newest.

        What it requires in turn is planned, and fetched with it.

        :param required_by: who asks, for messages.
        :raises InvalidName: if no package can have the name.
        :raises NoSuchPackage: if there is none.
        :raises LoaderError: if it cannot be fetched.
        :raises InvalidPackage: if it is not what a package must be.
        """
        check_required_name(fqn)
        pinned = self.pins.select(fqn, spec)
        wanted = VersionSpec.exactly(pinned) if pinned is not None else spec
        loaded = wanted.select(self._loaded.get(fqn, ()))
        if loaded is not None:
            return self._loaded[fqn][loaded]
        why = "as planned"
        choice = self._select(fqn, wanted)
        if choice is None and self._missing(fqn, spec, wanted) is None:
            why = "the newest"
            self._plan(f"package {fqn} in the range {spec}", Query(((fqn, wanted),)))
            choice = self._select(fqn, wanted)
        if choice is None:
            missing = self._missing(fqn, spec, wanted)
            if missing is None:
                raise self._evasion(f"package {fqn} in the range {wanted}")
            if required_by is None and missing.demand.requirer is not None:
                required_by = str(missing.demand.requirer)
            raise errors.NoSuchPackage(
                fqn,
                spec,
                missing.available,
                self._catalog_names(),
                required_by,
                pinned,
                self._resolved.upon(fqn, missing.demand.spec, required_by),
            )
        wanted_by = f"the range {spec} of {required_by}" if required_by else f"the range {spec}"
        return self._load(choice, wanted_by, why if pinned is None else "as pinned")

    def load_object_package(self, fqn: str, spec: VersionSpec) -> Package:
        """Load a package for an object whose header names it.

        One version that the catalogues lack gives way to the newest of the
        same minor version, else of the same major version (specification
        "Murano versioning", section "Object version").

        :raises NoSuchPackage: if there is none of these either.
        :raises LoaderError: if it cannot be fetched.
        :raises InvalidPackage: if it is not what a package must be.
        """
        try:
            return self.load_package(fqn, spec)
        except errors.NoSuchPackage as error:
            near = self._near(fqn, spec, error.available)
            if near is None:
                raise
        package = self.load_package(fqn, VersionSpec.exactly(near))
        _tell_fallback(spec, package)
        return package

    def _near(self, fqn: str, spec: VersionSpec, there: Collection[Version]) -> Version | None:
        """The version in the place of one that is gone: one pinned, else planned, else the newest.

        What is pinned may be gone as well.
        """
        settled = (self.pins.table.get(fqn, ()), self._resolved.choices.get(fqn, ()))
        sources = [*(resolver.newest_first(set(there).intersection(s)) for s in settled), there]
        for wanted in spec.with_fallbacks()[1:]:
            for versions in sources:
                near = wanted.select(versions)
                if near is not None:
                    return near
        return None

    def load_class_package(self, class_name: str, spec: VersionSpec) -> Package:
        """Load a package that defines a class, one already loaded or the newest.

        It is asked for an object's class, so that the rule of
        ``load_object_package`` holds here, too.

        :param spec: the range that the package's version must be in.
        :raises InvalidName: if no class can have the name.
        :raises NoSuchClass: if there is none.
        :raises LoaderError: if it cannot be fetched.
        :raises InvalidPackage: if it is not what a package must be.
        """
        check_full_name(class_name)
        defining = {
            version: package
            for versions in self._loaded.values()
            for version, package in versions.items()
            if class_name in package.classes
        }
        loaded = spec.select(defining)
        if loaded is not None:
            return defining[loaded]
        if (class_name, spec) not in self._of_headers:
            package = self._load_defining(class_name, spec)
            _tell_fallback(spec, package)
            self._of_headers[class_name, spec] = package
        return self._of_headers[class_name, spec]

    def _load_defining(self, class_name: str, spec: VersionSpec) -> Package:
        wanted = f"class {class_name} in the range {spec}"
        choice = self._select_defining(class_name, spec, spec.with_fallbacks()[:1])
        if choice is None:
            asked = f"a package in the range {spec} that defines class {class_name}"
            resolved = self._plan(asked, Query(classes=((class_name, spec),)))
            for undefined in resolved.undefined:
                raise errors.NoSuchClass(
                    class_name, spec, undefined.available, self._catalog_names()
                )
            choice = self._select_defining(class_name, spec, spec.with_fallbacks())
        if choice is None:
            raise self._evasion(wanted)
        self._tell_unpinned(choice.release, class_name, spec)
        return self._load(choice, wanted, "the newest")

    def _tell_unpinned(self, release: Release, class_name: str, spec: VersionSpec) -> None:
        """Warn where a class comes from another version than the one that is pinned."""
        pinned = self.pins.select(release.fqn, spec)
        is_in_range = spec.match(release.version)
        if pinned and is_in_range and release.version not in self.pins.table[release.fqn]:
            LOG.warning(
                "%s is used for class %s, although %s is pinned: that is gone, or lacks the class",
                release,
                class_name,
                pinned,
            )

    @property
    def counters(self) -> Counters:
        """What loading has cost so far."""
        total = Counters(seconds=self._seconds)
        for part in (self._cache.counters, *(catalog.counters for catalog in self._catalogs)):
            total.add(part)
        return total

    def _resolve(self, query: Query) -> Resolution:
        if self._memory is not None:
            return self._memory.ask(query)
        return resolution.resolve(self._catalogs, query)

    def _plan(self, asked: str, query: Query) -> Resolution:
        """Have a query answered, remember the answer, and fetch what was chosen."""
        start = time.monotonic()
        try:
            resolved = self._resolve(Query(query.requirements, query.classes, self._settled()))
            if self._memory is not None and self._memory.has_stood_in:
                # The answer may be out of date, and must not outlive this deployment.
                self.pins.freeze()
            with self._resolving:
                before = self._resolved
                self._resolved = before.joined(resolved)
            for fqn, versions in resolved.choices.items():
                if versions.keys() - before.choices.get(fqn, {}).keys():
                    self._tell_versions(fqn)
            self._fetcher.prefetch(resolved.chosen)
            if self._memory is not None:
                for choice in resolved.chosen:
                    self._memory.remember(choice)
            return resolved
        except (errors.CatalogError, resolver.Unplannable) as error:
            error.args = (f"{asked} cannot be found: {error}",)
            raise
        finally:
            self._seconds += time.monotonic() - start

    def _settled(self) -> Mapping[str, Collection[Version]]:
        """The versions that are taken wherever they are in a range: pinned or planned."""
        settled = {fqn: set(versions) for fqn, versions in self.pins.table.items()}
        for fqn, choices in self._resolved.choices.items():
            settled.setdefault(fqn, set()).update(choices)
        return settled

    def _missing(self, fqn: str, *ranges: VersionSpec) -> resolver.Unsatisfied | None:
        """What was found missing so far; of a pinned package that may be the pinned version."""
        found = (self._resolved.missing(fqn, spec) for spec in ranges)
        return next((missing for missing in found if missing is not None), None)

    def _tell_versions(self, fqn: str) -> None:
        """Say why several versions of a package are used side by side."""
        versions = self._resolved.choices[fqn]
        if len(versions) > 1:
            for version in resolver.newest_first(versions):
                LOG.info(
                    "No single version of %s serves: %s is used for %s",
                    fqn,
                    version,
                    self._resolved.chains(versions[version].demands),
                )

    def _select(self, fqn: str, spec: VersionSpec) -> Choice | None:
        choices = self._resolved.choices.get(fqn, {})
        version = spec.select(choices)
        return choices[version] if version is not None else None

    def _select_defining(
        self, class_name: str, spec: VersionSpec, ranges: Iterable[VersionSpec]
    ) -> Choice | None:
        defining = {
            version: choice
            for versions in self._resolved.choices.values()
            for version, choice in versions.items()
            if class_name in choice.release.classes
        }
        selected = (wanted.select(defining) for wanted in ranges)
        version = next((found for found in selected if found is not None), None)
        return defining[version] if version is not None else None

    def _load(self, choice: Choice, wanted: str, why: str) -> Package:
        release = choice.release
        start = time.monotonic()
        try:
            package = self._package_types.load(self._fetcher.source(choice))
            if (package.full_name, package.version) != (release.fqn, release.version):
                raise errors.CatalogError(
                    f"its archive holds {package.full_name} {package.version}"
                )
        except (InvalidPackage, errors.LoaderError) as error:
            error.args = (f"{release} of {choice.catalog.name} cannot be loaded: {error}",)
            raise
        finally:
            self._seconds += time.monotonic() - start
        LOG.info(
            "Package %s of %s was chosen for %s, %s", release, choice.catalog.name, wanted, why
        )
        # Another thread may have loaded it meanwhile: one version is one object.
        package = self._loaded.setdefault(release.fqn, {}).setdefault(release.version, package)
        if self._memory is not None:
            self._memory.remember(choice)
        self.pins.use(release.fqn, release.version)
        return package

    def _evasion(self, wanted: str) -> errors.CatalogError:
        return errors.CatalogError(
            f"{' and '.join(self._catalog_names())} chose no package for {wanted}, "
            f"and did not say that there is none"
        )

    def _catalog_names(self) -> list[str]:
        return [catalog.name for catalog in self._catalogs] or ["no catalogue at all"]


def _of_session(
    session: "ksa_session.Session | None", project_id: str | None
) -> tuple[Catalog, ...]:
    """The Glare that a session's service catalogue names."""
    if session is None:
        raise ValueError("a loader needs catalogues, or a session for Glare")
    # Programs that bring catalogues of their own may do without HTTP.
    from loader.catalogs.glare import GlareCatalog

    return (GlareCatalog(session, project_id=project_id),)


def _tell_fallback(spec: VersionSpec, package: Package) -> None:
    if not spec.match(package.version):
        LOG.warning(
            "%s %s is used in the place of %s, which no catalogue has",
            package.full_name,
            package.version,
            spec,
        )
