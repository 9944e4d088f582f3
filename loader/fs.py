# SPDX-License-Identifier: Apache-2.0

"""Write files durably: after a power cut, a file is either complete or missing.

Every function raises ``OSError`` if its operation fails.
"""

import contextlib
import errno
import hashlib
import os
import pathlib
import shutil
import stat
import uuid
from collections.abc import Iterator
from typing import IO

from loader import errors

# These errors are caused by the process or a file server, not by the file.
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ETIMEDOUT)


def make_directory(path: pathlib.Path) -> None:
    """Make a directory and its parents, unless it exists.

    :raises NotADirectory: if the path is a file.
    :raises OSError: if the directory cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise errors.NotADirectory(f"{path} is a file; name a directory") from error


def replace(path: pathlib.Path, data: bytes) -> None:
    """Replace the content of a file, or create the file; a failure changes no existing file.

    :raises FileExistsError: if the path is a directory or a device.
    """
    with replaced(path) as file:
        file.write(data)


@contextlib.contextmanager
def replaced(path: pathlib.Path) -> Iterator[IO[bytes]]:
    """Replace a file by what the ``with`` block writes, or create it.

    A failure does not change an existing file. If the path is a symbolic link, its target is
    replaced. The new file has the mode of the old one.

    :raises FileExistsError: if the path is a directory or a device.
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
    """Create a file with what the ``with`` block writes; a failed attempt leaves no new file.

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
    """Return the mode of the file that will be replaced; None if there is no file.

    :raises FileExistsError: if the path is not a regular file, such as ``/dev/null``.
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
    """Open a temporary file beside a target, and yield the file and its path.

    The temporary file is removed after the ``with`` block.

    :param path: the path to name in an error, instead of the temporary file.
    """
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
    """Remove a file or a directory, if it exists."""
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


def start_writing(file: int) -> None:
    """Begin to write an open file to the disk; ``sync`` waits for the end.

    Call this for all files before the first ``sync``. A journaling file system then commits its
    journal only once. Without this, each ``sync`` allocates blocks and commits the journal again.
    """
    # This advises Linux to drop the file's pages from memory. It has to write changed pages first,
    # so it starts to write them.
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


def digest(path: str | pathlib.Path) -> str:
    """Return the SHA-256 sum of a file, in hexadecimal."""
    with open(path, "rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_temporary(error: OSError) -> bool:
    """Return whether an error is due to a temporary shortage, such as too many open files.

    A later attempt to read the file may succeed.
    """
    return error.errno in _SHORTAGES


def size_on_disk(size: int) -> int:
    """Return how many bytes a file occupies on the disk, in whole blocks of 4096 bytes.

    :param size: the size of the file, in bytes.
    """
    return -(-size // 4096) * 4096


def private_opener(path: str, flags: int) -> int:
    """Open a file; create a missing file with mode 0600.

    This function is for the parameter ``opener`` of ``open``.
    """
    return os.open(path, flags, 0o600)


def link_or_copy(path: pathlib.Path, new: pathlib.Path) -> None:
    """Make a hard link to a file; copy the file if its file system allows no link.

    :param new: the path of the link or the copy, which must be missing.
    :raises OSError: if the file can neither be linked nor copied.
    """
    try:
        new.hardlink_to(path)
    except OSError:
        shutil.copy2(path, new)
