# SPDX-License-Identifier: Apache-2.0

"""Durable file operations: after a power cut, a file is either complete or missing.

Every function raises ``OSError`` if its operation fails.
"""

import contextlib
import errno
import os
import pathlib
import shutil
import stat
import uuid
from collections.abc import Collection, Iterator
from typing import IO

# Shortages of the process or the server, which say nothing about the file.
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ETIMEDOUT)


def replace(path: pathlib.Path, data: bytes) -> None:
    """Replace or create a file; after a failure, an old file is unchanged.

    :raises FileExistsError: if the path is a directory, or a device.
    """
    with replaced(path) as file:
        file.write(data)


@contextlib.contextmanager
def replaced(path: pathlib.Path) -> Iterator[IO[bytes]]:
    """Replace or create a file by what is written inside; after a failure it is unchanged.

    :raises FileExistsError: if the path is a directory, or a device.
    """
    check_replaceable(path)
    with _new_file(path) as (file, new):
        yield file
        _complete(file)
        new.replace(path)


@contextlib.contextmanager
def created(path: pathlib.Path) -> Iterator[IO[bytes]]:
    """Create a file of what is written inside; after a failure it is missing.

    :raises FileExistsError: if the path exists.
    """
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    with _new_file(path) as (file, new):
        yield file
        _complete(file)
        try:
            # Unlike a renaming, a link does not replace a file.
            path.hardlink_to(new)
        except PermissionError:
            # A file system without links, such as that of a USB stick.
            new.rename(path)


def check_replaceable(path: pathlib.Path) -> None:
    """Refuse to replace what is not a file, such as ``/dev/null``.

    :raises FileExistsError: if the path is a directory, or a device.
    """
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):
            raise FileExistsError(errno.EEXIST, "exists, and is not a file", str(path))


@contextlib.contextmanager
def _new_file(path: pathlib.Path) -> Iterator[tuple[IO[bytes], pathlib.Path]]:
    """Open a file beside another one, and remove it in the end; errors name the other one."""
    new = path.with_name(f".{path.name[:32]}.{uuid.uuid4().hex}")
    try:
        with open(new, "xb") as file:
            yield file, new
    except OSError as error:
        if error.filename in (None, str(new)):
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        new.unlink(missing_ok=True)


def _complete(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


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
