# SPDX-License-Identifier: Apache-2.0

"""The files of an archive by name and size, and the rules that they must keep.

An archive's directory is hostile until it has passed these rules; they are
checked before any content is read.
"""

import dataclasses
import os
import unicodedata
from collections.abc import Iterable, Sequence

from glare_murano.package import errors
from glare_murano.package.rules import Rule


@dataclasses.dataclass(frozen=True)
class Limits:
    """What an archive may take up at the most.

    :param archive_size: of the archive itself, in bytes.
    :param unpacked_size: of all its files together, in bytes.
    :param entries: files and folders.
    :param ratio: bytes unpacked for one byte packed; it counts from 1 MiB on.
    :param path_length: of one file's path, in characters.
    :param path_depth: of one file's path, in folders.
    """

    archive_size: int = 100 * 1024**2
    unpacked_size: int = 512 * 1024**2
    entries: int = 10_000
    ratio: int = 200
    path_length: int = 255
    path_depth: int = 32


DEFAULT_LIMITS = Limits()

# What file systems take.
_MAX_PART = 255


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One file.

    :param path: with slashes, relative to the top of the package.
    :param size: in bytes, as declared.
    :param executable: whether its owner may run it.
    """

    path: str
    size: int
    executable: bool


def check_size(size: int, limits: Limits) -> None:
    """Check the size of an archive itself, in bytes.

    :raises InvalidArchive: if it is too large.
    """
    if size > limits.archive_size:
        raise refusal(
            Rule.ARCHIVE_SIZE, "archive", f"{size} bytes, at most {limits.archive_size} are allowed"
        )


def check_entries(
    files: Sequence[Entry], folders: Sequence[str], archive_size: int, limits: Limits
) -> None:
    """Check all files and folders of an archive.

    :param folders: paths of those folders that have entries of their own.
    :param archive_size: of the archive itself, in bytes.
    :raises InvalidArchive: naming the file and the rule.
    """
    count = len(files) + len(folders)
    if count > limits.entries:
        raise refusal(
            Rule.ARCHIVE_ENTRIES,
            "archive",
            f"{count} entries, at most {limits.entries} are allowed",
        )
    _check_totals(sum(entry.size for entry in files), archive_size, limits)
    for path in (*folders, *(entry.path for entry in files)):
        _check_path(path, limits)
    _check_collisions([entry.path for entry in files], folders)


def refusal(rule: Rule, where: str, message: str) -> errors.InvalidArchive:
    """The error for one broken rule."""
    return errors.InvalidArchive([errors.Problem(rule, where, message)])


def _check_totals(total: int, archive_size: int, limits: Limits) -> None:
    if total > limits.unpacked_size:
        raise refusal(
            Rule.UNPACKED_SIZE,
            "archive",
            f"{total} bytes unpacked, at most {limits.unpacked_size} are allowed",
        )
    if total > 1024**2 and total > archive_size * limits.ratio:
        raise refusal(
            Rule.ARCHIVE_RATIO,
            "archive",
            f"unpacks to {total} bytes from {archive_size}, at most {limits.ratio} times as many "
            f"are allowed",
        )


def _check_path(path: str, limits: Limits) -> None:
    parts = path.split("/")
    if len(path) > limits.path_length:
        raise refusal(Rule.PATH_LENGTH, path, f"longer than {limits.path_length} characters")
    if any(len(os.fsencode(part)) > _MAX_PART for part in parts):
        raise refusal(Rule.PATH_LENGTH, path, f"a name of more than {_MAX_PART} bytes")
    if len(parts) - 1 > limits.path_depth:
        raise refusal(Rule.PATH_DEPTH, path, f"deeper than {limits.path_depth} folders")
    if not path.isprintable():
        raise refusal(Rule.PATH_CHARACTERS, path, "control characters in a path")
    if "\\" in path or ":" in path:
        raise refusal(Rule.PATH_CHARACTERS, path, "a backslash or a colon in a path")
    if "" in parts or "." in parts or ".." in parts:
        raise refusal(Rule.PATH_ESCAPE, path, "is absolute or leaves the folder")


def _check_collisions(files: Iterable[str], folders: Iterable[str]) -> None:
    """Refuse two paths that one file system or another takes for the same."""
    seen: dict[str, str] = {}
    for path in files:
        folded = _folded(path)
        if folded in seen:
            raise refusal(Rule.PATH_COLLISION, path, f"collides with {seen[folded]}")
        seen[folded] = path
    parents: dict[str, str] = {}
    for folder in dict.fromkeys((*folders, *(path.rpartition("/")[0] for path in seen.values()))):
        path = folder
        while path and parents.get(_folded(path)) != path:
            twin = parents.setdefault(_folded(path), path)
            if twin != path:
                raise refusal(Rule.PATH_COLLISION, path, f"collides with {twin}")
            if _folded(path) in seen:
                raise refusal(Rule.PATH_COLLISION, path, "is both a file and a folder")
            path = path.rpartition("/")[0]


def _folded(path: str) -> str:
    # Once more, since folding takes letters apart that were composed.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
