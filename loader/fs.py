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

# Errors that are caused by the process or the server, not by the file.
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ETIMEDOUT)


def replace(path: pathlib.Path, data: bytes) -> None:
    """Replace or create a file; after a failure, the old file is unchanged.

    :raises FileExistsError: if the path is a directory, or a device.
    """
    with replaced(path) as file:
        file.write(data)


@contextlib.contextmanager
def replaced(path: pathlib.Path) -> Iterator[IO[bytes]]:
    """Replace or create a file with what the caller writes; after a failure, keep the old file.

    A symbolic link stays, and its target is replaced. The new file has the mode of the old one.

    :raises FileExistsError: if the path is a directory, or a device.
    """
    # Unlike pathlib's ``resolve``, this accepts circular links; the next call reports them.
    target = pathlib.Path(os.path.realpath(path))
    mode = _replaceable_mode(path)
    with _new_file(target, path) as (file, new):
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        yield file
        _complete(file)
        new.replace(target)


@contextlib.contextmanager
def created(path: pathlib.Path) -> Iterator[IO[bytes]]:
    """Create a file with what the caller writes; after a failure, there is no file.

    :raises FileExistsError: if the path exists.
    """
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    with _new_file(path, path) as (file, new):
        yield file
        _complete(file)
        try:
            # A rename could replace a file, but a link cannot.
            path.hardlink_to(new)
        except PermissionError:
            # Some file systems, such as that of a USB stick, have no links.
            new.rename(path)


def _replaceable_mode(path: pathlib.Path) -> int | None:
    """Return the mode of a file to replace; None if it is missing.

    :raises FileExistsError: if it is not a file, such as ``/dev/null``.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise FileExistsError(errno.EEXIST, "exists, and is not a file", str(path))
    return stat.S_IMODE(mode)


@contextlib.contextmanager
def _new_file(target: pathlib.Path, path: pathlib.Path) -> Iterator[tuple[IO[bytes], pathlib.Path]]:
    """Open a file beside another one, and remove it in the end; errors name the given path."""
    new = target.with_name(f".{target.name[:32]}.{uuid.uuid4().hex}")
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
    """Remove a file or a directory; the path and its parent need not exist."""
    try:
        path.unlink(missing_ok=True)
    except IsADirectoryError:
        shutil.rmtree(path)
    except NotADirectoryError:
        # A parent is a file, so the path does not exist.
        pass


def sync(path: str | pathlib.Path) -> None:
    """Wait until a file, or the list of names in a directory, is on the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def sync_files(paths: Collection[str | pathlib.Path]) -> None:
    """Wait until several files are on the disk.

    The function first starts to write all files, so a journaling file system commits its
    journal once. Otherwise, each sync would allocate blocks and commit again.
    """
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            # Linux does not drop pages that are not written yet: it starts to write them.
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    for path in paths:
        sync(path)


def is_temporary(error: OSError) -> bool:
    """Return whether a later attempt to read the same file may succeed."""
    return error.errno in _SHORTAGES


def size_on_disk(size: int) -> int:
    """Return how many bytes a file with this size occupies, in whole blocks of 4096 bytes."""
    return -(-size // 4096) * 4096


def private_opener(path: str, flags: int) -> int:
    """Open a file; create it with mode 0600. This is an ``opener`` for ``open``."""
    return os.open(path, flags, 0o600)
