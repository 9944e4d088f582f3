# SPDX-License-Identifier: Apache-2.0

"""Records of stored files, to check them: their sizes, times of change and SHA-256 sums.

Archives and unpacked packages have records in the same form, in JSON; the record
of an archive lists a single file and no directory::

    {"files": {PATH: [SIZE, CHANGED, SHA256], ...}, "directories": {PATH: CHANGED, ...},
     "boots": [BOOT, ...]}

Paths are relative and have slashes; the root directory itself is ``""``. CHANGED
is ``st_ctime_ns``, which the kernel sets and no program can choose. If a file still
has its recorded size and time, nothing was written to it since. Only a write in the
same tick of the kernel's clock, a few milliseconds, would not be noticed.

Unpacked files are not synced to the disk, since the archive can be unpacked again. After a power
cut, a file may have the recorded size and time, but the wrong content. So the record has the boot
ids of the hosts that wrote or read the files. After a restart, a host reads and compares them.
"""

import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import stat
import uuid
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from loader.fs import is_temporary, private_opener, size_on_disk

_BOOT_ID = pathlib.Path("/proc/sys/kernel/random/boot_id")
# How many boots a record lists. Hosts can share a cache.
_MAX_BOOTS = 16


class _File(NamedTuple):
    size: int
    changed: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class Record:
    """The recorded state of some files below a root directory.

    :param files: path -> the state of the file.
    :param directories: path -> the directory's time of change, which changes when a file is
        added or removed.
    :param boots: the boots of hosts in which the files were written or read, the latest last;
        empty for files that were synced.
    """

    files: Mapping[str, _File]
    directories: Mapping[str, int]
    boots: tuple[str, ...] = ()

    @classmethod
    def of_tree(cls, root: pathlib.Path) -> Self:
        """Record all files below a directory, which were written in this boot.

        :raises OSError: if a file cannot be read.
        """
        directories, paths = [], []
        for directory, _, names in os.walk(root, topdown=False):
            relative = pathlib.Path(directory).relative_to(root)
            directories.append("" if directory == str(root) else str(relative))
            paths += [str(relative / name) for name in names]
        sums = {path: _sum(f"{root}/{path}") for path in paths}
        return cls.stamp(root, sums, directories).confirmed()

    @classmethod
    def stamp(
        cls, root: pathlib.Path, sums: Mapping[str, str], directories: Iterable[str] = ()
    ) -> Self:
        """Record the present sizes and times of files, and their given SHA-256 sums.

        If other processes can write to the files, call this before the sums are checked. Then
        a later change differs from the record.

        :raises OSError: if a file or a directory is missing.
        """
        # Every load of a package runs this, and strings are faster than pathlib.
        found = {path: os.lstat(f"{root}/{path}") for path in sums}
        return cls(
            {path: _File(s.st_size, s.st_ctime_ns, sums[path]) for path, s in found.items()},
            {path: os.lstat(f"{root}/{path}").st_ctime_ns for path in directories},
        )

    @classmethod
    def load(cls, path: str | pathlib.Path) -> Self:
        """Read a record.

        :raises OSError: if the file cannot be read.
        :raises ValueError: if the file is not a valid record.
        """
        try:
            with open(path, "rb", buffering=0) as stream:
                content = json.loads(stream.read())
            files = {name: _File(*values) for name, values in content["files"].items()}
            if not files:
                raise TypeError("no file is listed")
            for file in files.values():
                if type(file.size) is not int or file.size < 0 or type(file.changed) is not int:
                    raise TypeError("a size or a time is not a valid number")
            return cls(files, dict(content["directories"]), tuple(content["boots"]))
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"the record is not valid: {error!r}") from error

    def save(self, path: pathlib.Path) -> None:
        """Write the record to a file.

        :raises OSError: if the file cannot be written.
        """
        with open(path, "wb", opener=private_opener) as stream:
            stream.write(json.dumps(vars(self)).encode())

    @property
    def size(self) -> int:
        """The disk space of the files, in bytes."""
        return sum(size_on_disk(file.size) for file in self.files.values())

    def restamped(self, root: pathlib.Path) -> Self:
        """Return the record with the present sizes and times, without reading files.

        The result equals this record if nothing was written to the files.

        :raises OSError: if a file or a directory is missing.
        """
        sums = {path: file.sha256 for path, file in self.files.items()}
        return dataclasses.replace(self.stamp(root, sums, self.directories), boots=self.boots)

    @property
    def is_of_this_boot(self) -> bool:
        """Whether the files were written or read since this host has started."""
        return boot_id() in self.boots

    def confirmed(self) -> Self:
        """Return the record after the files were written or read in this boot."""
        if self.is_of_this_boot:
            return self
        return dataclasses.replace(self, boots=(*self.boots, boot_id())[-_MAX_BOOTS:])

    def problems(self, root: pathlib.Path) -> dict[str, str]:
        """Read all files, and return their differences from the record.

        :return: damaged, missing or added path -> a phrase such as "is missing".
        :raises OSError: if a file cannot be read for now, as with too many open files.
        """
        problems = {}
        for directory in self.directories:
            path = root / directory
            if path.is_symlink() or not path.is_dir():
                problems[directory or "."] = "is not a directory"
                continue
            for child in (str(child.relative_to(root)) for child in path.iterdir()):
                if child not in self.files and child not in self.directories:
                    problems[child] = "was added"
        for name, file in self.files.items():
            if problem := _problem(f"{root}/{name}", file.sha256):
                problems[name] = problem
        return dict(sorted(problems.items()))


@functools.cache
def boot_id() -> str:
    """Return an id that this host has until it is started again; if it has none, a new id."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return str(uuid.uuid4())


def _sum(path: str) -> str:
    with open(path, "rb", buffering=0) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _problem(path: str, sha256: str) -> str:
    """Return why a file does not match a checksum; an empty string if it matches."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return "is not a regular file"
        return "" if _sum(path) == sha256 else "has changed since it was stored"
    except (FileNotFoundError, NotADirectoryError):
        return "is missing"
    except OSError as error:
        if is_temporary(error):
            raise
        return f"cannot be read: {error.strerror}"
