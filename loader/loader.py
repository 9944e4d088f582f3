# SPDX-License-Identifier: Apache-2.0

"""Load the packages that a deployment requires.

``catalogs`` finds releases, ``resolution`` chooses among them, ``fetcher`` fetches their archives
into ``cache``, and ``formats`` reads the packages.
"""

import collections
import contextlib
import dataclasses
import logging
import os
import pathlib
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from glare_murano import resolver
from glare_murano.eligibility import Eligibility
from glare_murano.package import InvalidPackage, Unplannable, Version, VersionSpec
from glare_murano.package.errors import shown
from glare_murano.package.manifest import (
    CORE_LIBRARY,
    add_implicit,
    check_fqn,
    check_required_name,
)
from glare_murano.package.reserved_names import NO_RESERVED_NAMES, ReservedNames
from glare_murano.wire import Query, Release
from loader import errors, resolution, subclass_search, time_limits
from loader.cache import cache_directory
from loader.cache.store import Cache
from loader.catalogs.base import Catalog
from loader.counters import Counters
from loader.environments.pins import Pins
from loader.fetcher import Fetcher
from loader.formats.base import Package
from loader.formats.registry import PackageTypes
from loader.formats.source import PackageSource
from loader.offline import OfflineIndex
from loader.resolution import Choice, Resolution
from loader.subclass_search import Subclasses

if TYPE_CHECKING:
    from keystoneauth1.session import Session

LOG = logging.getLogger(__name__)

# How many versions of a package the log explains for one plan, and how many demands a chain in the
# log has. Authors of packages choose how many there are.
_MAX_VERSIONS = 10
_MAX_CHAIN = 20


