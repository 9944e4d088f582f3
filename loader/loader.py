# SPDX-License-Identifier: Apache-2.0

"""The package loader of a deployment, which returns a package for each requirement.

Releases are found in ``catalogs``, chosen in ``resolution``, fetched by ``fetcher``
into ``cache``, and read by ``formats``.
"""

import collections
import contextlib
import dataclasses
import logging
import os
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Self

import platformdirs

from glare_murano import resolver
from glare_murano.package import InvalidPackage, InvalidRange, Version, VersionSpec
from glare_murano.package.manifest import check_full_name, check_required_name
from glare_murano.wire import Query, Release
from loader import errors, resolution
from loader.cache.store import Cache
from loader.catalogs.base import Catalog
from loader.counters import Counters
from loader.fetcher import Fetcher
from loader.formats.base import Package
from loader.formats.registry import PackageTypes
from loader.offline import OfflineIndex
from loader.pins import Pins
from loader.resolution import Choice, Resolution

if TYPE_CHECKING:
    from keystoneauth1.session import Session

LOG = logging.getLogger(__name__)


class PackageLoader:
    """Load packages for one deployment.

    A range is a string or a ``VersionSpec``; the default allows any version.

    >>> with PackageLoader(DirectoryCatalog("packages"), "cache") as packages:
    ...     packages.load_package("org.db", ">=1,<2")
    <MuranoPLPackage org.db 1.2.0>

    :ivar pins: the versions of earlier deployments of the environment; to be set before
        the first package is loaded.
    """

    def __init__(
        self,
        catalogs: Catalog | Iterable[Catalog] | None = None,
        cache: Cache | str | os.PathLike[str] | None = None,
        pins: Pins | Mapping[str, Iterable[str]] | None = None,
        package_types: PackageTypes | None = None,
        *,
        session: "Session | None" = None,
        project_id: str | None = None,
        fetcher: Fetcher | None = None,
        offline_index: OfflineIndex | None = None,
    ) -> None:
        """Make a loader, to be closed at the end.

        :param catalogs: a catalogue, or several in the order of preference; by default,
            the Glare of the session.
        :param cache: a cache, which is closed with the loader, or the path of its
            directory; by default, in the user's cache directory.
        :param package_types: the allowed package types; by default, all installed ones.
        :param session: a keystoneauth session, for the default of ``catalogs``.
        :param project_id: the project whose private packages the session's Glare offers;
            by default, the project of the session.
        :param fetcher: fetches archives into the cache.
        :param offline_index: replaces unreachable catalogues; by default, nothing does.
        :raises TypeError: if an argument has a wrong type, such as a path for a catalogue.
        :raises ValueError: if there are neither catalogues nor a session.
        :raises CacheError: if the directory of the cache cannot be used.
        """
        if catalogs is None:
            catalogs = _default_catalog(session, project_id)
        self._catalogs = resolution.as_catalogs(catalogs)
        if not isinstance(cache, Cache):
            cache = Cache(platformdirs.user_cache_path("glare-murano") if cache is None else cache)
        self._cache = cache
        self._package_types = package_types or PackageTypes()
        self._fetcher = fetcher or Fetcher(cache)
        self._offline_index = offline_index
        self.pins = pins if isinstance(pins, Pins) else Pins(pins or {})
        self._seconds = 0.0
        self._is_closed = False
        self._loaded: dict[str, dict[Version, Package]] = {}
        # The packages of classes whose requested version is missing.
        self._substitutes: dict[tuple[str, VersionSpec], Package] = {}
        # Replaced as a whole, since other threads read it.
        self._planned = Resolution()
        self._planning = threading.Lock()

    def __repr__(self) -> str:
        loaded = sorted(f"{fqn} {v}" for fqn, versions in self._loaded.items() for v in versions)
        state = "closed" if self._is_closed else ", ".join(loaded) or "no package loaded"
        return f"<PackageLoader from {resolution.names(self._catalogs)}: {state}>"

    def close(self) -> None:
        """Close the loader and its cache.

        Later calls raise ``LoaderError``, as does reading files of packages in the
        cache. Counters and pins stay readable.

        >>> packages.close()
        >>> packages
        <PackageLoader from the directory ...packages: closed>
        """
        self._is_closed = True
        self._cache.close()

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def load_package(
        self, fqn: str, range: str | VersionSpec = "*", required_by: str | None = None
    ) -> Package:
        """Load the pinned version of a package in a range, else a loaded one, else the newest.

        The closure of its requirements is planned and fetched as well, but not loaded.

        >>> packages.load_package("org.db", "<1.2")
        <MuranoPLPackage org.db 1.0.0>

        :param fqn: the fully qualified name of the package.
        :param range: the range of its versions.
        :param required_by: the requiring package for messages, as ``FQN version``.
        :raises InvalidName: if the name is not valid.
        :raises InvalidRange: if the range is not valid.
        :raises NoSuchPackage: if no version is in the range.
        :raises LoaderError: if the package cannot be found or fetched.
        :raises InvalidPackage: if the package breaks a rule.
        """
        spec = self._parse_range(range)
        check_required_name(fqn)
        pinned = self.pins.select(fqn, spec)
        wanted = spec if pinned is None else VersionSpec.exactly(pinned)
        loaded = wanted.select(self._loaded.get(fqn, ()))
        if loaded is not None:
            return self._loaded[fqn][loaded]
        found = self._planned.find(fqn, wanted) or self._planned.find_missing(fqn, spec, wanted)
        reason = "as planned"
        if found is None:
            reason = "the newest"
            planned = self._plan(f"package {fqn} in the range {spec}", Query(((fqn, wanted),)))
            found = planned.find(fqn, wanted) or planned.find_missing(fqn, wanted)
        if isinstance(found, Choice):
            requirer = f" of {required_by}" if required_by else ""
            reason = reason if pinned is None else "as pinned"
            return self._load(found, f"the range {spec}{requirer}", reason)
        if found is None:
            raise self._unanswered(f"package {fqn} in the range {wanted}")
        raise self._planned.error(found, self._catalogs, spec, pinned, required_by)

    def load_all(self, fqn: str, range: str | VersionSpec = "*") -> list[Package]:
        """Load a package with the whole closure of its requirements.

        The closure takes one dependency query, and its archives are fetched together.

        >>> for package in packages.load_all("org.wiki"):
        ...     print(package.full_name, package.version)
        org.wiki 1.1.0
        io.murano 0.1.0
        org.db 1.2.0

        :returns: each version of each package once: first the package itself, then the
            others by their distance, including ``io.murano``.
        :raises NoSuchPackage: if packages are missing; the message names all of them.
        :raises LoaderError: as in ``load_package``.
        """
        found: dict[resolver.PackageVersion, Package] = {}
        missing: dict[tuple[str, VersionSpec], errors.NoSuchPackage] = {}
        queue = collections.deque([resolver.Demand(fqn, self._parse_range(range), None)])
        while queue:
            demand = queue.popleft()
            required_by = str(demand.requirer) if demand.requirer is not None else None
            try:
                package = self.load_package(demand.fqn, demand.spec, required_by)
            except errors.NoSuchPackage as error:
                missing.setdefault((demand.fqn, demand.spec), error)
                continue
            release = self._planned.choices[package.full_name][package.version].release
            if release.key not in found:
                found[release.key] = package
                queue.extend(resolver.demands_of(release.key, release.requirements))
        if missing:
            raise errors.NoSuchPackage.combine(list(missing.values()))
        return list(found.values())

    def load_object_package(self, fqn: str, range: str | VersionSpec = "*") -> Package:
        """Load the package in the header of an object.

        Instead of a missing single version, the newest with the same minor version is
        loaded, else with the same major version (specification "Murano versioning",
        section "Object version"), with a warning in the log.

        >>> packages.load_object_package("org.db", "1.2.7")
        <MuranoPLPackage org.db 1.2.0>

        :raises NoSuchPackage: if there is no such version either.
        :raises LoaderError: as in ``load_package``.
        """
        spec = self._parse_range(range)
        try:
            return self.load_package(fqn, spec)
        except errors.NoSuchPackage as error:
            substitute = self._substitute(fqn, spec, error.available)
            if substitute is None:
                raise
        package = self.load_package(fqn, VersionSpec.exactly(substitute))
        _log_substitute(spec, package)
        return package

    def load_class_package(self, class_name: str, range: str | VersionSpec = "*") -> Package:
        """Load a package for a class in the header of an object.

        Of the packages that define the class, a loaded one is preferred, then a pinned
        one, then the newest. A missing version is replaced as in ``load_object_package``.

        >>> packages.load_class_package("org.db.Database", "1")
        <MuranoPLPackage org.db 1.2.0>

        :param range: the range of the package's version.
        :raises InvalidName: if the name of the class is not valid.
        :raises NoSuchClass: if no package in the range defines the class.
        :raises LoaderError: as in ``load_package``.
        """
        spec = self._parse_range(range)
        check_full_name(class_name)
        packages = (p for versions in self._loaded.values() for p in versions.values())
        defining = {p.version: p for p in packages if class_name in p.classes}
        loaded = spec.select(defining)
        if loaded is not None:
            return defining[loaded]
        if (class_name, spec) in self._substitutes:
            return self._substitutes[class_name, spec]
        choice = self._planned.find_class(class_name, [spec]) or self._plan_class(class_name, spec)
        self._log_unpinned(choice.release, class_name, spec)
        package = self._load(choice, f"class {class_name} in the range {spec}", "the newest")
        _log_substitute(spec, package)
        self._substitutes[class_name, spec] = package
        return package

    @property
    def counters(self) -> Counters:
        """The costs so far, including catalogues and cache.

        >>> _ = packages.load_all("org.wiki")
        >>> packages.counters.downloads
        3
        """
        total = Counters(seconds=self._seconds)
        for part in (self._cache.counters, *(catalog.counters for catalog in self._catalogs)):
            total.add(part)
        return total

    def _check_open(self) -> None:
        if self._is_closed:
            raise errors.LoaderError(
                "the package loader is closed; load packages before close(), or make another loader"
            )

    def _parse_range(self, range: str | VersionSpec) -> VersionSpec:
        self._check_open()
        if range is None:
            raise InvalidRange("None is not a valid range: leave it out for any version")
        return VersionSpec.of(range)

    def _plan(self, subject: str, query: Query) -> Resolution:
        """Choose the closure of a query, and fetch its archives."""
        with self._measured(f"{subject} cannot be found"):
            resolved = self._resolve(dataclasses.replace(query, pins=self._preferred()))
            with self._planning:
                before = self._planned
                self._planned = before.joined(resolved)
            for fqn, versions in resolved.choices.items():
                if versions.keys() - before.choices.get(fqn, {}).keys():
                    self._log_versions(fqn)
            self._fetcher.prefetch(resolved.chosen)
            self._record(resolved.chosen)
            return resolved

    def _plan_class(self, class_name: str, spec: VersionSpec) -> Choice:
        subject = f"a package in the range {spec} that defines class {class_name}"
        for undefined in self._plan(subject, Query(classes=((class_name, spec),))).undefined:
            searched = resolution.names(self._catalogs)
            raise errors.NoSuchClass(class_name, spec, undefined.available, searched)
        choice = self._planned.find_class(class_name, spec.with_fallbacks())
        if choice is None:
            raise self._unanswered(f"class {class_name} in the range {spec}")
        return choice

    def _resolve(self, query: Query) -> Resolution:
        if self._offline_index is None:
            return resolution.resolve(self._catalogs, query)
        resolved = self._offline_index.query(query)
        if self._offline_index.was_used:
            # The result may be outdated, and must not outlive this deployment.
            self.pins.freeze()
        return resolved

    def _record(self, choices: Iterable[Choice]) -> None:
        if self._offline_index is not None:
            for choice in choices:
                self._offline_index.record(choice)

    def _preferred(self) -> Mapping[str, Collection[Version]]:
        """Return pinned and planned versions, which are chosen for every range with them."""
        preferred = {fqn: set(versions) for fqn, versions in self.pins.table.items()}
        for fqn, choices in self._planned.choices.items():
            preferred.setdefault(fqn, set()).update(choices)
        return preferred

    def _substitute(
        self, fqn: str, spec: VersionSpec, available: Collection[Version]
    ) -> Version | None:
        """Return the pinned version near a missing one, else a planned one, else the newest."""
        # A pinned version may be missing as well.
        preferred = (self.pins.table.get(fqn, ()), self._planned.choices.get(fqn, ()))
        groups = [*(resolver.newest_first(set(available) & set(p)) for p in preferred), available]
        found = (s.select(versions) for s in spec.with_fallbacks()[1:] for versions in groups)
        return next((version for version in found if version is not None), None)

    def _load(self, choice: Choice, requirement: str, reason: str) -> Package:
        release = choice.release
        title = f"{release} of {choice.catalog.name}"
        with self._measured(f"{title} cannot be loaded"):
            package = self._package_types.load(self._fetcher.source(choice))
            found = resolver.PackageVersion(package.full_name, package.version)
            if found != release.key:
                raise errors.CatalogError(f"its archive contains {found}")
        LOG.info("Package %s was chosen for %s, %s", title, requirement, reason)
        # All threads get the same object, even if another has loaded the version meanwhile.
        package = self._loaded.setdefault(release.fqn, {}).setdefault(release.version, package)
        self._record([choice])
        self.pins.use(release.fqn, release.version)
        return package

    @contextlib.contextmanager
    def _measured(self, failure: str) -> Iterator[None]:
        """Count the time of a step, and name the failed step in an error's message."""
        start = time.monotonic()
        try:
            yield
        except (InvalidPackage, errors.LoaderError, resolver.Unplannable) as error:
            error.args = (f"{failure}: {error}",)
            raise
        finally:
            self._seconds += time.monotonic() - start

    def _log_versions(self, fqn: str) -> None:
        """Log the requirements for which several versions of a package are used."""
        versions = self._planned.choices[fqn]
        if len(versions) > 1:
            message = "No single version of %s satisfies all requirements: %s is used for %s"
            for version in resolver.newest_first(versions):
                LOG.info(message, fqn, version, self._planned.chains(versions[version].demands))

    def _log_unpinned(self, release: Release, class_name: str, spec: VersionSpec) -> None:
        """Warn about a class from another version than the pinned one."""
        pinned = self.pins.select(release.fqn, spec)
        is_pinned = release.version in self.pins.table.get(release.fqn, ())
        if pinned and not is_pinned and spec.match(release.version):
            message = "%s is used for class %s, which is missing in the pinned version %s"
            LOG.warning(message, release, class_name, pinned)

    def _unanswered(self, subject: str) -> errors.CatalogError:
        return errors.CatalogError(
            f"{' and '.join(c.name for c in self._catalogs)} gave no answer about {subject}: "
            f"neither a release nor an error; report this to the operator of the catalogue"
        )


def _default_catalog(session: "Session | None", project_id: str | None) -> Catalog:
    # Programs with catalogues of their own need no HTTP.
    from keystoneauth1.session import Session

    from loader.catalogs.glare import GlareCatalog

    if session is None:
        raise ValueError("a package loader needs catalogues, or a session for Glare")
    if not isinstance(session, Session):
        raise TypeError(f"{session!r} is not a keystoneauth session")
    return GlareCatalog(session, project_id=project_id)


def _log_substitute(spec: VersionSpec, package: Package) -> None:
    if not spec.match(package.version):
        message = "%s %s is used instead of the version %s, which no catalogue has"
        LOG.warning(message, package.full_name, package.version, spec)
