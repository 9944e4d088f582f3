# SPDX-License-Identifier: Apache-2.0

"""Read, unpack and pack the files of a package safely, from a ZIP file or a directory.

An archive may be hostile. So its central directory is checked before any file is read, and
the size of each file is compared with its declared size.
"""

import abc
import contextlib
import errno
import io
import os
import pathlib
import re
import shutil
import stat
import struct
import tempfile
import uuid
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import IO, Self

from glare_murano.package import archive_rules
from glare_murano.package.archive_rules import DEFAULT_LIMITS, Entry, Limits, refusal
from glare_murano.package.errors import InvalidArchive
from glare_murano.package.manifest import MANIFEST_FILE
from glare_murano.package.rules import Rule

Source = str | os.PathLike[str] | IO[bytes]

_CHUNK = 128 * 1024
_SUPPORTED_COMPRESSION = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# The flags of encryption, compressed patched data, strong encryption, and a masked header.
_UNSUPPORTED_FLAGS = 0x1 | 0x20 | 0x40 | 0x2000
_UTF_8 = 0x800
_LOCAL_HEADER_SIZE = 30
_ENTRY_SIZE = 46
# A generous limit for the name, extra field and comment of one entry.
_ENTRY_TEXT_SIZE = 1024
_END_SIGNATURE = b"PK\5\6"
# The end record of ZIP64 and its locator, which precede the plain end record.
_ZIP64_END_SIZE = 56 + 20
# The earliest time that a ZIP file can hold.
_PACKED_TIME = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_NO_FILE = "is neither a file nor a directory"
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW

# Files of version control, editors and desktops, which are never published.
_LEFTOVERS = re.compile(
    r"\.git|\.hg|\.svn|\.bzr|CVS|\.gitignore|\.gitattributes|\.gitmodules|\.hgignore"
    r"|__MACOSX|\.DS_Store|\._.*|Thumbs\.db|desktop\.ini"
    r"|__pycache__|\.idea|\.vscode|.*~|\.#.*|#.*#|\..*\.sw[a-p]|.*\.(orig|rej|bak|pyc)"
)


