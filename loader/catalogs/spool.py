# SPDX-License-Identifier: Apache-2.0
"""Archives that a catalogue has to download to know what they are.

What was downloaded for that is kept for who fetches it next, so that it is not
downloaded twice. It lies in files without a name, of which nothing is left
when the process ends.
"""

import hashlib
import tempfile
import threading
from collections.abc import Iterable, Iterator
from typing import IO

from glare_murano.package import Archive, Limits, read_contents
from glare_murano.package.archive_rules import DEFAULT_LIMITS, check_size
from glare_murano.wire import Release

# Archives kept open at once; of more, the oldest is dropped.
_MOST = 32
_CHUNK = 128 * 1024


def read(stream: IO[bytes], reference: str, limits: Limits = DEFAULT_LIMITS) -> Release:
    """The release that an open file holds, read to the end.

    :raises InvalidPackage: if it is no package.
    """
    with Archive.open(stream, limits) as archive:
        manifest = read_contents(archive).manifest
    stream.seek(0)
    digest = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
    return Release.from_manifest(manifest, reference, digest, stream.tell())


class Archives:
    """Archives that were downloaded and not fetched yet, by digest."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._files: dict[str, IO[bytes]] = {}
        self._lock = threading.Lock()

    def add(self, chunks: Iterable[bytes], reference: str) -> Release:
        """Download an archive, read it, and keep it.

        :raises InvalidPackage: if it is no package; it is not kept then.
        :raises OSError: if there is no room for it.
        """
        file = tempfile.TemporaryFile()  # noqa: SIM115 - it stays open until it is fetched
        try:
            size = 0
            for chunk in chunks:
                size += len(chunk)
                check_size(size, self._limits)
                file.write(chunk)
            file.flush()
            release = read(file, reference, self._limits)
        except BaseException:
            file.close()
            raise
        with self._lock:
            dropped = [self._files.pop(release.digest, None)]
            self._files[release.digest] = file
            if len(self._files) > _MOST:
                dropped.append(self._files.pop(next(iter(self._files))))
        for old in dropped:
            if old is not None:
                old.close()
        return release

    def take(self, digest: str) -> Iterator[bytes] | None:
        """Give an archive away, piece by piece; None if it is not kept."""
        with self._lock:
            file = self._files.pop(digest, None)
        return None if file is None else _chunks(file)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        file.seek(0)
        while chunk := file.read(_CHUNK):
            yield chunk
