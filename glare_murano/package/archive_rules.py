# SPDX-License-Identifier: Apache-2.0

"""Check the paths and the sizes of the files in an archive.

The checks come before any file is read, since an archive may be hostile.
"""

import dataclasses
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from glare_murano.package import errors
from glare_murano.package.rules import Rule


@dataclasses.dataclass(frozen=True)
class Limits:
    """The limits for an archive: the largest sizes and numbers that are allowed.

    :param archive_size: the size of the archive, in bytes.
    :param unpacked_size: the size of all files in the archive together, unpacked, in bytes.
    :param entries: the number of files and directories.
    :param ratio: the size of all files, divided by the size of the archive. The ratio is checked
        only if all files together have more than 1 MiB.
    :param path_length: the number of characters in the path of a file or directory.
    :param path_depth: the number of directories in the path of a file or directory.
    """

    archive_size: int = 100 * 1024**2
    unpacked_size: int = 512 * 1024**2
    entries: int = 10_000
    ratio: int = 200
    path_length: int = 255
    path_depth: int = 32


DEFAULT_LIMITS = Limits()

_VMS_VERSION = re.compile(r";[0-9]*\Z")
# The longest name of a file that common file systems allow, in bytes.
_MAX_NAME = 255


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A file in an archive.

    :param path: the path from the top of the package, with slashes.
    :param size: the declared size in bytes.
    :param executable: whether the owner of the file may execute it.
    """

    path: str
    size: int
    executable: bool


def refusal(rule: Rule, where: str, message: str) -> errors.InvalidArchive:
    """Return the error for an archive that breaks a rule.

    :param where: the path of the file; ``archive`` for the archive itself.
    :param message: what is wrong.
    """
    return errors.InvalidArchive([errors.Problem(rule, where, message)])


def check_size(size: int, limits: Limits, name: str = "archive") -> None:
    """Check that an archive is not too large.

    :param size: the size in bytes.
    :param name: the name of the archive, for the message.
    :raises InvalidArchive: if the archive is too large.
    """
    if size > limits.archive_size:
        message = f"{size} bytes, at most {limits.archive_size} are allowed"
        raise refusal(Rule.ARCHIVE_SIZE, name, message)


def limited(
    pieces: Iterable[bytes], limits: Limits = DEFAULT_LIMITS, name: str = "archive"
) -> Iterator[bytes]:
    """Yield the pieces of an archive, and check with each piece that the archive is not too large.

    :param pieces: the content of the archive, in pieces of any size.
    :param name: the name of the archive, for the message.
    :raises InvalidArchive: as soon as the archive is larger than the limit.
    """
    size = 0
    for piece in pieces:
        size += len(piece)
        check_size(size, limits, name)
        yield piece


def check_entries(
    files: Sequence[Entry], directories: Sequence[str], archive_size: int, limits: Limits
) -> None:
    """Check the number, the sizes and the paths of an archive's files and directories.

    :param files: the files of the archive.
    :param directories: the paths of the directories that have an entry in the archive.
    :param archive_size: the size of the archive, in bytes.
    :raises InvalidArchive: if a rule is broken. The message names the first broken rule and the
        path.
    """
    count = len(files) + len(directories)
    if count > limits.entries:
        message = f"{count} entries, at most {limits.entries} are allowed"
        raise refusal(Rule.ARCHIVE_ENTRIES, "archive", message)
    total = sum(entry.size for entry in files)
    if total > limits.unpacked_size:
        message = f"{total} bytes unpacked, at most {limits.unpacked_size} are allowed"
        raise refusal(Rule.UNPACKED_SIZE, "archive", message)
    if total > 1024**2 and total > archive_size * limits.ratio:
        message = (
            f"unpacks to {total} bytes from {archive_size}, "
            f"at most {limits.ratio} times as many are allowed"
        )
        raise refusal(Rule.ARCHIVE_RATIO, "archive", message)
    for path in (*directories, *(entry.path for entry in files)):
        _check_path(path, limits)
    _check_collisions([entry.path for entry in files], directories)


def _check_path(path: str, limits: Limits) -> None:
    parts = path.split("/")
    if len(path) > limits.path_length:
        raise refusal(Rule.PATH_LENGTH, path, f"longer than {limits.path_length} characters")
    if any(len(os.fsencode(part)) > _MAX_NAME for part in parts):
        raise refusal(Rule.PATH_LENGTH, path, f"a name longer than {_MAX_NAME} bytes")
    if len(parts) - 1 > limits.path_depth:
        raise refusal(Rule.PATH_DEPTH, path, f"deeper than {limits.path_depth} directories")
    if not path.isprintable():
        raise refusal(Rule.PATH_CHARACTERS, path, "contains control characters")
    if not unicodedata.is_normalized("NFC", path):
        composed = errors.quoted(unicodedata.normalize("NFC", path))
        message = f"is not in the Unicode form NFC, as {composed} is; rename it"
        raise refusal(Rule.PATH_ENCODING, path, message)
    if "\\" in path or ":" in path:
        raise refusal(Rule.PATH_CHARACTERS, path, "contains a backslash or a colon")
    if _VMS_VERSION.search(path):
        message = "ends like a version of VMS (';1'), which unzip removes"
        raise refusal(Rule.PATH_CHARACTERS, path, message)
    if "" in parts or "." in parts or ".." in parts:
        raise refusal(Rule.PATH_ESCAPE, path, "is absolute or leaves the package's directory")


def _check_collisions(files: Iterable[str], directories: Iterable[str]) -> None:
    """Check that no file system treats two paths of an archive as the same path.

    :raises InvalidArchive: if two files have the same path, if two paths differ only in case or in
        their Unicode normalization, or if a path is both a file and a directory.
    """
    seen: dict[str, str] = {}
    for path in files:
        folded = _folded(path)
        if folded in seen:
            raise refusal(Rule.PATH_COLLISION, path, f"collides with {seen[folded]}")
        seen[folded] = path
    parents: dict[str, str] = {}
    for directory in dict.fromkeys((*directories, *(p.rpartition("/")[0] for p in seen.values()))):
        path = directory
        while path and parents.get(_folded(path)) != path:
            twin = parents.setdefault(_folded(path), path)
            if twin != path:
                raise refusal(Rule.PATH_COLLISION, path, f"collides with {twin}")
            if _folded(path) in seen:
                raise refusal(Rule.PATH_COLLISION, path, "is both a file and a directory")
            path = path.rpartition("/")[0]


def _folded(path: str) -> str:
    # Case folding decomposes some letters, so the string is composed again.
    return unicodedata.normalize("NFC", path.casefold())