class Archive(abc.ABC):
    """The files of a package; a context manager that closes them."""

    def __init__(self, entries: Iterable[Entry], limits: Limits) -> None:
        self._entries = {entry.path: entry for entry in entries}
        self._limits = limits

    @staticmethod
    def open(source: Source, limits: Limits = DEFAULT_LIMITS) -> "Archive":
        """Open a package, and check the rules for paths and sizes.

        :param source: the path of a ZIP file or a directory, or a seekable
            file, which stays open. Files of version control, editors and
            desktops in a directory are skipped.
        :raises InvalidArchive: if a rule is broken; the message has the path and the rule.
        :raises OSError: if the source cannot be read.
        """
        if isinstance(source, str | os.PathLike) and os.path.isdir(source):
            return _DirectoryArchive(pathlib.Path(source), limits)
        return _ZipArchive(source, limits)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:  # noqa: B027 - a directory has nothing to close
        pass

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all files, with slashes, in the order of the archive."""
        return tuple(self._entries)

    def size(self, path: str) -> int:
        """Return the declared size of a file, in bytes.

        :raises KeyError: if there is no such file.
        """
        return self._entries[path].size

    def read(self, path: str, limit: int) -> bytes:
        """Read a file.

        :param limit: the allowed number of bytes.
        :raises KeyError: if there is no such file.
        :raises InvalidArchive: if the file is larger, or not as declared.
        """
        entry = self._entries[path]
        if entry.size > limit:
            raise refusal(Rule.ENTRY_SIZE, path, f"{entry.size} bytes, at most {limit} are allowed")
        return b"".join(self._chunks(entry))

    def verify(self) -> None:
        """Read every file to find damaged ones.

        :raises InvalidArchive: if a file is not as declared.
        """
        for entry in self._entries.values():
            for _ in self._chunks(entry):
                pass

    def unpack(self, target: "str | os.PathLike[str]") -> None:
        """Create a directory with all files; remove it after an error.

        :raises InvalidArchive: if a file is not as declared.
        :raises FileExistsError: if the directory exists.
        :raises OSError: if a file cannot be written.
        """
        target = pathlib.Path(target)
        if os.path.lexists(target):
            raise FileExistsError(f"{target} already exists")
        partial = target.with_name(f".{target.name[:32]}.{uuid.uuid4().hex}")
        try:
            partial.mkdir(0o755)
            self._write_all(partial)
            partial.rename(target)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise

    def pack(self, target: IO[bytes], changed: Mapping[str, bytes] = MappingProxyType({})) -> None:
        """Write a reproducible ZIP file: the same files give the same digest.

        Entries are sorted, and have a fixed time.

        :param target: a seekable file; an error leaves it unchanged.
        :param changed: path -> new bytes, for files whose bytes are replaced.
        :raises InvalidArchive: if a file is not as declared, or the ZIP file is too large.
        :raises OSError: if a file cannot be read, or the target cannot be written.
        """
        start = target.tell()
        archive = _NewZipFile(target, "w", zipfile.ZIP_DEFLATED)
        try:
            for entry in sorted(self._entries.values(), key=lambda e: e.path):
                info = zipfile.ZipInfo(entry.path, _PACKED_TIME)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.create_system = _UNIX
                info.external_attr = (stat.S_IFREG | _mode(entry)) << 16
                data = changed.get(entry.path)
                info.file_size = entry.size if data is None else len(data)
                with archive.open(info, "w") as stream:
                    stream.writelines(self._chunks(entry) if data is None else [data])
            archive.close()
            archive_rules.check_size(target.tell() - start, self._limits)
        except BaseException:
            # Python may free an entry that is still open. The entry then writes the rest of its
            # data, which must not go to the target.
            archive.fp = io.BytesIO()
            target.seek(start)
            target.truncate()
            raise

    def open_zip(self) -> IO[bytes]:
        """Return the package as an open ZIP file, whose descriptor another process can use.

        The original file is opened read-only if possible; otherwise, the package is packed into
        a temporary file.

        :raises InvalidArchive: if a file is not as declared, or the ZIP file is too large.
        :raises OSError: if a file cannot be read, or the temporary file cannot be written.
        """
        packed = tempfile.TemporaryFile(prefix="glare-murano-")  # noqa: SIM115 - returned
        try:
            self.pack(packed)
        except BaseException:
            packed.close()
            raise
        packed.seek(0)
        return packed

    def _write_all(self, root: pathlib.Path) -> None:
        made = {""}
        # The manifest is last, so that a killed process leaves no valid package.
        for entry in sorted(self._entries.values(), key=lambda e: e.path == MANIFEST_FILE):
            _make_directories(root, entry.path.rpartition("/")[0], made)
            # The path is a string, which is faster than pathlib, since there are many files.
            file = os.open(f"{root}/{entry.path}", _NEW_FILE, _mode(entry))
            # An unbuffered write to a full disk may be partial without an error, so use a buffer.
            with open(file, "wb") as stream:
                stream.writelines(self._chunks(entry))

    def _chunks(self, entry: Entry) -> Iterator[bytes]:
        """Read a file, and compare its length with its declared size."""
        count = 0
        try:
            with self._stream(entry) as stream:
                while chunk := stream.read(_CHUNK):
                    count += len(chunk)
                    if count > entry.size:
                        break
                    yield chunk
        except InvalidArchive:
            raise
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
            raise refusal(Rule.ENTRY_DATA, entry.path, f"cannot be read: {error}") from error
        if count != entry.size:
            more_or_less = "more" if count > entry.size else "fewer"
            message = f"{entry.size} bytes are declared, but the file has {more_or_less}"
            raise refusal(Rule.ENTRY_SIZE, entry.path, message)

    @abc.abstractmethod
    def _stream(self, entry: Entry) -> IO[bytes]:
        """Open a file, which may be longer than declared."""


class _NewZipFile(zipfile.ZipFile):
    """A ZIP file to write; after an error, it is not completed."""

    def __del__(self) -> None:
        # The original method completes the file, and fails if Ctrl-C has interrupted an entry.
        pass


class _ZipArchive(Archive):
    def __init__(self, source: Source, limits: Limits) -> None:
        with contextlib.ExitStack() as stack:
            if isinstance(source, str | os.PathLike):
                source = stack.enter_context(open(source, "rb", opener=_open_at_once))
                if not _is_file(source):
                    raise refusal(Rule.ARCHIVE_FORMAT, "archive", _NO_FILE)
            size = source.seek(0, os.SEEK_END)
            archive_rules.check_size(size, limits)
            self._zip = stack.enter_context(_opened(source, limits))
            infos = self._zip.infolist()
            directories = [info.filename.rstrip("/") for info in infos if _is_directory(info)]
            files = [info for info in infos if not _is_directory(info)]
            entries = [_zip_entry(info) for info in files]
            super().__init__(entries, limits)
            _check_layout(infos, self._zip.start_dir, source)
            archive_rules.check_entries(entries, directories, size, limits)
            self._infos = {info.filename: info for info in files}
            for info in files:
                # zipfile stops at the declared size; one more byte shows excess data.
                info.file_size += 1
            for info in infos:
                # Nothing uses these values, which can take 128 KB of memory for each entry.
                info.extra = info.comment = b""
            self._stack = stack.pop_all()

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def open_zip(self) -> IO[bytes]:
        if self._zip.fp is not None:
            with contextlib.suppress(io.UnsupportedOperation):
                # Open the file again: a copied descriptor would share its position.
                return open(f"/proc/self/fd/{self._zip.fp.fileno()}", "rb")
        return super().open_zip()

    def _stream(self, entry: Entry) -> IO[bytes]:
        return self._zip.open(self._infos[entry.path])


class _DirectoryArchive(Archive):
    def __init__(self, root: pathlib.Path, limits: Limits) -> None:
        self._root = root
        files: list[Entry] = []
        directories: list[str] = []
        for directory, subdirectories, names in os.walk(root, onerror=_raise):
            subdirectories[:] = [name for name in subdirectories if not _LEFTOVERS.fullmatch(name)]
            relative = os.path.relpath(directory, root)
            below = "" if relative == "." else f"{relative}/"
            for name in subdirectories:
                if pathlib.Path(directory, name).is_symlink():
                    raise refusal(Rule.ENTRY_TYPE, f"{below}{name}", "is a link")
                directories.append(f"{below}{name}")
            for name in names:
                if not _LEFTOVERS.fullmatch(name):
                    files.append(_file_entry(os.path.join(directory, name), f"{below}{name}"))
            if len(files) + len(directories) > limits.entries:
                break
        total = sum(entry.size for entry in files)
        archive_rules.check_entries(files, directories, total, limits)
        super().__init__(files, limits)

    def _stream(self, entry: Entry) -> IO[bytes]:
        # The file may have been replaced since the directory was read.
        try:
            stream = open(self._root / entry.path, "rb", opener=_open_no_link)  # noqa: SIM115
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise refusal(Rule.ENTRY_TYPE, entry.path, "is a link") from error
            raise
        if not _is_file(stream):
            stream.close()
            raise refusal(Rule.ENTRY_TYPE, entry.path, _NO_FILE)
        return stream


def _open_at_once(path: str, flags: int) -> int:
    """Open a file; do not wait for the writer of a named pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _open_no_link(path: str, flags: int) -> int:
    return _open_at_once(path, flags | os.O_NOFOLLOW)


