# SPDX-License-Identifier: Apache-2.0

"""Archives that a catalogue has downloaded to read their metadata.

Each archive is kept until it is fetched, so that it is downloaded once. The files have no names,
so they disappear when the process ends.
"""

import contextlib
import hashlib
import tempfile
import threading
from collections.abc import Iterable, Iterator
from typing import IO

from glare_murano.package import Archive, read_contents
from glare_murano.wire import Release

# How many archives are kept at once.
_MAX_FILES = 32
_CHUNK = 128 * 1024


class Spool:
    """Archives that were downloaded and not fetched yet, by digest."""

    def __init__(self) -> None:
        self._files: dict[str, IO[bytes]] = {}
        self._lock = threading.Lock()

    def add(self, chunks: Iterable[bytes], release_id: str) -> Release:
        """Download an archive, read its metadata, and keep it.

        If too many archives are kept, the oldest is dropped.

        :raises InvalidPackage: if the archive is not valid; then it is not kept.
        :raises OSError: if the file cannot be written.
        """
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(tempfile.TemporaryFile())
            file.writelines(chunks)
            file.flush()
            release = read_release(file, release_id)
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
        """Remove an archive, and return its pieces; None if the archive is not kept."""
        with self._lock:
            file = self._files.pop(digest, None)
        return None if file is None else chunks(file)


def chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a file in pieces, and close it."""
    with file:
        file.seek(0)
        while chunk := file.read(_CHUNK):
            yield chunk


def read_release(stream: IO[bytes], release_id: str) -> Release:
    """Read the release in an open ZIP file.

    :raises InvalidPackage: if the archive is not valid.
    """
    with Archive.open(stream) as archive:
        contents = read_contents(archive)
    stream.seek(0)
    digest = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
    return Release.from_contents(contents, release_id, digest, stream.tell())
