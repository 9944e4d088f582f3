# SPDX-License-Identifier: Apache-2.0

"""The files of a package: a ZIP file, an open file, or a folder, read safely.

An archive is hostile until it has been read: every rule is checked before the
first file is written, and the sizes that an archive declares are only
believed once they have been counted. The module knows files; it does not know
what they mean.
"""

import abc
import os
import pathlib
import re
import shutil
import stat
import struct
import uuid
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import IO, Self

from glare_murano.package import archive_rules, errors
from glare_murano.package.archive_rules import DEFAULT_LIMITS, Entry, Limits, refusal
from glare_murano.package.manifest import FILE_NAME
from glare_murano.package.rules import Rule

Source = str | os.PathLike[str] | IO[bytes]

_CHUNK = 128 * 1024
_SUPPORTED_COMPRESSION = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Encrypted, compressed patched data, strong encryption, masked header.
_UNSUPPORTED_FLAGS = 0x1 | 0x20 | 0x40 | 0x2000
_UTF_8 = 0x800
_LOCAL_HEADER_SIZE = 30
_DIRECTORY_ENTRY_SIZE = 46
# Name, extra field and comment of one entry; more than any tool writes.
_DIRECTORY_TEXT_SIZE = 1024
_END_SIGNATURE = b"PK\5\6"
# The end record of ZIP64 and its locator, which stand before the plain one.
_ZIP64_END_SIZE = 56 + 20
# The earliest time that a ZIP file can tell.
_PACKED_TIME = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW

# What tools leave in a folder and nobody wants to publish.
_LEFTOVERS = re.compile(
    r"\.git|\.hg|\.svn|\.bzr|CVS|\.gitignore|\.gitattributes|\.gitmodules|\.hgignore"
    r"|__MACOSX|\.DS_Store|\._.*|Thumbs\.db|desktop\.ini"
    r"|__pycache__|\.idea|\.vscode|.*~|\.#.*|#.*#|\..*\.sw[a-p]|.*\.(orig|rej|bak|pyc)"
)


class Archive:
    """The files of one package, to be used as a context manager."""

    def __init__(self, container: "_Container") -> None:
        self._container = container
        self._entries: Mapping[str, Entry] = {entry.path: entry for entry in container.entries}

    @classmethod
    def open(cls, source: Source, limits: Limits = DEFAULT_LIMITS) -> Self:
        """Open a package and check every rule that its directory can show.

        :param source: the path of a ZIP file or a folder, or an open file
            that can seek, which stays open. What version control, editors and
            desktops leave in a folder is passed over.
        :raises InvalidArchive: naming the file and the rule.
        :raises OSError: if it cannot be read.
        """
        if isinstance(source, str | os.PathLike) and os.path.isdir(source):
            return cls(_Folder(pathlib.Path(source), limits))
        return cls(_Zip(source, limits))

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
        return tuple(self._entries)

    def size(self, path: str) -> int:
        """The declared size of a file, in bytes.

        :raises KeyError: if there is no such file.
        """
        return self._entries[path].size

    def read(self, path: str, limit: int) -> bytes:
        """Read one file.

        :param path: as in ``paths``.
        :param limit: how many bytes it may hold.
        :raises KeyError: if there is no such file.
        :raises InvalidArchive: if it is larger, or not what was declared.
        """
        entry = self._entries[path]
        if entry.size > limit:
            raise refusal(Rule.ENTRY_SIZE, path, f"{entry.size} bytes, at most {limit} are allowed")
        return b"".join(self._chunks(entry))

    def verify(self) -> None:
        """Read every file, and keep nothing of it.

        :raises InvalidArchive: if an entry is not what was declared.
        """
        for entry in self._entries.values():
            for _ in self._chunks(entry):
                pass

    def unpack(self, target: "str | os.PathLike[str]") -> None:
        """Write all files below a folder that does not exist yet: all, or none.

        :raises InvalidArchive: if an entry is not what was declared.
        :raises FileExistsError: if the folder exists.
        :raises OSError: if it cannot be written; nothing is left then.
        """
        target = pathlib.Path(target)
        if os.path.lexists(target):
            raise FileExistsError(f"{target} exists already")
        partial = target.with_name(f".{target.name[:32]}.{uuid.uuid4().hex}")
        try:
            partial.mkdir(0o755)
            self._write_all(partial)
            partial.rename(target)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise

    def pack(self, target: IO[bytes]) -> None:
        """Write the files as a ZIP file whose bytes depend on nothing but them.

        Entries are sorted and bear one fixed time, so that the same files
        give the same digest.

        :param target: an open file that can seek; it is left as it was if
            something goes wrong.
        :raises InvalidArchive: if an entry is not what was declared.
        :raises OSError: if a file cannot be read, or the target not written.
        """
        start = target.tell()
        try:
            self._pack(target)
        except BaseException:
            # The library ends what it has begun, so that it looks whole.
            target.seek(start)
            target.truncate()
            raise

    def _pack(self, target: IO[bytes]) -> None:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for entry in sorted(self._entries.values(), key=lambda e: e.path):
                info = zipfile.ZipInfo(entry.path, _PACKED_TIME)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.create_system = _UNIX
                info.external_attr = (stat.S_IFREG | _mode(entry)) << 16
                info.file_size = entry.size
                with archive.open(info, "w") as stream:
                    for chunk in self._chunks(entry):
                        stream.write(chunk)

    def _write_all(self, root: pathlib.Path) -> None:
        made = {""}
        # The manifest last: a folder without one is no package, whenever we are killed.
        for entry in sorted(self._entries.values(), key=lambda e: e.path == FILE_NAME):
            folder = entry.path.rpartition("/")[0]
            if folder not in made:
                _make_folders(root, folder, made)
            # Text, not pathlib: it is done for every file.
            file = os.open(f"{root}/{entry.path}", _NEW_FILE, _mode(entry))
            # Buffered: of a write to a full disk, a raw file would take a part and go on.
            with open(file, "wb") as stream:
                for chunk in self._chunks(entry):
                    stream.write(chunk)

    def _chunks(self, entry: Entry) -> Iterator[bytes]:
        """The content of a file, which is counted as it goes."""
        count = 0
        try:
            with self._container.stream(entry) as stream:
                while chunk := stream.read(_CHUNK):
                    count += len(chunk)
                    if count > entry.size:
                        break
                    yield chunk
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
            raise refusal(Rule.ENTRY_DATA, entry.path, f"cannot be read: {error}") from error
        if count != entry.size:
            more_or_less = "more" if count > entry.size else "fewer"
            raise refusal(
                Rule.ENTRY_SIZE,
                entry.path,
                f"{entry.size} bytes were declared, but it holds {more_or_less}",
            )


