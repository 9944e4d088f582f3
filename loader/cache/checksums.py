# SPDX-License-Identifier: Apache-2.0

"""Record the sizes, times and SHA-256 sums of files, to find out later whether they changed.

Archives and unpacked packages have records in the same JSON format. The record of an archive lists
a single file and no directory::

    {"files": {PATH: [SIZE, CHANGED, SHA256], ...}, "directories": {PATH: CHANGED, ...},
     "boots": [BOOT, ...]}

A path is relative and has slashes; the path of the root directory is ``""``. CHANGED is
``st_ctime_ns``, a time that the kernel sets and no program can choose. If a file still has the
recorded size and time, nobody has written to it in the meantime. Only a write within the same tick
of the kernel's clock, a few milliseconds, would not be noticed.

Unpacked files are not synced to the disk, since the archive can be unpacked again. So after a power
cut, a file may have the recorded size and time, but the wrong content. Therefore a record has the
boot ids of the hosts that wrote or checked the files: a host that was restarted since then reads
the files again, and compares them with their sums.
"""

import dataclasses
import functools
import json
import os
import pathlib
import stat
import uuid
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from loader.fs import digest, is_temporary, private_opener, size_on_disk

_BOOT_ID = pathlib.Path("/proc/sys/kernel/random/boot_id")
# The largest number of boots in a record. It has several, since hosts can share a cache.
_MAX_BOOTS = 16


class _File(NamedTuple):
    size: int
    changed: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class Record:
    """The recorded state of files below a root directory.

    :param files: a mapping of paths to the states of the files.
    :param directories: a mapping of paths to the directories' times of change. Such a time changes
        when a file is added or removed.
    :param boots: the boot ids under which the files were written or checked, the latest last; empty
        for files that were synced to the disk.
    """

    files: Mapping[str, _File]
    directories: Mapping[str, int]
    boots: tuple[str, ...] = ()

    @classmethod
    def of_tree(cls, root: pathlib.Path) -> Self:
        """Record all files below a directory; they must have been written since this host started.

        :raises OSError: if a file cannot be read.
        """
        directories, paths = [], []
        for directory, _, names in os.walk(str(root), topdown=False):
            relative = directory[len(f"{root}/") :]
            directories.append(relative)
            paths += [os.path.join(relative, name) for name in names]
        sums = {path: digest(f"{root}/{path}") for path in paths}
        return cls.stamp(root, sums, directories).confirmed()

    @classmethod
    def stamp(
        cls, root: pathlib.Path, sums: Mapping[str, str], directories: Iterable[str] = ()
    ) -> Self:
        """Record the present sizes and times of files, and the given sums.

        If other processes can write to the files, call this before you compare the files with the
        sums. Then a change in the meantime makes the file differ from the record.

        :param sums: a mapping of paths to SHA-256 sums.
        :param directories: the paths of the directories to record.
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
        """Read a record from a file.

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
        """How many bytes the files occupy on the disk."""
        return sum(size_on_disk(file.size) for file in self.files.values())

    def restamped(self, root: pathlib.Path) -> Self:
        """Return a copy with the present sizes and times of the files, without reading the files.

        If nothing was written to the files, the copy equals this record.

        :raises OSError: if a file or a directory is missing.
        """
        sums = {path: file.sha256 for path, file in self.files.items()}
        return dataclasses.replace(self.stamp(root, sums, self.directories), boots=self.boots)

    @property
    def is_of_this_boot(self) -> bool:
        """Whether the files were written or checked since this host started."""
        return boot_id() in self.boots

    def confirmed(self) -> Self:
        """Return a copy of this record with the present boot id.

        Call this after all files were written or checked.
        """
        if self.is_of_this_boot:
            return self
        return dataclasses.replace(self, boots=(*self.boots, boot_id())[-_MAX_BOOTS:])

    def problems(self, root: pathlib.Path) -> dict[str, str]:
        """Read all files, and return how they differ from the record.

        :returns: a mapping of damaged, missing or added paths to phrases such as "is missing".
        :raises OSError: if a file cannot be read for a temporary reason, such as too many open
            files. If it cannot be read for another reason, this is one of the returned problems.
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
    """Return the boot id of this host, which the kernel chooses at each start.

    If the kernel has no boot id, a new id for this process is returned.
    """
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return str(uuid.uuid4())


def _problem(path: str, sha256: str) -> str:
    """Return why a file does not match a checksum; an empty string if it matches."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return "is not a regular file"
        return "" if digest(path) == sha256 else "has changed since it was stored"
    except (FileNotFoundError, NotADirectoryError):
        return "is missing"
    except OSError as error:
        if is_temporary(error):
            raise
        return f"cannot be read: {error.strerror}"