def _is_file(stream: IO[bytes]) -> bool:
    return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)


def _make_directories(root: pathlib.Path, path: str, made: set[str]) -> None:
    """Make a directory and its parents, unless they are in ``made``; only the owner may write."""
    if path not in made:
        _make_directories(root, path.rpartition("/")[0], made)
        (root / path).mkdir(0o755)
        made.add(path)


def _opened(stream: IO[bytes], limits: Limits) -> zipfile.ZipFile:
    """Open a ZIP file, unless its central directory is larger than the limits allow."""
    try:
        if _count_entries(stream, limits) <= limits.entries:
            return zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
        raise refusal(Rule.ARCHIVE_FORMAT, "archive", f"is not a ZIP file ({error})") from error
    message = f"more than {limits.entries} entries are not allowed"
    raise refusal(Rule.ARCHIVE_ENTRIES, "archive", message)


def _count_entries(stream: IO[bytes], limits: Limits) -> int:
    """Count the entries of a central directory, up to one more than the limit.

    Memory does not grow with the entries, since no object is made for each of them.
    """
    # zipfile has no public function for this.
    end = zipfile._EndRecData(stream)  # type: ignore[attr-defined]
    if end is None:
        raise zipfile.BadZipFile("no central directory was found")
    size, place = end[5], end[9]
    if size > limits.entries * (_ENTRY_SIZE + _ENTRY_TEXT_SIZE):
        return limits.entries + 1
    if end[0] != _END_SIGNATURE:
        place -= _ZIP64_END_SIZE
    stream.seek(max(place - size, 0))
    directory = stream.read(size)
    count = offset = 0
    while offset + _ENTRY_SIZE <= len(directory) and count <= limits.entries:
        offset += _ENTRY_SIZE + sum(struct.unpack_from("<3H", directory, offset + 28))
        count += 1
    return count


