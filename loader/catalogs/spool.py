# SPDX-License-Identifier: Apache-2.0

"""Keep the archives that a catalogue has downloaded to read their metadata.

Each archive is kept until the loader fetches it, so that it is downloaded only once. The files have
no names on the disk, so they disappear when the process ends.
"""

import contextlib
import hashlib
import tempfile
import threading
from collections.abc import Iterable, Iterator
from typing import IO

from glare_murano.package import Archive, Limits, read_contents
from glare_murano.package.archive_rules import DEFAULT_LIMITS
from glare_murano.wire import Release

# How many archives are kept at once.
_MAX_FILES = 32
_CHUNK = 128 * 1024


class Spool:
    """The downloaded archives that the loader has not fetched yet."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._files: dict[str, IO[bytes]] = {}
        self._lock = threading.Lock()

    def add(self, chunks: Iterable[bytes], release_id: str) -> Release:
        """Download an archive, read its metadata, and keep the archive.

        If too many archives are kept, the oldest is dropped.

        :param chunks: the content of the archive.
        :param release_id: the id that the returned release gets.
        :raises InvalidPackage: if the archive is not valid; an invalid archive is not kept.
        :raises OSError: if the file cannot be written.
        """
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(tempfile.TemporaryFile())
            file.writelines(chunks)
            file.flush()
            release = read_release(file, release_id, self._limits)
            stack.pop_all()  # a valid archive stays open until it is fetched
        with self._lock:
            dropped = [self._files.pop(release.digest, None)]
            self._files[release.digest] = file
            if len(self._files) > _MAX_FILES:
                dropped.append(self._files.pop(next(iter(self._files))))
        for old in filter(None, dropped):
            old.close()
        return release

    def take(self, digest: str) -> Iterator[bytes] | None:
        """Remove an archive, and return its content in pieces; None if the archive is not kept."""
        with self._lock:
            file = self._files.pop(digest, None)
        return None if file is None else chunks(file)


def chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a file in pieces, and then close the file."""
    with file:
        file.seek(0)
        while chunk := file.read(_CHUNK):
            yield chunk


def read_release(stream: IO[bytes], release_id: str, limits: Limits = DEFAULT_LIMITS) -> Release:
    """Read the metadata in an open ZIP file, and return it as a release.

    :param release_id: the id that the release gets.
    :param limits: the limits for the archive.
    :raises InvalidPackage: if the archive is not valid.
    """
    with Archive.open(stream, limits) as archive:
        contents = read_contents(archive)
    stream.seek(0)
    digest = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
    return Release.from_contents(contents, release_id, digest, stream.tell())