class PackageLoader:
    """Loads packages for one deployment.

    Three methods are for every program: ``load`` loads a package by its name, ``load_requirement``
    loads a package that a loaded one requires, and ``load_all`` loads a package with everything
    that it requires, directly or through others (its *closure*). Three further methods are for
    engines. An engine deploys objects, and each object has a header (``?``) with its class or
    package, and a range of versions. ``plan_objects`` chooses the packages of all objects together.
    ``load_object_package`` and ``load_class_package`` load the package for one header.

    A range is a string or a ``VersionSpec``. If it is left out, any version may be chosen. An empty
    range and None mean 0.x, as in ``Require`` of a manifest. In the header of an object, they mean
    any version.

    Several threads may load, plan and list packages at the same time, and read loaded packages. For
    the same version, all threads get the same object. Call ``provide`` and set the pins before the
    threads start, and call ``close`` after they have ended.

    >>> with PackageLoader(DirectoryCatalog("packages"), "cache") as packages:
    ...     packages.load("org.db", ">=1,<2")
    <MuranoPLPackage org.db 1.2.0>

    :ivar pins: the versions that earlier deployments of the environment have used; the loader
        prefers them. Set them before the first package is loaded.
    :ivar package_types: the allowed package types. Set them before the first package is loaded.
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
        plan_seconds: float = resolver.MAX_SECONDS,
        max_subclasses: int = subclass_search.DEFAULT_MAXIMUM,
        reserved_names: ReservedNames = NO_RESERVED_NAMES,
        private_overrides: bool = True,
    ) -> None:
        """Make a loader; the caller has to close it.

        :param catalogs: a catalogue, or several in the order of preference; by default, Glare
            with the credentials of ``session``.
        :param cache: a cache, or the path of its directory; by default, the user's own cache. The
            loader closes the cache.
        :param pins: the versions that earlier deployments have used, or a table of them; by
            default, none.
        :param package_types: the allowed package types; by default, all installed ones.
        :param session: a keystoneauth session for Glare, if ``catalogs`` is left out.
        :param project_id: the project whose private packages may be used, if ``catalogs`` is left
            out; by default, the project of the session.
        :param fetcher: the object that fetches archives into the cache; by default, a new one.
        :param offline_index: the index that replaces unreachable catalogues; by default, none.
        :param plan_seconds: the longest time to choose a closure, or to list subclasses, in
            seconds.
        :param max_subclasses: how many subclasses ``subclasses`` returns at most.
        :param reserved_names: names that belong to projects; releases of other projects with
            these names are not used.
        :param private_overrides: whether a private release may be used although a public release
            has the same name.
        :raises TypeError: if an argument has a wrong type, such as a path for a catalogue.
        :raises ValueError: if there are neither catalogues nor a session, or if ``plan_seconds``
            is not finite.
        :raises CacheError: if the directory of the cache cannot be used.
        """
        self._plan_seconds = time_limits.check(plan_seconds, "plan_seconds")
        if catalogs is None:
            catalogs = _default_catalog(session, project_id)
        self._catalogs = resolution.as_catalogs(catalogs)
        if not isinstance(cache, Cache):
            cache = Cache(cache_directory.of_user() if cache is None else cache)
        self._cache = cache
        self.package_types = package_types or PackageTypes()
        self._fetcher = fetcher or Fetcher(cache)
        self._offline_index = offline_index
        self.pins = pins if isinstance(pins, Pins) else Pins(pins or {})
        self._max_subclasses = max_subclasses
        self._eligibility = Eligibility(reserved_names, private_overrides)
        self._seconds = 0.0
        self._is_closed = False
        # The mapping is replaced as a whole, since other threads read it.
        self._loaded: dict[str, dict[Version, Package]] = {}
        self._releases: dict[resolver.PackageVersion, Release] = {}
        self._sources: dict[resolver.PackageVersion, PackageSource] = {}
        # Class and range in the header of an object -> the package that was chosen for it.
        self._of_headers: dict[tuple[str, VersionSpec], Choice] = {}
        # The resolution is never changed, but replaced, since other threads read it.
        self._planned = Resolution()
        self._provided: dict[str, set[Version]] = {}
        # Name of a class -> the plug-in that defines it.
        self._provided_classes: dict[str, resolver.PackageVersion] = {}
        # The requirements, also the implicit ones, of the loaded packages and the plug-ins.
        self._requirements: dict[resolver.PackageVersion, resolver.Requirements] = {}
        # This lock is held to change the planned packages, the loaded packages, or the pins.
        self._changes = threading.Lock()
        self._opened = contextlib.ExitStack()
        self._opened.callback(cache.close)
        for catalog in self._catalogs:
            self._opened.callback(catalog.close)

    @classmethod
    def from_cloud(
        cls,
        name: str | None = None,
        cache: Cache | str | os.PathLike[str] | None = None,
        pins: Pins | Mapping[str, Iterable[str]] | None = None,
    ) -> Self:
        """Make a loader for the packages in a cloud; the caller has to close it.

        The service that has the packages is found as the command ``openstack murano`` finds it:
        ``OS_MURANO_CATALOG``, or the key ``murano_catalog`` of the cloud, names it. By default, it
        is Glare or Glance, whichever is set up for packages. Region, interface and endpoints are
        those in ``clouds.yaml``.

        >>> with PackageLoader.from_cloud("prod") as packages:
        ...     packages.source
        'Glare at http://127.0.0.1:9'

        :param name: the name of the cloud in ``clouds.yaml``; by default, the one in ``OS_CLOUD``.
        :param cache: see the constructor.
        :param pins: see the constructor.
        :raises LoaderError: if openstacksdk is missing, which the extra ``cli`` installs, or if
            Glare and Glance both have packages and neither was named.
        :raises InvalidCloud: if the cloud is missing, or its values are wrong.
        :raises CatalogError: if Keystone does not answer.
        :raises CacheError: if the directory of the cache cannot be used.
        """
        # Imported here, since a program that passes its own catalogues needs no HTTP.
        from loader import clouds
        from loader.catalogs import package_service
        from loader.transport import limited_sessions

        with contextlib.ExitStack() as opened:
            cloud = clouds.find(name)
            opened.callback(limited_sessions.close, cloud.get_session())
            service = package_service.of_cloud(cloud, os.environ.get("OS_MURANO_CATALOG"))
            made = cls(service.catalog(cloud), cache, pins)
            made._opened.push(opened.pop_all())
        return made

    def __repr__(self) -> str:
        loaded = sorted(f"{fqn} {v}" for fqn, versions in self._loaded.items() for v in versions)
        state = "closed" if self._is_closed else ", ".join(loaded) or "no package loaded"
        return f"<PackageLoader from {self.source}: {state}>"

    def close(self) -> None:
        """Close the loader, its cache, and the connections that only the loader uses.

        A session that the caller has passed stays open. In a closed loader, methods that load
        packages raise ``LoaderError``, and loaded packages whose files are in the cache cannot be
        read. Counters and pins stay readable.

        >>> packages.close()
        >>> packages
        <PackageLoader from the directory ...packages: closed>
        """
        self._is_closed = True
        self._opened.close()

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def provide(
        self,
        fqn: str,
        version: Version,
        classes: Iterable[str] = (),
        requirements: Mapping[str, str | VersionSpec | None] | None = None,
    ) -> resolver.PackageVersion:
        """Let an extension plug-in of the engine satisfy requirements, as if it were a package.

        After that, the loader neither plans nor loads a package with this name from a catalogue,
        and does not load a package that defines one of the classes.

        >>> plugin = packages.provide("org-example-mail", Version("1.4.0"), ["org.example.Mail"])

        :param fqn: the name of the Python distribution that contains the plug-in.
        :param classes: the names of the plug-in's classes.
        :param requirements: a mapping of the packages that the plug-in requires to their ranges.
        :returns: the plug-in's name and version, for ``load_requirement``.
        """
        self._provided.setdefault(fqn, set()).add(version)
        plugin = resolver.PackageVersion(fqn, version)
        self._provided_classes.update(dict.fromkeys(classes, plugin))
        self._requirements[plugin] = {
            name: VersionSpec.of(range) for name, range in (requirements or {}).items()
        }
        return plugin

    def load(self, fqn: str, range: str | VersionSpec | None = "*") -> Package:
        """Load a package by its name.

        The loader prefers the version that it has already chosen for this range, then a pinned
        version, then a loaded one, then one chosen for another range, then the newest. The packages
        that the package requires are chosen and fetched as well, but not loaded.

        >>> packages.load("org.db", "<1.2")
        <MuranoPLPackage org.db 1.0.0>

        :param fqn: the fully qualified name of the package.
        :param range: the range of its versions.
        :raises InvalidName: if the name is not valid.
        :raises InvalidRange: if the range is not valid.
        :raises NoSuchPackage: if no version is in the range.
        :raises LoaderError: if the package cannot be found or fetched.
        :raises InvalidPackage: if the package breaks a rule.
        """
        return self._load_demand(resolver.Demand(fqn, self._parse_range(range), None))

    def load_requirement(self, package: Package | resolver.PackageVersion, fqn: str) -> Package:
        """Load a package that another package requires.

        >>> wiki = packages.load("org.wiki", "1")
        >>> for requirement in wiki.requirements:
        ...     packages.load_requirement(wiki, requirement)
        <MuranoPLPackage org.db 1.2.0>

        :param package: a package that this loader has loaded, or a plug-in that was provided.
        :param fqn: the name of the required package. Every package implicitly requires itself and
            ``io.murano``.
        :raises TypeError: if ``package`` is not a package, but a string, for example.
        :raises NotRequired: if the package does not require a package with this name.
        :raises LoaderError: as in ``load``, and if this loader has not loaded the package.
        """
        self._check_open()
        requirer = _identity(package)
        if requirer not in self._requirements:
            raise errors.LoaderError(
                f"{requirer} was not loaded by this package loader, so nothing is planned for it; "
                f"load it before its requirements"
            )
        requirements = self._requirements[requirer]
        if fqn not in requirements:
            raise errors.NotRequired(requirer, fqn, requirements)
        demand = resolver.Demand(fqn, requirements[fqn], requirer)
        own = self._loaded.get(fqn, {}).get(requirer.version) if fqn == requirer.fqn else None
        if own is not None and demand not in resolver.demands_of(requirer, requirements):
            # The package satisfies its requirement on itself.
            return own
        return self._load_demand(demand)

    def release(self, package: Package) -> Release:
        """Return the release from which a package was loaded.

        >>> print(packages.release(packages.load("org.db", "1")))
        org.db 1.2.0

        :raises KeyError: if the package was not loaded by this loader.
        """
        return self._releases[resolver.PackageVersion(package.full_name, package.version)]

    def path(self, package: Package) -> pathlib.Path:
        """Return the path of the archive or the directory from which a package was loaded.

        >>> packages.path(packages.load("org.db", "1")).suffix
        ''

        :raises KeyError: if the package was not loaded by this loader.
        """
        return self._sources[resolver.PackageVersion(package.full_name, package.version)].path

    def load_all(self, fqn: str, range: str | VersionSpec | None = "*") -> list[Package]:
        """Load a package with all packages that it requires, directly or through others.

        One dependency query chooses them all, and their archives are fetched together.

        >>> for package in packages.load_all("org.wiki"):
        ...     print(package.full_name, package.version)
        org.wiki 1.1.0
        io.murano 0.1.0
        org.db 1.2.0

        :returns: the package, then the packages that it requires, then those that they require, and
            so on, including ``io.murano``. Each version appears once. Extension plug-ins of the
            engine are left out.
        :raises NoSuchPackage: if packages are missing; the message names all of them.
        :raises LoaderError: as in ``load``.
        """
        found: dict[resolver.PackageVersion, Package] = {}
        missing: dict[tuple[str, VersionSpec], errors.NoSuchPackage] = {}
        queue = collections.deque([resolver.Demand(fqn, self._parse_range(range), None)])
        while queue:
            demand = queue.popleft()
            try:
                package = self._load_demand(demand)
            except errors.NoSuchPackage as error:
                external = {external.demand for external in self._planned.external}
                if demand.requirer is None or demand not in external:
                    missing.setdefault((demand.fqn, demand.spec), error)
                continue
            release = self._planned.choices[package.full_name][package.version].release
            if release.key not in found:
                found[release.key] = package
                queue.extend(resolver.demands_of(release.key, release.requirements))
        if missing:
            raise errors.NoSuchPackage.combine(list(missing.values()))
        return list(found.values())

    def plan_objects(self, headers: Iterable[tuple[str, str | VersionSpec | None]]) -> Resolution:
        """Choose the packages of several objects together, before the first one is loaded.

        One dependency query chooses the fewest versions for all objects, whatever their order. If
        no package defines a class, this is reported later, when the class's package is loaded.

        >>> packages.plan_objects([("org.db.Database", ">=1"), ("org.db.Database", "<1.2")])
        <Resolution: io.murano 0.1.0, org.db 1.0.0>
        >>> packages.load_class_package("org.db.Database", ">=1")
        <MuranoPLPackage org.db 1.0.0>

        :param headers: a pair for each object: the name of its class, and the range of versions of
            the package that defines the class.
        :returns: all packages that the loader has chosen so far.
        :raises LoaderError: if the catalogues cannot be queried.
        """
        parsed = [(check_fqn(name), self._parse_range(text or "*")) for name, text in headers]
        new = tuple(dict.fromkeys(h for h in parsed if h not in self._of_headers))
        if new:
            self._plan_classes(f"the packages of {len(new)} classes", new)
        return self._planned

    def find_missing_pins(self) -> dict[resolver.PackageVersion, tuple[Version, ...]]:
        """Return the pinned versions that no catalogue has.

        >>> packages.find_missing_pins()
        {}

        :returns: a mapping of missing versions to the available versions of the package.
        :raises LoaderError: if the catalogues cannot be queried.
        """
        pinned = {
            (fqn, VersionSpec.exactly(version)): version
            for fqn, versions in self.pins.table.items()
            for version in versions
        }
        with self._measured("the pinned versions cannot be found"):
            query = Query(tuple(pinned), pins=self.pins.table)
            unsatisfied = self._resolve(query).unsatisfied
        return {
            resolver.PackageVersion(fqn, pinned[fqn, spec]): missing.available
            for missing in unsatisfied
            if (fqn := missing.demand.fqn, spec := missing.demand.spec) in pinned
        }

    def load_object_package(self, fqn: str, range: str | VersionSpec | None = "*") -> Package:
        """Load the package that the header of an object names.

        If the header names a single version that no catalogue has, a warning is logged, and another
        version is loaded: the newest version with the same major and minor numbers, or else the
        newest version with the same major number (specification "Murano versioning", section
        "Object version").

        >>> packages.load_object_package("org.db", "1.2.7")
        <MuranoPLPackage org.db 1.2.0>

        :raises NoSuchPackage: if no version can be loaded.
        :raises LoaderError: as in ``load``.
        """
        spec = self._parse_range(range or "*")
        try:
            return self.load(fqn, spec)
        except errors.NoSuchPackage as error:
            substitute = self._substitute(fqn, spec, error.available)
            if substitute is None:
                raise
        _log_substitute(spec, resolver.PackageVersion(fqn, substitute))
        return self.load(fqn, VersionSpec.exactly(substitute))

    def load_class_package(self, class_name: str, range: str | VersionSpec | None = "*") -> Package:
        """Load a package that defines the class in the header of an object.

        Several packages or versions may define the class. The loader prefers the one that
        ``plan_objects`` has chosen, then a loaded one, then a pinned one, then the newest. A
        missing version is replaced as in ``load_object_package``.

        >>> packages.load_class_package("org.db.Database", "1")
        <MuranoPLPackage org.db 1.2.0>

        :param range: the range of the package's version.
        :raises InvalidName: if the name of the class is not valid.
        :raises NoSuchClass: if no package in the range defines the class.
        :raises LoaderError: as in ``load``.
        """
        spec = self._parse_range(range or "*")
        check_fqn(class_name)
        if (class_name, spec) not in self._of_headers:
            packages = (p for versions in self._loaded.values() for p in versions.values())
            defining = {p.version: p for p in packages if class_name in p.classes}
            usable = (v for v, p in defining.items() if self._select(p.full_name, spec, [v]))
            loaded = spec.select(usable)
            if loaded is not None:
                return defining[loaded]
            if planned := self._planned.find_class(class_name, [spec]):
                self._use_for_header(class_name, spec, planned)
            else:
                self._plan_class(class_name, spec)
        choice = self._of_headers[class_name, spec]
        return self._load(choice, f"class {class_name} in the range {spec}", "the newest")

    def subclasses(
        self, class_name: str, range: str | VersionSpec | None = "*", package: str | None = None
    ) -> Subclasses:
        """List the direct and indirect subclasses of a class, without loading a package.

        A client offers the subclasses to users as implementations of a class (specification
        "MuranoPL forms"). A subclass is listed if its package requires the base class's package,
        and accepts one of the versions that define the base class. Pins have no effect. To list the
        subclasses for a pinned version, give this version as the range.

        >>> packages.subclasses("io.murano.Application").is_truncated
        False

        :param range: the range of versions of the package that defines the class.
        :param package: the name of this package, which may be an extension plug-in; by default,
            any name.
        :raises InvalidName: if a name is not valid.
        :raises InvalidRange: if the range is not valid.
        :raises Unplannable: if the search takes longer than ``plan_seconds``.
        :raises CatalogError: if a catalogue cannot be read.
        """
        spec = self._parse_range(range)
        check_fqn(class_name)
        if package is not None:
            check_required_name(package)
        with self._measured(f"the subclasses of {class_name} cannot be listed"):
            return subclass_search.search(
                self._catalogs,
                class_name,
                spec,
                package,
                self._max_subclasses,
                self._plan_seconds,
                self._provided,
                self._eligibility,
            )

    def is_core_library(self, package: Package) -> bool:
        """Return whether a loaded package is the core library ``io.murano``, and can be trusted.

        It can be trusted if it is public, if it comes from the operator, or if the operator has
        reserved the name ``io.murano`` for the project that owns the package.

        >>> packages.is_core_library(packages.load("io.murano"))
        True
        """
        is_loaded = self._loaded.get(CORE_LIBRARY, {}).get(package.version) is package
        return is_loaded and not self._eligibility.find_objection(self.release(package))

    @property
    def catalogs(self) -> Sequence[Catalog]:
        """The catalogues, in the order of preference."""
        return self._catalogs

    @property
    def source(self) -> str:
        """The names of the catalogues, for messages."""
        return resolution.names(self._catalogs)

    @property
    def counters(self) -> Counters:
        """The counters of the loader, its catalogues and its cache together.

        >>> _ = packages.load_all("org.wiki")
        >>> packages.counters.downloads
        3
        """
        total = Counters(seconds=self._seconds)
        for part in (self._cache.counters, *(catalog.counters for catalog in self._catalogs)):
            total.add(part)
        return total

    @property
    def loaded_count(self) -> int:
        """How many packages the loader has loaded.

        >>> _ = packages.load_all("org.wiki")
        >>> packages.loaded_count
        3
        """
        return sum(map(len, self._loaded.values()))

    def _check_open(self) -> None:
        if self._is_closed:
            raise errors.LoaderError(
                "the package loader is closed; load packages before close(), or make another loader"
            )

    def _parse_range(self, range: str | VersionSpec | None) -> VersionSpec:
        self._check_open()
        return VersionSpec.of(range)

    def _load_demand(self, demand: resolver.Demand) -> Package:
        """Load a package for a demand; ``load`` says which version is preferred."""
        fqn, spec = check_required_name(demand.fqn), demand.spec
        pinned = self._select(fqn, spec, self.pins.table.get(fqn, ()))
        found: Choice | resolver.Unsatisfied | resolver.External | None
        found = self._planned.assigned(fqn, spec, demand.requirer)
        reason = "as planned"
        if found is None:
            wanted = spec if pinned is None else VersionSpec.exactly(pinned)
            loaded = self._select(fqn, wanted, self._loaded.get(fqn, ()))
            if loaded is not None:
                return self._loaded[fqn][loaded]
            found = self._planned.find(fqn, wanted) or self._planned.find_missing(fqn, spec, wanted)
        if found is None:
            reason = "the newest"
            planned = self._plan(f"package {fqn} in the range {spec}", Query(((fqn, wanted),)))
            found = planned.find(fqn, wanted) or planned.find_missing(fqn, wanted)
        if isinstance(found, Choice):
            requirer = f" of {demand.requirer}" if demand.requirer is not None else ""
            reason = "as pinned" if found.release.version == pinned else reason
            return self._load(found, f"the range {shown(str(spec))}{requirer}", reason)
        if found is None:
            raise self._unanswered(f"package {fqn} in the range {wanted}")
        raise self._planned.error(found, self._catalogs, spec, pinned, demand.requirer)

    def _plan(self, subject: str, query: Query) -> Resolution:
        """Choose all packages that a query requires, and fetch their archives.

        :param subject: what the query searches for, in error messages.
        """
        with self._measured(f"{subject} cannot be found"):
            wanted = dataclasses.replace(query, pins=self._preferred(), why=True)
            resolved = self._resolve(wanted)
            with self._changes:
                before = self._planned
                self._planned = before.joined(resolved)
            for fqn, versions in resolved.choices.items():
                if new := versions.keys() - before.choices.get(fqn, {}).keys():
                    self._log_versions(fqn, new)
            self._fetcher.prefetch(resolved.chosen)
            self._record(resolved.chosen)
            return resolved

    def _plan_class(self, class_name: str, spec: VersionSpec) -> None:
        subject = f"a package in the range {spec} that defines class {class_name}"
        planned = self._plan_classes(subject, ((class_name, spec),))
        for undefined in planned.undefined:
            sought = "a package in the range that defines the class"
            raise errors.NoSuchClass(
                class_name,
                spec,
                undefined.available,
                self.source,
                resolution.remedy(self._catalogs, sought),
            )
        unplanned = [external.demand for external in planned.external]
        unplanned += [unsatisfied.demand for unsatisfied in planned.unsatisfied]
        for demand in unplanned:
            if demand.requirer is None and demand.fqn in self._provided:
                raise errors.NameOfPlugin(
                    f"class {class_name} is defined by a package in {self.source} that has the "
                    f"name of the extension plug-in {demand.fqn}"
                )
        if (class_name, spec) not in self._of_headers:
            raise self._unanswered(f"class {class_name} in the range {spec}")

    def _plan_classes(
        self, subject: str, headers: tuple[tuple[str, VersionSpec], ...]
    ) -> Resolution:
        resolved = self._plan(subject, Query(classes=headers))
        for class_name, spec in headers:
            if choice := resolved.find_class(class_name, spec.with_fallbacks()):
                self._use_for_header(class_name, spec, choice)
        return resolved

    def _use_for_header(self, class_name: str, spec: VersionSpec, choice: Choice) -> None:
        self._log_unpinned(choice.release, class_name, spec)
        _log_substitute(spec, choice.release)
        self._of_headers[class_name, spec] = choice

    def _resolve(self, query: Query) -> Resolution:
        rules = self._eligibility
        query = dataclasses.replace(
            query, provided=self._provided, private_overrides=rules.private_overrides
        )
        if self._offline_index is None:
            return resolution.resolve(self._catalogs, query, self._plan_seconds, rules.reserved)
        resolved = self._offline_index.query(query, self._plan_seconds, rules.reserved)
        if self._offline_index.was_used:
            # The result may be outdated, so later deployments must not get it as pins.
            self.pins.freeze()
        return resolved

    def _record(self, choices: Iterable[Choice]) -> None:
        if self._offline_index is not None:
            for choice in choices:
                self._offline_index.record(choice)

    def _select(self, fqn: str, spec: VersionSpec, versions: Iterable[Version]) -> Version | None:
        """Return the newest of some versions that may be used for a range; None if there is none.

        A yanked version may be used only if it was chosen for this range, or if the range is
        exactly this version.
        """
        planned = self._planned.choices.get(fqn, {})
        usable = (v for v in versions if v not in planned or planned[v].serves(spec))
        return spec.select(resolver.newest_first(usable))

    def _preferred(self) -> Mapping[str, Collection[Version]]:
        """Return the versions that the next query has to prefer, by FQN.

        These are the pinned versions, and the versions that earlier queries have chosen and that
        are not yanked.
        """
        preferred = {fqn: set(versions) for fqn, versions in self.pins.table.items()}
        for fqn, choices in self._planned.choices.items():
            unyanked = (version for version, c in choices.items() if not c.release.yanked)
            preferred.setdefault(fqn, set()).update(unyanked)
        return preferred

    def _substitute(
        self, fqn: str, spec: VersionSpec, available: Collection[Version]
    ) -> Version | None:
        """Return the version to load instead of a missing one; None if no version fits.

        A pinned version is preferred, then a chosen one, then the newest.

        :param spec: the missing version, as a range.
        :param available: the versions of the package in the catalogues.
        """
        # A pinned version may also be missing.
        preferred = (self.pins.table.get(fqn, ()), self._planned.choices.get(fqn, ()))
        groups = [*(resolver.newest_first(set(available) & set(p)) for p in preferred), available]
        found = (s.select(versions) for s in spec.with_fallbacks()[1:] for versions in groups)
        return next((version for version in found if version is not None), None)

    def _load(self, choice: Choice, requirement: str, reason: str) -> Package:
        release = choice.release
        loaded = self._loaded.get(release.fqn, {}).get(release.version)
        if loaded is not None:
            return loaded
        title = f"{release} of {choice.catalog.name}"
        with self._measured(f"{title} cannot be loaded"):
            source = self._fetcher.source(choice)
            package = self.package_types.load(source)
            found = resolver.PackageVersion(package.full_name, package.version)
            if found != release.key:
                raise errors.CatalogError(f"its archive contains {found}")
            requirements = _requirements(package)
            choice.catalog.check(
                release,
                lambda: dataclasses.replace(
                    release, requirements=requirements, classes=frozenset(package.classes)
                ),
            )
            self._check_no_plugin(package)
            self._check_owner(release, package)
        LOG.info("Package %s was chosen for %s, %s", title, requirement, reason)
        if release.yanked:
            LOG.warning("Package %s is used, but was yanked: %s", title, shown(release.yanked))
        with self._changes:
            # Another thread may have loaded the version meanwhile. Then its object is kept.
            self._releases.setdefault(release.key, release)
            self._sources.setdefault(release.key, source)
            self._requirements.setdefault(release.key, requirements)
            versions = {release.version: package, **self._loaded.get(release.fqn, {})}
            self._loaded = {**self._loaded, release.fqn: versions}
            self.pins.use(release.fqn, release.version, bool(release.yanked))
        self._record([choice])
        return versions[release.version]

    def _check_no_plugin(self, package: Package) -> None:
        """Check that a package cannot be taken for an extension plug-in.

        :raises NameOfPlugin: if its name, or the name of one of its classes, belongs to a plug-in.
        """
        name = package.full_name
        for version in sorted(self._provided.get(name, ())):
            raise errors.NameOfPlugin(f"it has the name of the extension plug-in {name} {version}")
        for class_name in sorted(self._provided_classes.keys() & set(package.classes)):
            plugin = self._provided_classes[class_name]
            raise errors.NameOfPlugin(
                f"it defines the class {class_name} of the extension plug-in {plugin}"
            )

    def _check_owner(self, release: Release, package: Package) -> None:
        """Check that a package's project may use the names of the package and of its classes.

        :raises CatalogError: if a name is reserved for other projects; the message has the prefix
            and its owners.
        """
        if objection := self._eligibility.find_objection(release):
            raise errors.CatalogError(f"it must not be used: {objection}")
        for name in sorted(package.classes):
            if not self._eligibility.allows_class(name, release):
                raise errors.CatalogError(
                    f"it defines class {name}, whose name is under "
                    f"{self._eligibility.reserved.find(name)}, and belongs to project "
                    f"{release.owner}; use another version of the package"
                )

    @contextlib.contextmanager
    def _measured(self, failure: str) -> Iterator[None]:
        """Count the time of the ``with`` block, and put ``failure`` in front of its error messages.

        :param failure: what has failed, such as ``the pinned versions cannot be found``.
        """
        start = time.monotonic()
        try:
            yield
        except (InvalidPackage, errors.LoaderError, Unplannable) as error:
            error.args = (f"{failure}: {error}",)
            raise
        finally:
            self._seconds += time.monotonic() - start

    def _log_versions(self, fqn: str, new: Collection[Version]) -> None:
        """Log which versions of a package are used, if there are several.

        For each version that the last query has added, also log why no newer one was chosen. Only
        the newest versions are logged.

        :param new: the versions that the last query has added.
        """
        if not LOG.isEnabledFor(logging.INFO):
            return
        versions = self._planned.choices[fqn]
        if len(versions) > 1:
            message = "No single version of %s satisfies all requirements: %s is used for %s"
            for version in resolver.newest_first(versions)[:_MAX_VERSIONS]:
                chains = self._planned.chains(versions[version].demands, _MAX_CHAIN)
                LOG.info(message, fqn, version, chains)
        if len(versions) > _MAX_VERSIONS:
            LOG.info("%s more versions of %s are used", len(versions) - _MAX_VERSIONS, fqn)
        for version in resolver.newest_first(new)[:_MAX_VERSIONS]:
            if explanation := resolution.explain(versions[version]):
                LOG.info("%s %s is used, not a newer version: %s", fqn, version, explanation)

    def _log_unpinned(self, release: Release, class_name: str, spec: VersionSpec) -> None:
        """Log a warning if a class comes from another version of its package than the pinned one.

        :param release: the release that defines the class.
        :param spec: the range in the header of an object.
        """
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
    # Imported here, since a program that passes its own catalogues needs no HTTP.
    from keystoneauth1.session import Session

    from loader.catalogs.glare import GlareCatalog

    if session is None:
        raise ValueError(
            "a package loader needs catalogues, or a session for Glare; from_cloud() makes one for "
            "a cloud of clouds.yaml"
        )
    if not isinstance(session, Session):
        raise TypeError(f"{session!r} is not a keystoneauth session")
    return GlareCatalog(session, project_id=project_id)


def _identity(package: Package | resolver.PackageVersion) -> resolver.PackageVersion:
    """Return the name and the version of a package.

    :raises TypeError: if the argument is not a package.
    """
    if isinstance(package, resolver.PackageVersion):
        return package
    try:
        return resolver.PackageVersion(package.full_name, package.version)
    except AttributeError as error:
        raise TypeError(f"{package!r} is not a package; pass what load() has returned") from error


def _requirements(package: Package) -> resolver.Requirements:
    """Return the requirements of a package, including the implicit ones."""
    written = {
        fqn: VersionSpec.of(None if range is None else str(range))
        for fqn, range in package.requirements.items()
    }
    return add_implicit(written, package.full_name, package.version)


def _log_substitute(spec: VersionSpec, release: Release | resolver.PackageVersion) -> None:
    if not spec.match(release.version):
        message = "%s is used instead of the version %s, which no catalogue has"
        LOG.warning(message, release, spec)
