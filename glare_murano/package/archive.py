# SPDX-License-Identifier: Apache-2.0

"""Read, unpack and pack the files of a package safely, from a ZIP file or a directory.

An archive may be hostile. So its layout is checked before any file is read, and the size of each
file is compared with its declared size.
"""

import abc
import contextlib
import errno
import hashlib
import io
import os
import pathlib
import re
import shutil
import stat
import tempfile
import threading
import time
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import IO, Self

from glare_murano.package import archive_rules, zip_data, zip_layout
from glare_murano.package.archive_rules import DEFAULT_LIMITS, Entry, Limits, refusal
from glare_murano.package.manifest import MANIFEST_FILE
from glare_murano.package.rules import Rule
from glare_murano.package.zip_directory import Member

Source = str | os.PathLike[str] | IO[bytes]

_CHUNK = 128 * 1024
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
    """The files of a package, in a ZIP file or in a directory.

    An archive is a context manager, which closes the ZIP file when the ``with`` statement ends.
    """

    def __init__(self, entries: Iterable[Entry], limits: Limits) -> None:
        self._entries = {entry.path: entry for entry in entries}
        self._limits = limits

    @staticmethod
    def open(source: Source, limits: Limits = DEFAULT_LIMITS) -> "Archive":
        """Open a package, and check the paths and the sizes of its files.

        In a directory, files of version control, editors and desktops are skipped.

        :param source: the path of a ZIP file or a directory. It can also be a seekable file, which
            this class does not close.
        :param limits: the largest sizes and counts that are allowed.
        :raises InvalidArchive: if a rule is broken; the message names the path and the rule.
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
        """The paths of all files in the package, with slashes, in the order of the archive."""
        return tuple(self._entries)

    def size(self, path: str) -> int:
        """Return the declared size of a file, in bytes.

        :raises KeyError: if there is no such file.
        """
        return self._entries[path].size

    def read(self, path: str, limit: int) -> bytes:
        """Read a file.

        :param limit: the largest allowed size of the file, in bytes.
        :raises KeyError: if there is no such file.
        :raises InvalidArchive: if the file is larger than ``limit``, is damaged, or does not have
            its declared size.
        """
        entry = self._entries[path]
        if entry.size > limit:
            raise refusal(Rule.ENTRY_SIZE, path, f"{entry.size} bytes, at most {limit} are allowed")
        return b"".join(self._chunks(entry))

    def verify(self) -> None:
        """Read every file of the package, to check that no file is damaged.

        :raises InvalidArchive: if a file is damaged, or does not have its declared size.
        """
        for entry in self._entries.values():
            for _ in _with_pauses(self._chunks(entry)):
                pass

    def unpack(self, target: "str | os.PathLike[str]") -> None:
        """Create a directory with all files of the package.

        If an error occurs while files are written, no incomplete directory is left behind.

        :param target: the path of the new directory.
        :raises InvalidArchive: if a file is damaged, or does not have its declared size.
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
        """Write the package as a reproducible ZIP file: the same files give the same digest.

        Entries are sorted, and have a fixed time.

        :param target: a seekable file. The package is written at the present position of the file.
            After an error, the file is cut off at this position.
        :param changed: the files whose content is replaced: path -> new content. Paths that are not
            in the package are ignored.
        :raises InvalidArchive: if a file is damaged or does not have its declared size, or if the
            ZIP file is too large.
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
            # An entry that is still open writes the rest of its data when Python frees it. This
            # data must not go to the target.
            archive.fp = io.BytesIO()
            target.seek(start)
            target.truncate()
            raise

    def repacked_digest(self) -> str:
        """Pack the package again, and return the SHA-256 of the new ZIP file, in hexadecimal.

        Packages with the same files have the same result, whichever tool has packed them.

        :raises InvalidArchive: as in ``pack``.
        """
        with tempfile.TemporaryFile() as packed:
            self.pack(packed)
            packed.seek(0)
            return hashlib.file_digest(packed, "sha256").hexdigest()

    def open_zip(self) -> IO[bytes]:
        """Return the package as an open ZIP file, whose descriptor another process can get.

        If the package is a ZIP file that has a descriptor, this file is opened again, for reading
        only. Any other package is packed into a temporary ZIP file.

        :raises InvalidArchive: if a file is damaged or does not have its declared size, or if the
            ZIP file is too large.
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
        # The manifest is written last, so that a killed process leaves no valid package.
        for entry in sorted(self._entries.values(), key=lambda e: e.path == MANIFEST_FILE):
            _make_directories(root, entry.path.rpartition("/")[0], made)
            # The path is a string, since there are many files, and pathlib is slower.
            file = os.open(f"{root}/{entry.path}", _NEW_FILE, _mode(entry))
            # A buffer is used, since an unbuffered write to a full disk may be incomplete without
            # an error.
            with open(file, "wb") as stream:
                stream.writelines(_with_pauses(self._chunks(entry)))

    def _chunks(self, entry: Entry) -> Iterator[bytes]:
        """Yield the content of a file, and check that it has the declared size.

        :raises InvalidArchive: if the file is damaged, or does not have its declared size.
        """
        count = 0
        for piece in self._pieces(entry):
            count += len(piece)
            if count > entry.size:
                break
            yield piece
        if count != entry.size:
            more_or_less = "more" if count > entry.size else "fewer"
            message = f"{entry.size} bytes are declared, but the file has {more_or_less}"
            raise refusal(Rule.ENTRY_SIZE, entry.path, message)

    @abc.abstractmethod
    def _pieces(self, entry: Entry) -> Iterator[bytes]:
        """Yield the content of a file. The content may be longer or shorter than declared."""