class _Container(abc.ABC):
    """What holds the files; its entries have passed the rules."""

    entries: tuple[Entry, ...]

    @abc.abstractmethod
    def stream(self, entry: Entry) -> IO[bytes]:
        """Open a file, which gives more than its declared size if it has more."""

    def close(self) -> None:  # noqa: B027 - not every container holds something open
        """Give up what is open."""


class _Zip(_Container):
    def __init__(self, source: Source, limits: Limits) -> None:
        size = _size(source)
        archive_rules.check_size(size, limits)
        self._zip = _opened(source, limits)
        try:
            infos = self._zip.infolist()
            folders = [info.filename.rstrip("/") for info in infos if _is_folder(info)]
            files = [info for info in infos if not _is_folder(info)]
            self.entries = tuple(map(_zip_entry, files))
            if self._zip.fp is not None:
                _check_layout(infos, self._zip.start_dir, self._zip.fp)
            archive_rules.check_entries(self.entries, folders, size, limits)
            self._infos = {info.filename: info for info in files}
            for info in files:
                # Declared one byte larger, a file shows if there is more to it.
                info.file_size += 1
            for info in infos:
                # Up to 128 KB that nobody reads, as long as the archive is kept.
                info.extra = info.comment = b""
        except BaseException:
            self._zip.close()
            raise

    def stream(self, entry: Entry) -> IO[bytes]:
        return self._zip.open(self._infos[entry.path])

    def close(self) -> None:
        self._zip.close()


class _Folder(_Container):
    def __init__(self, root: pathlib.Path, limits: Limits) -> None:
        self._root = root
        files: list[Entry] = []
        folders: list[str] = []
        for folder, subfolders, names in os.walk(root, onerror=_raise):
            subfolders[:] = [name for name in subfolders if not _LEFTOVERS.fullmatch(name)]
            relative = os.path.relpath(folder, root)
            below = "" if relative == "." else f"{relative}/"
            for name in subfolders:
                if pathlib.Path(folder, name).is_symlink():
                    raise refusal(Rule.ENTRY_TYPE, f"{below}{name}", "is a link")
                folders.append(f"{below}{name}")
            for name in names:
                if not _LEFTOVERS.fullmatch(name):
                    files.append(_folder_entry(os.path.join(folder, name), f"{below}{name}"))
            if len(files) + len(folders) > limits.entries:
                break
        total = sum(entry.size for entry in files)
        archive_rules.check_entries(files, folders, total, limits)
        self.entries = tuple(files)

    def stream(self, entry: Entry) -> IO[bytes]:
        return open(self._root / entry.path, "rb")


def _make_folders(root: pathlib.Path, folder: str, made: set[str]) -> None:
    """Make a folder and those above it, which others cannot write to, whatever the umask is.

    :param made: those that are there; the new ones are added.
    """
    parts = folder.split("/")
    for depth in range(1, len(parts) + 1):
        path = "/".join(parts[:depth])
        if path not in made:
            (root / path).mkdir(0o755)
            made.add(path)


