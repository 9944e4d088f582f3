# SPDX-License-Identifier: Apache-2.0

"""Replace catalogues by an index on this host while they cannot be reached.

If a release was chosen for a project and its archive is in the cache, the release is recorded in
the cache's directory. Such a record may be out of date. So the index is used only if the operator
enables it, and a release from it changes no pins.
"""

import collections
import contextlib
import dataclasses
import hashlib
import json
import logging
import pathlib
from collections.abc import Iterable

from glare_murano import resolver, wire
from glare_murano.package.reserved_names import NO_RESERVED_NAMES, ReservedNames
from glare_murano.wire import Query, Release
from loader import errors, fs
from loader.cache.cache_directory import RESOLVED
from loader.cache.store import Cache
from loader.catalogs.base import Catalog, newest_first
from loader.resolution import Choice, Resolution, as_catalogs, by_level, resolve

LOG = logging.getLogger(__name__)

_DAMAGED = (ValueError, RecursionError)


class OfflineIndex(Catalog):
    """A catalogue of the releases that were recorded for one project.

    >>> catalogs, cache = [DirectoryCatalog("packages")], Cache("cache")
    >>> index = OfflineIndex(catalogs, cache, "my-project")
    >>> packages = PackageLoader(catalogs, cache, offline_index=index)

    :ivar was_used: whether the index has replaced a catalogue.
    """

    def __init__(
        self, catalogs: Catalog | Iterable[Catalog], cache: Cache, project_id: str | None
    ) -> None:
        """Make an index; no file is read.

        :param catalogs: the catalogues that the index can replace.
        :param project_id: the project; other projects do not see its records. It may be None only
            if the catalogues have only public packages.
        """
        super().__init__("the offline index")
        self.was_used = False
        self._catalogs = as_catalogs(catalogs)
        # The catalogues that this deployment could not reach, with their errors.
        self._unreachable: dict[object, str] = {}
        self._cache = cache
        scope = json.dumps([project_id, [catalog.name for catalog in self._catalogs]])
        self._directory = cache.folder / RESOLVED / hashlib.sha256(scope.encode()).hexdigest()
        # The records by digest, and by name. Each query replaces both mappings.
        self._recorded: dict[str, Release] = {}
        self._by_fqn: dict[str, list[Release]] = {}

    def query(
        self,
        query: Query,
        seconds: float = resolver.MAX_SECONDS,
        reserved: ReservedNames = NO_RESERVED_NAMES,
    ) -> Resolution:
        """Choose packages from the catalogues; the index replaces those that cannot be reached.

        A catalogue that could not be reached is queried again only when a package is missing in the
        index.

        :param seconds: the longest time to choose packages, in seconds.
        :param reserved: names that belong to projects. Releases of other projects with these names
            are not used, even if they are recorded.
        :raises CatalogError: if a catalogue refuses the query, or if a catalogue cannot be reached
            and the index lacks a package.
        """
        resolved = self._fallback(query, seconds, reserved) if self._unreachable else None
        if resolved is None:
            try:
                resolved = resolve(self._catalogs, query, seconds, reserved)
                self._unreachable.clear()
                return resolved
            except errors.CatalogUnavailable as error:
                self._add_unreachable(error)
                resolved = self._fallback(query, seconds, reserved)
                if resolved is None:
                    raise
        failures = "; ".join(self._unreachable.values())
        LOG.warning("%s; packages are taken from %s instead", failures, self.name)
        self.was_used = True
        return resolved

    def record(self, choice: Choice) -> None:
        """Record a release, if its archive is in the cache; a failure is only logged."""
        release = choice.release
        if choice.catalog is self or not self._cache.has(release.digest):
            return
        path = self._path(release.digest)
        content = wire.release_to_json(dataclasses.replace(release, id=""))
        data = json.dumps(content).encode()
        try:
            # If the data has changed, for example by a yank, the release is recorded again.
            if not path.exists() or path.read_bytes() != data:
                self._directory.mkdir(mode=0o700, exist_ok=True)
                fs.replace(path, data)
        except OSError as error:
            LOG.warning("Cannot record %s in %s: %s", release, self.name, error)

    def releases(self, fqn: str) -> list[Release]:
        return self._by_fqn.get(fqn, [])

    def releases_defining(self, class_name: str) -> list[Release]:
        return newest_first(r for r in self._recorded.values() if class_name in r.classes)

    def fetch(self, release: Release) -> Iterable[bytes]:
        raise errors.CatalogError(f"{release} is no longer in the cache")

    def _fallback(self, query: Query, seconds: float, reserved: ReservedNames) -> Resolution | None:
        """Choose packages from the catalogues that can be reached, and from the index.

        A missing package that another package requires is left out of the result: it is searched
        for again when it is loaded.

        :returns: None if a package or a class that the query itself names is missing.
        """
        self._read()
        while True:
            reachable = [catalog for catalog in self._catalogs if catalog not in self._unreachable]
            try:
                resolved = by_level([*reachable, self], query, seconds, reserved)
            except errors.CatalogUnavailable as error:
                self._add_unreachable(error)
                continue
            if resolved.undefined or any(m.demand.requirer is None for m in resolved.unsatisfied):
                return None
            # If a package that another package requires is missing, it is queried again when it is
            # loaded.
            return dataclasses.replace(resolved, unsatisfied=())

    def _add_unreachable(self, error: errors.CatalogUnavailable) -> None:
        if error.catalog not in self._catalogs:
            raise error
        # The latest error comes last in messages.
        self._unreachable.pop(error.catalog, None)
        self._unreachable[error.catalog] = str(error)

    def _read(self) -> None:
        """Read new records, and drop records whose archives are no longer in the cache."""
        digests = (path.stem for path in sorted(self._directory.glob("*.json")))
        found = {
            digest: self._recorded.get(digest) or self._release(digest)
            for digest in digests
            if self._cache.has(digest)
        }
        self._recorded = {digest: release for digest, release in found.items() if release}
        by_fqn: dict[str, list[Release]] = collections.defaultdict(list)
        for release in newest_first(self._recorded.values()):
            by_fqn[release.fqn].append(release)
        self._by_fqn = by_fqn

    def _release(self, digest: str) -> Release | None:
        path = self._path(digest)
        try:
            release = wire.release_from_json(json.loads(path.read_text()))
            return dataclasses.replace(release, id=digest, digest=digest)
        except (OSError, *_DAMAGED) as error:
            LOG.warning("Left out the damaged file %s of %s: %s", path, self.name, error)
            if isinstance(error, _DAMAGED):
                # After this, the release can be recorded again.
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
            return None

    def _path(self, digest: str) -> pathlib.Path:
        return self._directory / f"{digest}.json"
