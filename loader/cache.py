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

"""The shared package store on disk: archives, fetched once and unpacked once.

A package lies in a folder named by the SHA-256 of its archive, so its content
never changes and any number of processes can use it. It appears there by one
rename, after its digest has been checked; whatever has another name is not a
package. The store knows digests, not names or versions.
"""

import contextlib
import hashlib
import os
import pathlib
import re
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

import fasteners

from glare_murano.package import Archive
from glare_murano.package import Limits
from glare_murano.package.entries import DEFAULT_LIMITS
from glare_murano.package.entries import check_size
from loader import errors
from loader.counters import Counters

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


class Cache:
    """A folder of unpacked packages.

    :ivar counters: downloads and hits.
    """

    def __init__(self, folder: "str | os.PathLike[str]", limits: Limits = DEFAULT_LIMITS) -> None:
        """Use a folder, and make it if it is missing.

        :param limits: what an archive may take up.
        :raises CacheError: if the folder cannot be used.
        """
        self.folder = pathlib.Path(folder).absolute()
        self.counters = Counters()
        self._limits = limits
        self._packages = self.folder / "packages"
        self._locks = self.folder / "locks"
        try:
            for path in (self._packages, self._locks):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise errors.CacheError(f"cannot use {self.folder} as a cache: {error}") from error

    def package(self, digest: str, fetch: Callable[[], Iterable[bytes]]) -> pathlib.Path:
        """The folder of a package, which is fetched if it is not there yet.

        However many threads and processes ask at once, one fetches.

        :param digest: the SHA-256 of the archive, in lower-case hexadecimal.
        :param fetch: gives the archive, piece by piece.
        :raises DigestMismatch: if something else arrives.
        :raises InvalidArchive: if it breaks a rule of safety.
        :raises CacheError: if it cannot be stored.
        """
        if not _DIGEST.match(digest):
            raise errors.DigestMismatch(f"{digest!r} is no SHA-256 digest")
        path = self._packages / digest
        if not path.is_dir():
            with _exclusive(self._locks / digest):
                if not path.is_dir():
                    self._store(path, digest, fetch)
                    return path
        self.counters.count(hits=1)
        return path

    def has(self, digest: str) -> bool:
        """Whether a package is there already."""
        return bool(_DIGEST.match(digest)) and (self._packages / digest).is_dir()

    def _store(self, path: pathlib.Path, digest: str, fetch: Callable[[], Iterable[bytes]]) -> None:
        try:
            with tempfile.TemporaryFile(dir=self.folder) as archive:
                found = hashlib.sha256()
                size = 0
                for chunk in fetch():
                    size += len(chunk)
                    check_size(size, self._limits)
                    found.update(chunk)
                    archive.write(chunk)
                if found.hexdigest() != digest:
                    raise errors.DigestMismatch(
                        f"an archive with SHA-256 {digest} was expected, but "
                        f"{found.hexdigest()} arrived; nothing of it was kept"
                    )
                archive.seek(0)
                with Archive.open(archive, self._limits) as package:
                    package.unpack(path)
        except OSError as error:
            raise errors.CacheError(f"cannot store a package in {self.folder}: {error}") from error
        self.counters.count(downloads=1)


_thread_locks: "weakref.WeakValueDictionary[pathlib.Path, _ThreadLock]" = (
    weakref.WeakValueDictionary()
)
_thread_locks_guard = threading.Lock()


class _ThreadLock:
    """A lock that a weak reference can be held to."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


@contextlib.contextmanager
def _exclusive(path: pathlib.Path) -> Iterator[None]:
    """Hold a lock against the other threads and the other processes.

    A lock on a file is the process's, not the thread's, so it takes both.
    """
    with _thread_locks_guard:
        ours = _thread_locks.setdefault(path, _ThreadLock())
    with ours.lock:
        between = fasteners.InterProcessLock(path, sleep_func=_sleep)
        try:
            between.acquire()
        except OSError as error:
            raise errors.CacheError(f"cannot lock {path}: {error}") from error
        try:
            yield
        finally:
            between.release()


def _sleep(seconds: float) -> None:
    # Looked up at each call: an engine may have made time.sleep cooperative
    # after fasteners was imported.
    time.sleep(seconds)