def _opened(source: Source, limits: Limits) -> zipfile.ZipFile:
    """Read a ZIP file's directory, unless it is larger than the limits allow."""
    try:
        if isinstance(source, str | os.PathLike):
            with open(source, "rb") as stream:
                count = _count_entries(stream, limits)
        else:
            count = _count_entries(source, limits)
        if count > limits.entries:
            raise refusal(
                Rule.ARCHIVE_ENTRIES,
                "archive",
                f"more than {limits.entries} entries are not allowed",
            )
        return zipfile.ZipFile(source)
    except errors.InvalidArchive:
        raise
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
        raise refusal(Rule.ARCHIVE_FORMAT, "archive", f"is no ZIP file: {error}") from error


def _count_entries(stream: IO[bytes], limits: Limits) -> int:
    """Count the entries of a directory before it becomes objects, as far as the limit."""
    # The library's own way to find the directory, which has no public name.
    end = zipfile._EndRecData(stream)  # type: ignore[attr-defined]
    if end is None:
        raise zipfile.BadZipFile("it has no directory")
    size, place = end[5], end[9]
    if size > limits.entries * (_DIRECTORY_ENTRY_SIZE + _DIRECTORY_TEXT_SIZE):
        return limits.entries + 1
    if end[0] != _END_SIGNATURE:
        place -= _ZIP64_END_SIZE
    stream.seek(max(place - size, 0))
    directory = stream.read(size)
    count = offset = 0
    while offset + _DIRECTORY_ENTRY_SIZE <= len(directory) and count <= limits.entries:
        offset += _DIRECTORY_ENTRY_SIZE + sum(struct.unpack_from("<3H", directory, offset + 28))
        count += 1
    return count


def _is_folder(info: zipfile.ZipInfo) -> bool:
    return info.filename.endswith("/")


def _check_layout(infos: list[zipfile.ZipInfo], end: int, stream: IO[bytes]) -> None:
    """Refuse entries without a name, of a wrong kind, or that share bytes.

    Of entries that overlap, a small archive unpacks to a huge one.
    """
    for info in sorted(infos, key=lambda i: i.header_offset, reverse=True):
        mode = info.external_attr >> 16
        kind = stat.S_IFMT(mode)
        if info.filename != info.orig_filename:
            raise refusal(Rule.PATH_CHARACTERS, info.orig_filename, "a NUL in a path")
        if not info.filename:
            raise refusal(Rule.PATH_ESCAPE, "''", "an entry without a name")
        if kind not in (0, stat.S_IFDIR if _is_folder(info) else stat.S_IFREG):
            raise refusal(Rule.ENTRY_TYPE, info.filename, "is neither a file nor a folder")
        least = _LOCAL_HEADER_SIZE + len(info.orig_filename) + info.compress_size
        if info.header_offset < 0 or info.header_offset + least > end:
            raise refusal(Rule.ENTRY_OVERLAP, info.filename, "shares its bytes with another entry")
        _check_local_header(info, end, stream)
        end = info.header_offset


def _check_local_header(info: zipfile.ZipInfo, end: int, stream: IO[bytes]) -> None:
    """Refuse an entry whose own header contradicts the directory."""
    name = info.orig_filename.encode("utf-8" if info.flag_bits & _UTF_8 else "cp437")
    stream.seek(info.header_offset)
    header = stream.read(_LOCAL_HEADER_SIZE + len(name))
    if not header.startswith(b"PK\3\4"):
        return  # told when the entry is read
    flags, method = struct.unpack_from("<2H", header, 6)
    if method != info.compress_type or (flags ^ info.flag_bits) & _UNSUPPORTED_FLAGS:
        raise refusal(Rule.ENTRY_DATA, info.filename, "contradicts the archive's directory")
    if not header.endswith(name):
        raise refusal(Rule.ENTRY_DATA, info.filename, "has another name in the archive's directory")
    size = _LOCAL_HEADER_SIZE + sum(struct.unpack_from("<2H", header, 26)) + info.compress_size
    if info.header_offset + size > end:
        raise refusal(Rule.ENTRY_OVERLAP, info.filename, "shares its bytes with another entry")


def _zip_entry(info: zipfile.ZipInfo) -> Entry:
    if info.flag_bits & _UNSUPPORTED_FLAGS:
        raise refusal(Rule.ENTRY_ENCRYPTED, info.filename, "is encrypted")
    if info.compress_type not in _SUPPORTED_COMPRESSION:
        message = f"compression {info.compress_type} is unsupported"
        raise refusal(Rule.ENTRY_COMPRESSION, info.filename, message)
    return Entry(info.filename, info.file_size, bool(info.external_attr >> 16 & stat.S_IXUSR))


def _folder_entry(path: str, relative: str) -> Entry:
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        raise refusal(Rule.ENTRY_TYPE, relative, "is neither a file nor a folder")
    return Entry(relative, status.st_size, bool(status.st_mode & stat.S_IXUSR))


def _mode(entry: Entry) -> int:
    return 0o755 if entry.executable else 0o644


def _raise(error: OSError) -> None:
    raise error


def _size(source: Source) -> int:
    if isinstance(source, str | os.PathLike):
        return os.stat(source).st_size
    return source.seek(0, os.SEEK_END)
