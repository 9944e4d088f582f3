# SPDX-License-Identifier: Apache-2.0

"""Find the differences between the files of two packages."""

import difflib
from collections.abc import Iterator

from glare_murano.package import Archive

_MAX_TEXT = 1024**2


def diff(old: Archive, new: Archive, old_name: str, new_name: str) -> Iterator[str]:
    """Yield the lines of a unified diff of two packages, file by file in alphabetical order.

    :param old_name: the name of the old package in the headers of the diff.
    :param new_name: the name of the new package in the headers.
    :raises InvalidArchive: if a file is damaged.
    """
    for path in sorted({*old.paths, *new.paths}):
        before, after = (_read(archive, path) for archive in (old, new))
        if before == after:
            continue
        old_path = f"{old_name}/{path}" if before is not None else "/dev/null"
        new_path = f"{new_name}/{path}" if after is not None else "/dev/null"
        old_lines, new_lines = _lines(before), _lines(after)
        if old_lines is None or new_lines is None:
            yield f"Binary files {old_path} and {new_path} differ"
        else:
            yield from difflib.unified_diff(old_lines, new_lines, old_path, new_path, lineterm="")


def _read(archive: Archive, path: str) -> bytes | None:
    return archive.read(path, archive.size(path)) if path in archive.paths else None


def _lines(content: bytes | None) -> list[str] | None:
    """Return the lines of a file; None if its content is too long or not text."""
    if content is None:
        return []
    if len(content) > _MAX_TEXT or b"\0" in content:
        return None
    try:
        return content.decode().splitlines()
    except UnicodeDecodeError:
        return None
