# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The files of a package: a ZIP file, an open file, or a folder, read safely.

An archive is hostile until it has been read: every rule is checked before the
first file is written, and the sizes that an archive declares are only
believed once they have been counted. The module knows files; it does not know
what they mean.
"""

import dataclasses
import os
import pathlib
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from types import TracebackType
from typing import IO
from typing import Self

from glare_murano.package import errors

_CHUNK = 128 * 1024
_SUPPORTED_COMPRESSION = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
# The earliest time that a ZIP file can tell.
_PACKED_TIME = (1980, 1, 1, 0, 0, 0)


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


@dataclasses.dataclass(frozen=True)
class _Entry:
    """One file: its path with slashes, its size in bytes, whether it is a program."""

    path: str
    size: int
    executable: bool


class Archive:
    """The files of one package, to be used as a context manager."""

    def __init__(self, container: "_Container", limits: Limits = DEFAULT_LIMITS) -> None:
        self._container = container
        self._limits = limits

    @classmethod
    def open(
        cls, source: "str | os.PathLike[str] | IO[bytes]", limits: Limits = DEFAULT_LIMITS
    ) -> Self:
        """Open a package and check every rule that its directory can show.

        :param source: the path of a ZIP file or a folder, or an open file
            that can seek, which stays open.
        :raises InvalidArchive: naming the file and the rule.
        :raises OSError: if it cannot be read.
        """
        if isinstance(source, str | os.PathLike) and os.path.isdir(source):
            return cls(_Folder(pathlib.Path(source), limits), limits)
        return cls(_Zip(source, limits), limits)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._container.close()

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all files, with slashes, as they stand in the archive."""
        return tuple(entry.path for entry in self._container.entries)

    def read(self, path: str, limit: int) -> bytes:
        """Read one file.

        :param path: as in ``paths``.
        :param limit: how many bytes it may hold.
        :raises KeyError: if there is no such file.
        :raises InvalidArchive: if it is larger, or not what was declared.
        """
        entry = next((e for e in self._container.entries if e.path == path), None)
        if entry is None:
            raise KeyError(path)
        if entry.size > limit:
            raise _refusal("entry-size", path, f"{entry.size} bytes, at most {limit} are allowed")
        return b"".join(self._chunks(entry))

    def unpack(self, target: "str | os.PathLike[str]") -> None:
        """Write all files below a folder that does not exist yet: all, or none.

        :raises InvalidArchive: if an entry is not what was declared.
        :raises FileExistsError: if the folder exists.
        :raises OSError: if it cannot be written; nothing is left then.
        """
        target = pathlib.Path(target)
        if target.exists():
            raise FileExistsError(f"{target} exists already")
        partial = pathlib.Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            for entry in self._container.entries:
                self._write(entry, partial / entry.path)
            partial.chmod(0o755)
            partial.rename(target)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise

    def pack(self, target: IO[bytes]) -> None:
        """Write the files as a ZIP file whose bytes depend on nothing but them.

        Entries are sorted and bear one fixed time, so that the same files
        give the same digest.

        :param target: an open file; it need not be able to seek.
        :raises InvalidArchive: if an entry is not what was declared.
        """
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for entry in sorted(self._container.entries, key=lambda e: e.path):
                info = zipfile.ZipInfo(entry.path, _PACKED_TIME)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.create_system = 3  # Unix, whose modes follow
                info.external_attr = (stat.S_IFREG | _mode(entry)) << 16
                info.file_size = entry.size
                with archive.open(info, "w") as stream:
                    for chunk in self._chunks(entry):
                        stream.write(chunk)

    def _write(self, entry: _Entry, path: pathlib.Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "xb") as stream:
            for chunk in self._chunks(entry):
                stream.write(chunk)
        path.chmod(_mode(entry))

    def _chunks(self, entry: _Entry) -> Iterator[bytes]:
        count = 0
        try:
            with self._container.stream(entry.path) as stream:
                while chunk := stream.read(_CHUNK):
                    count += len(chunk)
                    if count > entry.size:
                        break
                    yield chunk
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise _refusal("entry-data", entry.path, f"cannot be read: {error}") from error
        if count != entry.size:
            raise _refusal(
                "entry-size", entry.path, f"{entry.size} bytes were declared, found another number"
            )


