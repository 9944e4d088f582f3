# SPDX-License-Identifier: Apache-2.0

"""A package with a known archive and known files, for caches."""

import hashlib
import pathlib
from collections.abc import Collection, Iterator, Mapping
from typing import Self

from loader import Cache
from tests import packages


class Stored:
    """One package.

    :ivar files: by their paths.
    :ivar data: the archive.
    :ivar digest: its SHA-256.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files
        self.data = packages.zipped(files)
        self.digest = hashlib.sha256(self.data).hexdigest()

    @classmethod
    def named(cls, name: str, resources: int = 0) -> Self:
        """Return a package with one class and a number of other files."""
        files = packages.content(name)
        files.update({f"Resources/{number}": b"%d" % number * 100 for number in range(resources)})
        return cls(files)

    def take(self, cache: Cache) -> pathlib.Path:
        """Return the package's directory in a cache."""
        return cache.package(self.digest, self.fetch)

    def take_archive(self, cache: Cache) -> pathlib.Path:
        """Return the package's archive in a cache."""
        return cache.archive(self.digest, self.fetch)

    def fetch(self) -> Iterator[bytes]:
        """Yield the archive in pieces."""
        size = len(self.data) // 10 + 1
        for start in range(0, len(self.data), size):
            yield self.data[start : start + size]

    @staticmethod
    def store(cache: Cache, *some: "Stored") -> set[str]:
        """Store packages together, and return the digests that were requested."""
        by_digest = {stored.digest: stored.data for stored in some}
        requested: set[str] = set()

        def fetch(digests: Collection[str]) -> Iterator[tuple[str, bytes]]:
            requested.update(digests)
            yield from ((digest, by_digest[digest]) for digest in digests)

        cache.store(by_digest, fetch)
        return requested

    def nothing(self) -> Iterator[bytes]:
        """Fail, since the archive must not be fetched."""
        raise AssertionError("it is fetched, although it is there")

    def is_in(self, folder: pathlib.Path) -> bool:
        """Return whether a directory has these files and no others."""
        there = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if not path.is_dir()
        }
        return there == self.files

    def write(self, folder: pathlib.Path) -> pathlib.Path:
        """Write the files below a folder, and return it."""
        return packages.write(folder, self.files)
