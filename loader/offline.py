# SPDX-License-Identifier: Apache-2.0

"""The offline index, which replaces catalogues while they cannot be reached.

Each release chosen for a project is recorded in the cache's directory, once its
archive is in the cache. The operator has to enable the index, since its releases
may be outdated. They change no pins.
"""

import contextlib
import dataclasses
import hashlib
import json
import logging
from collections.abc import Iterable, Iterator

from glare_murano import wire
from glare_murano.wire import Query, Release
from loader import errors, fs
from loader.cache.store import Cache
from loader.catalogs.base import Catalog, newest_first
from loader.resolution import Choice, Resolution, as_catalogs, by_level, resolve

LOG = logging.getLogger(__name__)

_DAMAGED = (ValueError, RecursionError)


class OfflineIndex(Catalog):
    """The recorded releases of a cache, for one project.

    >>> catalogs, cache = [DirectoryCatalog("packages")], Cache("cache")
    >>> index = OfflineIndex(catalogs, cache, "my-project")
    >>> packages = PackageLoader(catalogs, cache, offline_index=index)

    :ivar was_used: whether the index has replaced a catalogue.
    """

    def __init__(
        self, catalogs: Catalog | Iterable[Catalog], cache: Cache, project_id: str | None
    ) -> None:
        """Make an index; no file is read.

        :param project_id: the project, whose releases no other project sees. None only
            for catalogues of public packages.
        """
        super().__init__("the offline index")
        self.was_used = False
        self._catalogs = as_catalogs(catalogs)
        # Unreachable catalogues in this deployment, with their errors.
        self._unreachable: dict[object, str] = {}
        self._cache = cache
        scope = json.dumps([project_id, [catalog.name for catalog in self._catalogs]])
        self._directory = cache.folder / "resolved" / hashlib.sha256(scope.encode()).hexdigest()

    def query(self, query: Query) -> Resolution:
        """Query the catalogues, with the index in place of unreachable ones.

        An unreachable catalogue, which has failed in all its attempts, is queried again
        only for packages missing in the index.

        :raises CatalogError: if a catalogue refuses the query, or is unreachable with a
            package missing in the index.
        """
        resolved = self._fallback(query) if self._unreachable else None
        if resolved is None:
            try:
                resolved = resolve(self._catalogs, query)
                self._unreachable.clear()
                return resolved
            except errors.CatalogUnavailable as error:
                self._add_unreachable(error)
                resolved = self._fallback(query)
                if resolved is None:
                    raise
        failures = "; ".join(self._unreachable.values())
        LOG.warning("%s; packages are taken from %s instead", failures, self.name)
        self.was_used = True
        return resolved

    def record(self, choice: Choice) -> None:
        """Record a release, if its archive is in the cache."""
        release = choice.release
        path = self._directory / f"{release.digest}.json"
        if choice.catalog is self or not self._cache.has(release.digest) or path.exists():
            return
        content = wire.release_to_json(dataclasses.replace(release, id=""))
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            fs.replace(path, json.dumps(content).encode())
        except OSError as error:
            LOG.warning("Cannot record %s in %s: %s", release, self.name, error)

    def releases(self, fqn: str) -> list[Release]:
        """Return the recorded releases of a package, the newest first."""
        return newest_first(release for release in self._recorded() if release.fqn == fqn)

    def releases_defining(self, class_name: str) -> list[Release]:
        """Return the recorded releases that define a class, the newest first."""
        return newest_first(r for r in self._recorded() if class_name in r.classes)

    def fetch(self, release: Release) -> Iterable[bytes]:
        """Raise ``CatalogError``: an archive missing in the cache cannot be fetched."""
        raise errors.CatalogError(f"{release} is no longer in the cache")

    def _fallback(self, query: Query) -> Resolution | None:
        """Choose from the reachable catalogues, such as directories, and from the index.

        :returns: None if they lack a root of the query.
        """
        while True:
            reachable = [catalog for catalog in self._catalogs if catalog not in self._unreachable]
            try:
                resolved = by_level([*reachable, self], query)
            except errors.CatalogUnavailable as error:
                self._add_unreachable(error)
                continue
            if resolved.undefined or any(m.demand.requirer is None for m in resolved.unsatisfied):
                return None
            # Packages missing below are queried again when they are loaded.
            return dataclasses.replace(resolved, unsatisfied=())

    def _add_unreachable(self, error: errors.CatalogUnavailable) -> None:
        if error.catalog not in self._catalogs:
            raise error
        # The latest error comes last in messages.
        self._unreachable.pop(error.catalog, None)
        self._unreachable[error.catalog] = str(error)

    def _recorded(self) -> Iterator[Release]:
        for path in sorted(self._directory.glob("*.json")):
            if self._cache.has(path.stem):
                try:
                    release = wire.release_from_json(json.loads(path.read_text()))
                    yield dataclasses.replace(release, id=path.stem, digest=path.stem)
                except (OSError, *_DAMAGED) as error:
                    LOG.warning("Left out the damaged file %s of %s: %s", path, self.name, error)
                    if isinstance(error, _DAMAGED):
                        # The release can then be recorded again.
                        with contextlib.suppress(OSError):
                            path.unlink(missing_ok=True)