def _with_pauses(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield chunks, and let other green threads run after each of them.

    A small archive may have 500 MB of files, and to read them takes more than a second.
    """
    for chunk in chunks:
        yield chunk
        # If the program has green threads, eventlet replaces this function.
        time.sleep(0)


class _NewZipFile(zipfile.ZipFile):
    """A new ZIP file, which stays incomplete if writing fails.

    An ordinary ``ZipFile`` object would complete its file when Python frees the object.
    """

    def __del__(self) -> None:
        # The method of the base class would complete the file. It fails if Ctrl-C has interrupted
        # the writing of an entry.
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
            members = zip_layout.read_members(source, size, limits.entries)
            self._members = {each.path: each for each in members if not each.is_directory}
            directories = [each.path.rstrip("/") for each in members if each.is_directory]
            entries = [_zip_entry(each) for each in members if not each.is_directory]
            archive_rules.check_entries(entries, directories, size, limits)
            super().__init__(entries, limits)
            self._source = source
            # Threads that read different files share the position in the archive, so they need a
            # lock.
            self._lock = threading.Lock()
            self._stack = stack.pop_all()

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def open_zip(self) -> IO[bytes]:
        with contextlib.suppress(io.UnsupportedOperation):
            # The file is opened again, since a copied descriptor would share its position.
            return open(f"/proc/self/fd/{self._source.fileno()}", "rb")
        return super().open_zip()

    def _pieces(self, entry: Entry) -> Iterator[bytes]:
        return zip_data.read_content(self._read, self._members[entry.path])

    def _read(self, place: int, size: int) -> bytes:
        with self._lock:
            self._source.seek(place)
            return self._source.read(size)


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

    def _pieces(self, entry: Entry) -> Iterator[bytes]:
        with self._stream(entry) as stream:
            while piece := stream.read(_CHUNK):
                yield piece

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
    """Open a file without waiting. Otherwise, opening a named pipe would wait for a writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def _open_no_link(path: str, flags: int) -> int:
    return _open_at_once(path, flags | os.O_NOFOLLOW)


def _is_file(stream: IO[bytes]) -> bool:
    return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)


def _make_directories(root: pathlib.Path, path: str, made: set[str]) -> None:
    """Make a directory and its missing parents; only the owner may write to them.

    :param path: the path of the directory below ``root``.
    :param made: the paths of the directories that exist; new directories are added.
    """
    if path not in made:
        _make_directories(root, path.rpartition("/")[0], made)
        (root / path).mkdir(0o755)
        made.add(path)


def _zip_entry(member: Member) -> Entry:
    return Entry(member.path, member.size, bool(member.mode & stat.S_IXUSR))


def _file_entry(path: str, relative: str) -> Entry:
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        raise refusal(Rule.ENTRY_TYPE, relative, _NO_FILE)
    return Entry(relative, status.st_size, bool(status.st_mode & stat.S_IXUSR))


def _mode(entry: Entry) -> int:
    return 0o755 if entry.executable else 0o644


def _raise(error: OSError) -> None:
    raise error