class _Container:
    """What holds the files; its entries have passed the rules."""

    entries: tuple[_Entry, ...]

    def stream(self, path: str) -> IO[bytes]:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class _Zip(_Container):
    def __init__(self, source: "str | os.PathLike[str] | IO[bytes]", limits: Limits) -> None:
        size = _size(source)
        if size > limits.archive_size:
            raise _refusal(
                "archive-size",
                "archive",
                f"{size} bytes, at most {limits.archive_size} are allowed",
            )
        try:
            self._zip = zipfile.ZipFile(source)
        except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
            raise _refusal("archive-format", "archive", f"is no ZIP file: {error}") from error
        try:
            infos = self._zip.infolist()
            _check_totals([info.file_size for info in infos], size, limits)
            self.entries = _checked(
                [self._entry(info) for info in infos if not info.is_dir()], limits
            )
        except BaseException:
            self._zip.close()
            raise

    @staticmethod
    def _entry(info: zipfile.ZipInfo) -> _Entry:
        mode = info.external_attr >> 16
        if info.filename != info.orig_filename:
            raise _refusal("path-characters", info.orig_filename, "a NUL or backslash in a path")
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise _refusal("entry-type", info.filename, "is neither a file nor a folder")
        if info.flag_bits & _ENCRYPTED:
            raise _refusal("entry-encrypted", info.filename, "is encrypted")
        if info.compress_type not in _SUPPORTED_COMPRESSION:
            raise _refusal(
                "entry-compression",
                info.filename,
                f"compression {info.compress_type} is unsupported",
            )
        return _Entry(info.filename, info.file_size, bool(mode & stat.S_IXUSR))

    def stream(self, path: str) -> IO[bytes]:
        return self._zip.open(path)

    def close(self) -> None:
        self._zip.close()


class _Folder(_Container):
    def __init__(self, root: pathlib.Path, limits: Limits) -> None:
        self._root = root
        found = []
        for folder, _, names in os.walk(root, onerror=_raise):
            for name in names:
                path = pathlib.Path(folder, name)
                status = path.lstat()
                relative = path.relative_to(root).as_posix()
                if not stat.S_ISREG(status.st_mode):
                    raise _refusal("entry-type", relative, "is neither a file nor a folder")
                found.append(_Entry(relative, status.st_size, bool(status.st_mode & stat.S_IXUSR)))
        total = sum(entry.size for entry in found)
        _check_totals([entry.size for entry in found], total, limits)
        self.entries = _checked(found, limits)

    def stream(self, path: str) -> IO[bytes]:
        return open(self._root / path, "rb")

    def close(self) -> None:
        pass


def _mode(entry: _Entry) -> int:
    return 0o755 if entry.executable else 0o644


def _raise(error: OSError) -> None:
    raise error


def _size(source: "str | os.PathLike[str] | IO[bytes]") -> int:
    if isinstance(source, str | os.PathLike):
        return os.stat(source).st_size
    return source.seek(0, os.SEEK_END)


def _check_totals(sizes: list[int], archive_size: int, limits: Limits) -> None:
    total = sum(sizes)
    if len(sizes) > limits.entries:
        raise _refusal(
            "archive-entries",
            "archive",
            f"{len(sizes)} entries, at most {limits.entries} are allowed",
        )
    if total > limits.unpacked_size:
        raise _refusal(
            "unpacked-size",
            "archive",
            f"{total} bytes unpacked, at most {limits.unpacked_size} are allowed",
        )
    if total > 1024**2 and total > archive_size * limits.ratio:
        raise _refusal(
            "archive-ratio",
            "archive",
            f"unpacks to {total} bytes from {archive_size}, at most {limits.ratio} times as many "
            f"are allowed",
        )


def _checked(entries: list[_Entry], limits: Limits) -> tuple[_Entry, ...]:
    seen: dict[str, str] = {}
    for entry in entries:
        _check_path(entry.path, limits)
        twin = seen.setdefault(entry.path.casefold(), entry.path)
        if twin is not entry.path:
            raise _refusal("path-collision", entry.path, f"collides with {twin}")
    return tuple(entries)


def _check_path(path: str, limits: Limits) -> None:
    parts = path.split("/")
    if len(path) > limits.path_length:
        raise _refusal("path-length", path[:64], f"longer than {limits.path_length} characters")
    if len(parts) > limits.path_depth:
        raise _refusal("path-depth", path, f"deeper than {limits.path_depth} folders")
    if not path.isprintable():
        raise _refusal("path-characters", repr(path), "control characters in a path")
    if "\\" in path or ":" in path:
        raise _refusal("path-characters", path, "a backslash or a colon in a path")
    if any(part in ("", ".", "..") for part in parts):
        raise _refusal("path-escape", path, "is absolute or leaves the folder")


def _refusal(rule: str, where: str, message: str) -> errors.InvalidArchive:
    return errors.InvalidArchive([errors.Problem(rule, where, message)])
