# SPDX-License-Identifier: Apache-2.0

"""Writing files so that they are there as a whole or not at all, also where the power is cut."""

import errno
import os
import pathlib
import shutil
import uuid
from collections.abc import Iterable

# What a file takes up at least, on about every file system.
_BLOCK = 4096
# What says nothing of a file: too many are open, memory or the server is short.
_PASSING = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ETIMEDOUT)


def replace(path: pathlib.Path, data: bytes) -> None:
    """Put a new file in the place of what is there.

    :raises OSError: if that fails; what was there is there still.
    """
    new = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with new.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def remove(path: pathlib.Path) -> None:
    """Remove whatever is there, be it a file or a folder.

    :raises OSError: if that fails.
    """
    try:
        path.unlink(missing_ok=True)
    except IsADirectoryError:
        shutil.rmtree(path)


def begin_to_sync(paths: "Iterable[str | os.PathLike[str]]") -> None:
    """Have the disk begin with files, before each is synced.

    A file system with a journal writes it for the first file that is synced
    then, and has done so for the others. It would do so for each, if each got
    its place on the disk when it is synced.

    :raises OSError: if one cannot be read.
    """
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        try:
            # What is not written yet is not dropped by it, but Linux begins to write it.
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def sync_file(path: "str | os.PathLike[str]") -> None:
    """Write what a file holds out to the disk.

    :raises OSError: if that fails.
    """
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def sync_folder(path: "str | os.PathLike[str]") -> int:
    """Write the names in a folder out to the disk, and tell when they were changed.

    :return: in nanoseconds, as the kernel keeps it.
    :raises OSError: if that fails.
    """
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
        return os.fstat(folder).st_ctime_ns
    finally:
        os.close(folder)


def is_passing(error: OSError) -> bool:
    """Whether a file that could not be read may be sound all the same."""
    return error.errno in _PASSING


def size_on_disk(size: int) -> int:
    """What a file of a size takes up, in bytes."""
    return -(-size // _BLOCK) * _BLOCK


def private(path: str, flags: int) -> int:
    """Open a file that nobody else may read, if it is a new one; an opener for ``open``."""
    return os.open(path, flags, 0o600)
