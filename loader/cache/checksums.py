# SPDX-License-Identifier: Apache-2.0

"""What was unpacked: the files of a package with their sizes and SHA-256 sums.

A record is made once, from the files as they went to the disk, and says later
whether they are still the same. It knows files; it does not know where they
came from, nor what happens to a package that is damaged.
"""

import dataclasses
import hashlib
import io
import json
import os
import pathlib
import stat
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from loader.fs import begin_to_sync, is_passing, private, size_on_disk, sync_folder


class _File(NamedTuple):
    """One file; a tuple, since a record has many, and one is read for each package.

    :param changed: when it was last changed, as the kernel keeps it; nobody
        can set it, so that a file which has it still was not written to since,
        but for the few milliseconds of one tick.
    """

    size: int
    changed: int
    sha256: str

    @classmethod
    def of(cls, size: Any, changed: Any, sha256: Any) -> Self:
        """What a record says of a file.

        :raises TypeError: if it is not to be used.
        """
        if type(size) is not int or size < 0 or type(changed) is not int:
            raise TypeError("a size or a time is none")
        return cls(size, changed, str(sha256))


@dataclasses.dataclass(frozen=True)
class Record:
    """The files of one package.

    :param files: by their paths, with slashes.
    :param folders: when each was last changed, by their paths with a slash at
        the end: what is put in a folder or taken out of it shows there.
    """

    files: Mapping[str, _File]
    folders: Mapping[str, int]

    @classmethod
    def seal(cls, root: pathlib.Path) -> Self:
        """Write a folder out to the disk, and make its record.

        :raises OSError: if that fails.
        """
        folders, found = _list(root)
        begin_to_sync([f"{root}/{path}" for path in found])
        files = {path: _sealed(f"{root}/{path}") for path in found}
        return cls(files, {path: sync_folder(f"{root}/{path}") for path in folders})

    @classmethod
    def load(cls, path: pathlib.Path) -> Self:
        """Read a record.

        :raises OSError: if it cannot be read.
        :raises ValueError: if it is none.
        """
        try:
            content = json.loads(path.read_bytes())
            files = {name: _File.of(*values) for name, values in content["files"].items()}
            folders = dict(content["folders"])
            if "" not in folders:
                raise TypeError("the folder itself is not in it")
            return cls(files, folders)
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"is no record: {error}") from error

    def save(self, path: pathlib.Path) -> None:
        """Write the record to a new file, and out to the disk.

        :raises OSError: if that fails.
        """
        content = {
            "files": dict(self.files),
            "folders": dict(self.folders),
        }
        with open(path, "xb", opener=private) as stream:
            stream.write(json.dumps(content).encode())
            stream.flush()
            os.fsync(stream.fileno())
        sync_folder(path.parent)

    @property
    def size(self) -> int:
        """What the files take up on a disk, in bytes."""
        return sum(size_on_disk(file.size) for file in self.files.values())

    def untouched(self, folder: pathlib.Path) -> bool:
        """Whether nobody has written to a folder since; neither is read for it.

        :raises OSError: if something is missing.
        """
        # Texts, not pathlib: it is done for every file of every package that is loaded.
        root = os.fspath(folder)
        for path, changed in self.folders.items():
            if os.lstat(f"{root}/{path}").st_ctime_ns != changed:
                return False
        for path, file in self.files.items():
            there = os.lstat(f"{root}/{path}")
            if there.st_ctime_ns != file.changed or there.st_size != file.size:
                return False
        return True

    def restamped(self, folder: pathlib.Path) -> Self:
        """The same record for a copy, whose files were changed at other times.

        Make it before ``differences`` reads the copy, so that what is changed
        meanwhile still shows.
        """
        folders, found = _list(folder)
        files = {
            path: file._replace(changed=found[path].st_ctime_ns) if path in found else file
            for path, file in self.files.items()
        }
        return type(self)(files, {path: (folder / path).stat().st_ctime_ns for path in folders})

    def differences(self, folder: pathlib.Path) -> list[str]:
        """What is not in a folder as it was, in words; all files are read for it.

        :raises OSError: if the folder cannot be listed, or a file not be read
            for a reason that may pass.
        """
        _, found = _list(folder)
        differences = [f"{path} was added" for path in found.keys() - self.files.keys()]
        for path, file in self.files.items():
            if path not in found:
                differences.append(f"{path} is missing")
                continue
            there = _found(folder / path, found[path])
            if there is None:
                differences.append(f"{path} cannot be read")
            elif there.sha256 != file.sha256:
                differences.append(f"{path} is not what was unpacked")
        return sorted(differences)


def _list(folder: pathlib.Path) -> tuple[list[str], dict[str, os.stat_result]]:
    """The folders, the innermost first, and the files below a folder."""
    folders: list[str] = []
    files: dict[str, os.stat_result] = {}

    def walk(below: str) -> None:
        with os.scandir(folder / below) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    walk(f"{below}{entry.name}/")
                else:
                    files[f"{below}{entry.name}"] = entry.stat(follow_symlinks=False)
        folders.append(below)

    walk("")
    return folders, files


def _sealed(path: str) -> _File:
    with open(path, "rb", buffering=0) as stream:
        os.fsync(stream.fileno())
        return _read(stream)


def _found(path: pathlib.Path, there: os.stat_result) -> _File | None:
    """A file, or nothing if there is none that can be read."""
    if not stat.S_ISREG(there.st_mode):
        return None
    try:
        with open(path, "rb", buffering=0) as stream:
            return _read(stream)
    except OSError as error:
        if is_passing(error):
            raise
        return None


def _read(stream: io.FileIO) -> _File:
    sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    there = os.fstat(stream.fileno())
    return _File(there.st_size, there.st_ctime_ns, sha256)
