# SPDX-License-Identifier: Apache-2.0

"""Durable file operations: after a power cut, a file is either complete or missing.

Every function raises ``OSError`` if its operation fails.
"""

import errno
import os
import pathlib
import shutil
import uuid
from collections.abc import Collection

# Shortages of the process or the server, which say nothing about the file.
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ETIMEDOUT)


def replace(path: pathlib.Path, data: bytes) -> None:
    """Replace or create a file; after a failure, an old file is unchanged."""
    new = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        new.write_bytes(data)
        sync(new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def remove(path: pathlib.Path) -> None:
    """Remove a file or a directory; neither has to exist, nor has its parent directory."""
    try:
        path.unlink(missing_ok=True)
    except IsADirectoryError:
        shutil.rmtree(path)
    except NotADirectoryError:
        # A parent is a file, so the path does not exist.
        pass


def sync(path: str | pathlib.Path) -> None:
    """Wait until a file, or the list of a directory's names, is on the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def sync_files(paths: Collection[str | pathlib.Path]) -> None:
    """Wait until several files are on the disk.

    Writing starts for all files first. A journaling file system then commits its
    journal once. Otherwise, each sync would allocate blocks and commit again.
    """
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            # Linux does not drop unwritten pages, but starts to write them.
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    for path in paths:
        sync(path)


def is_temporary(error: OSError) -> bool:
    """Return whether a later attempt to read the same file may succeed."""
    return error.errno in _SHORTAGES


def size_on_disk(size: int) -> int:
    """Return how many bytes a file of a given size occupies, in whole blocks of 4096 bytes."""
    return -(-size // 4096) * 4096


def private_opener(path: str, flags: int) -> int:
    """Create files with mode 0600; an ``opener`` for ``open``."""
    return os.open(path, flags, 0o600)
