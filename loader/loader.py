# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The one door for engines: a requirement goes in, a package comes out.

It decides which release answers a requirement, and has it fetched. Where
releases are found is the catalogues' affair, where they are kept the cache's,
what they hold the formats'.
"""

import logging
import time
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence

from glare_murano.package import InvalidPackage
from glare_murano.package import Version
from glare_murano.package import VersionSpec
from glare_murano.package.manifest import check_full_name
from glare_murano.package.manifest import check_required_name
from loader import errors
from loader.cache import Cache
from loader.catalogs.base import Catalog
from loader.catalogs.base import Release
from loader.counters import Counters
from loader.formats.base import Package
from loader.formats.registry import PackageTypes
from loader.pins import Pins

LOG = logging.getLogger(__name__)

_SHOWN_VERSIONS = 20


class PackageLoader:
    """Loads packages for one deployment.

    :ivar pins: what the environment was deployed with; set it before the
        first package is loaded.
    """

    def __init__(
        self,
        catalogs: Sequence[Catalog],
        cache: Cache,
        pins: Pins | None = None,
        package_types: PackageTypes | None = None,
    ) -> None:
        """Make a loader.

        :param catalogs: where to look, in this order; the first one that has
            a package in the range answers.
        :param package_types: which package types may be used; by default all
            that are installed.
        """
        self._catalogs = tuple(catalogs)
        self._cache = cache
        self._package_types = package_types or PackageTypes()
        self.pins = pins or Pins()
        self._loaded: dict[str, dict[Version, Package]] = {}
        self._seconds = 0.0

    def load_package(self, fqn: str, spec: VersionSpec, required_by: str | None = None) -> Package:
        """Load a package: a pinned version in the range, one already loaded, or the newest.

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
        asked = f"package {fqn} in the range {spec}"
        if required_by:
            asked += f", required by {required_by}"
        package = self._find(asked, lambda catalog: catalog.newest(fqn, wanted))
        if package is None:
            raise errors.NoSuchPackage(
                fqn, spec, self._versions(fqn), self._catalog_names(), required_by, pinned
            )
        LOG.info(
            "Package %s %s was chosen for the range %s%s%s",
            fqn,
            package.version,
            spec,
            f" of {required_by}" if required_by else "",
            ", as pinned" if pinned is not None else "",
        )
        return package

    def load_object_package(self, fqn: str, spec: VersionSpec) -> Package:
        """Load a package for an object whose header names it.

        One version that the catalogues lack gives way to the newest of the
        same minor version, else of the same major version (specification
        "Murano versioning", section "Object version").

        :raises NoSuchPackage: if there is none of these either.
        :raises LoaderError: if it cannot be fetched.
        :raises InvalidPackage: if it is not what a package must be.
        """
        return self._first(spec, lambda wanted: self.load_package(fqn, wanted))

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
        return self._first(spec, lambda wanted: self._load_defining(class_name, wanted))

    def _first(self, spec: VersionSpec, load: Callable[[VersionSpec], Package]) -> Package:
        """Load by the first of a header's ranges that holds a package."""
        missing: list[errors.NotFound] = []
        for wanted in spec.with_fallbacks():
            try:
                package = load(wanted)
            except errors.NotFound as error:
                missing.append(error)
                continue
            if missing:
                LOG.warning(
                    "%s %s is used in the place of %s, which no catalogue has",
                    package.full_name,
                    package.version,
                    spec,
                )
            return package
        raise missing[0]

    def _load_defining(self, class_name: str, spec: VersionSpec) -> Package:
        defining = {
            version: package
            for versions in self._loaded.values()
            for version, package in versions.items()
            if class_name in package.classes
        }
        loaded = spec.select(defining)
        if loaded is not None:
            return defining[loaded]
        asked = f"a package in the range {spec} that defines class {class_name}"
        package = self._find(asked, lambda catalog: catalog.newest_defining(class_name, spec))
        if package is None:
            raise errors.NoSuchClass(
                class_name, spec, self._defining(class_name), self._catalog_names()
            )
        LOG.info(
            "Package %s %s was chosen for class %s in the range %s",
            package.full_name,
            package.version,
            class_name,
            spec,
        )
        return package

    @property
    def counters(self) -> Counters:
        """What loading has cost so far."""
        total = Counters(seconds=self._seconds)
        for part in (self._cache.counters, *(catalog.counters for catalog in self._catalogs)):
            total.add(part)
        return total

    def _find(self, asked: str, ask: Callable[[Catalog], Release | None]) -> Package | None:
        start = time.monotonic()
        try:
            for catalog in self._catalogs:
                release = ask(catalog)
                if release is not None:
                    return self._load(catalog, release)
            return None
        except errors.CatalogError as error:
            error.args = (f"{asked} cannot be found: {error}",)
            raise
        finally:
            self._seconds += time.monotonic() - start

    def _load(self, catalog: Catalog, release: Release) -> Package:
        try:
            folder = release.folder or self._cache.package(
                release.digest, lambda: catalog.fetch(release)
            )
            package = self._package_types.load(folder)
        except (InvalidPackage, errors.DigestMismatch, errors.CacheError) as error:
            error.args = (f"{release} of {catalog.name} cannot be loaded: {error}",)
            raise
        self._loaded.setdefault(release.fqn, {})[release.version] = package
        self.pins.use(release.fqn, release.version)
        return package

    def _versions(self, fqn: str) -> list[Version]:
        found = {r.version for catalog in self._catalogs for r in _some(catalog.releases(fqn))}
        return sorted(found, key=lambda version: version.precedence_key, reverse=True)

    def _defining(self, class_name: str) -> list[str]:
        return [
            str(release)
            for catalog in self._catalogs
            for release in _some(catalog.releases_defining(class_name))
        ]

    def _catalog_names(self) -> list[str]:
        return [catalog.name for catalog in self._catalogs] or ["no catalogue at all"]


def _some(releases: Iterable[Release]) -> Iterable[Release]:
    return (release for release, _ in zip(releases, range(_SHOWN_VERSIONS), strict=False))