def _is_directory(info: zipfile.ZipInfo) -> bool:
    # ZipInfo.is_dir() fails if the name is empty.
    return info.filename.endswith("/")


def _check_layout(infos: list[zipfile.ZipInfo], end: int, stream: IO[bytes]) -> None:
    """Refuse entries that have no name, have a wrong type, or share bytes.

    If entries could share bytes, a small archive could unpack to huge files.
    """
    for info in sorted(infos, key=lambda i: i.header_offset, reverse=True):
        kind = stat.S_IFMT(info.external_attr >> 16)
        if info.filename != info.orig_filename:
            raise refusal(Rule.PATH_CHARACTERS, info.orig_filename, "contains NUL")
        if not info.filename:
            raise refusal(Rule.PATH_ESCAPE, "''", "an entry has no name")
        if kind not in (0, stat.S_IFDIR if _is_directory(info) else stat.S_IFREG):
            raise refusal(Rule.ENTRY_TYPE, info.filename, _NO_FILE)
        least = _LOCAL_HEADER_SIZE + len(info.orig_filename) + info.compress_size
        if info.header_offset < 0 or info.header_offset + least > end:
            raise refusal(Rule.ENTRY_OVERLAP, info.filename, "shares its bytes with another entry")
        _check_local_header(info, end, stream)
        end = info.header_offset


def _check_local_header(info: zipfile.ZipInfo, end: int, stream: IO[bytes]) -> None:
    """Refuse an entry whose own header contradicts the central directory."""
    name = info.orig_filename.encode("utf-8" if info.flag_bits & _UTF_8 else "cp437")
    stream.seek(info.header_offset)
    header = stream.read(_LOCAL_HEADER_SIZE + len(name))
    if not header.startswith(b"PK\3\4"):
        return  # zipfile refuses the entry when it is read
    flags, method = struct.unpack_from("<2H", header, 6)
    if method != info.compress_type or (flags ^ info.flag_bits) & _UNSUPPORTED_FLAGS:
        raise refusal(Rule.ENTRY_DATA, info.filename, "contradicts the central directory")
    if not header.endswith(name):
        raise refusal(Rule.ENTRY_DATA, info.filename, "has another name in the central directory")
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


def _file_entry(path: str, relative: str) -> Entry:
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        raise refusal(Rule.ENTRY_TYPE, relative, _NO_FILE)
    return Entry(relative, status.st_size, bool(status.st_mode & stat.S_IXUSR))


def _mode(entry: Entry) -> int:
    return 0o755 if entry.executable else 0o644


def _raise(error: OSError) -> None:
    raise error
