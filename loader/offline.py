# SPDX-License-Identifier: Apache-2.0

"""What was resolved before, for when no catalogue answers.

Each release that was chosen for a project is remembered below the cache's
folder, once its archive lies in the cache. Only where the operator has opted in
is it asked for: it may be out of date, and what it answers changes no pin.
"""

import contextlib
import dataclasses
import hashlib
import json
import logging
import pathlib
from collections.abc import Iterable, Iterator, Sequence

from glare_murano import wire
from glare_murano.wire import Query, Release
from loader import errors, fs
from loader.cache.store import Cache
from loader.catalogs.base import Catalog, newest_first
from loader.resolution import Choice, Resolution, by_level, resolve

LOG = logging.getLogger(__name__)

_DAMAGED = (ValueError, RecursionError)


class Memory(Catalog):
    """What catalogues have answered for one project.

    :ivar has_stood_in: whether it has answered for a catalogue that did not.
    """

    def __init__(self, catalogs: Sequence[Catalog], cache: Cache, project_id: str | None) -> None:
        """Make a memory; nothing is read yet.

        :param project_id: whose answers are remembered; no other project is
            told of them. None only where the catalogues give what is public.
        """
        super().__init__("what was resolved before")
        self.has_stood_in = False
        # What did not answer in this deployment, and how it failed.
        self._silent: dict[object, str] = {}
        self._catalogs = tuple(catalogs)
        self._cache = cache
        scope = json.dumps([project_id, [catalog.name for catalog in catalogs]])
        self._folder = cache.folder / "resolved" / hashlib.sha256(scope.encode()).hexdigest()

    def ask(self, query: Query) -> Resolution:
        """Ask the catalogues, or, if one does not answer, what they said before.

        One that did not answer has been tried several times, with waits, and is
        asked again only for what is not remembered.

        :raises CatalogError: if one refuses, or does not answer, and what was
            asked for is not remembered.
        """
        resolved = self._stand_in(query) if self._silent else None
        if resolved is None:
            try:
                resolved = resolve(self._catalogs, query)
                self._silent.clear()
                return resolved
            except errors.NoAnswer as error:
                self._hear_nothing(error)
                resolved = self._stand_in(query)
                if resolved is None:
                    raise
        failures = "; ".join(self._silent.values())
        LOG.warning("%s; packages are taken from %s instead", failures, self.name)
        self.has_stood_in = True
        return resolved

    def _stand_in(self, query: Query) -> Resolution | None:
        """Plan from the catalogues that answer, such as folders, and from the memory.

        :returns: None if they lack what the query asks for itself.
        """
        while True:
            answering = [catalog for catalog in self._catalogs if catalog not in self._silent]
            try:
                resolved = by_level([*answering, self], query)
            except errors.NoAnswer as error:
                self._hear_nothing(error)
                continue
            lacks = resolved.undefined or any(
                missing.demand.requirer is None for missing in resolved.unsatisfied
            )
            # What is lacking deep down may be there: it is asked for when it is loaded.
            return None if lacks else dataclasses.replace(resolved, unsatisfied=())

    def _hear_nothing(self, error: errors.NoAnswer) -> None:
        """Note which catalogue does not answer; fail where it cannot be told."""
        if error.catalog not in self._catalogs:
            raise error
        # The last to fail is told last.
        self._silent.pop(error.catalog, None)
        self._silent[error.catalog] = str(error)

    def remember(self, choice: Choice) -> None:
        """Remember a release, if its archive is in the cache."""
        release = choice.release
        path = self._folder / f"{release.digest}.json"
        if choice.catalog is self or not self._cache.has(release.digest) or path.exists():
            return
        content = wire.release_to_json(dataclasses.replace(release, id=""))
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fs.replace(path, json.dumps(content).encode())
        except OSError as error:
            LOG.warning("%s is not remembered for when no catalogue answers: %s", release, error)

    def releases(self, fqn: str) -> list[Release]:
        """See the interface."""
        return newest_first(release for release in self._all() if release.fqn == fqn)

    def releases_defining(self, class_name: str) -> list[Release]:
        """See the interface."""
        return newest_first(release for release in self._all() if class_name in release.classes)

    def fetch(self, release: Release) -> Iterable[bytes]:
        """Not possible: only what is in the cache is found here."""
        raise errors.CatalogError(f"{release} is not in the cache any more")

    def _all(self) -> Iterator[Release]:
        for path in sorted(self._folder.glob("*.json")):
            if self._cache.has(path.stem):
                try:
                    yield _read(path)
                except (OSError, *_DAMAGED) as error:
                    LOG.warning("Left out what %s remembers: %s", path, error)
                    if isinstance(error, _DAMAGED):
                        # So that it is remembered anew.
                        with contextlib.suppress(OSError):
                            path.unlink(missing_ok=True)


def _read(path: pathlib.Path) -> Release:
    release = wire.release_from_json(json.loads(path.read_text()))
    return dataclasses.replace(release, id=path.stem, digest=path.stem)
