# SPDX-License-Identifier: Apache-2.0

"""Find the releases that a catalogue of pages shows, and fetch their archives.

A source of releases is a directory, a bundle, or the package service of a cloud. A service supplies
only the packages that the caller's project can use.
"""

import contextlib
import dataclasses
import hashlib
import pathlib
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from glare_murano.package import Archive, GlareMuranoError, InvalidPackage, read_manifest
from glare_murano.selection import Selection
from loader import fs, progress
from loader.authoring import local_packages
from loader.catalogs.repository import Repository
from loader.catalogs.stored_package import StoredPackage
from loader.publishing import bundles, exports


@dataclasses.dataclass(frozen=True)
class Entry:
    """A release that the pages show.

    :param stamp: a digest of the files; it changes if a file of the release changes.
    :param place: the path of the archive or the directory; for a package in a service, the id.
    :param download: how a reader of the page gets the archive: a file name or a command; empty if
        the package is a directory.
    :param listed: fields that do not come from the archive. A service supplies fields such as
        ``owner``, and a preview supplies ``findings``.
    """

    fqn: str
    version: str
    stamp: str
    place: str
    download: str = ""
    listed: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Unreadable:
    """A package that has no page, since its name, its version or its files cannot be read.

    :param place: the path of the package.
    :param problems: messages that say what is wrong with the package.
    """

    place: str
    problems: Sequence[str]


class Source(Protocol):
    """A source of the releases that the pages show."""

    @property
    def title(self) -> str:
        """A text for the pages: whose packages they show, and where the packages come from."""

    def entries(self) -> Iterator[Entry | Unreadable]:
        """Yield all releases.

        :raises CatalogError: if a service does not answer.
        :raises OSError: if a directory cannot be read.
        """

    def fetched(self, entry: Entry) -> contextlib.AbstractContextManager[pathlib.Path]:
        """Return a context manager that yields the path of a release's archive or directory.

        The path is valid until the ``with`` statement ends.

        :raises LoaderError: if the archive cannot be fetched.
        """


class Local:
    """The packages in directories and bundles on this host."""

    def __init__(self, places: Sequence[str]) -> None:
        self._places = places

    @property
    def title(self) -> str:
        """A text for the pages: where the packages come from."""
        return f"the packages in {', '.join(self._places)}"

    def entries(self) -> Iterator[Entry | Unreadable]:
        """Yield all packages. A release is repeated if it is in several directories or bundles."""
        for place in self._places:
            if bundles.is_bundle(place):
                yield from _of_bundle(place)
            else:
                # A missing directory is an error, not an empty catalogue.
                pathlib.Path(place).stat()
                for path in local_packages.find(pathlib.Path(place), omitted=()):
                    yield _of_path(path, path.name if path.is_file() else "")

    @contextlib.contextmanager
    def fetched(self, entry: Entry) -> Iterator[pathlib.Path]:
        """Yield the path of a package. Nothing is downloaded, since the package is on this host."""
        yield pathlib.Path(entry.place)


class Service:
    """The packages of a service that a project can use.

    :param repository: the service.
    :param project: the id of the project; None for public packages only.
    :param title: a text for the pages: whose packages they show, and where these come from.
    """

    def __init__(self, repository: Repository, project: str | None, title: str) -> None:
        self._repository = repository
        self._project = project
        self.title = title
        self._packages: dict[str, StoredPackage] = {}

    def entries(self) -> Iterator[Entry | Unreadable]:
        """Yield the active releases that the project can use."""
        # An administrator sees the packages of other projects, which must not be on the pages. The
        # service selects those that the project can use; without a project, these are public ones.
        selection = Selection(project_id=self._project, distinct="version")
        for package in self._repository.packages(selection):
            others = ("private",) if self._project else ("private", "shared", "community")
            if package.visibility in others and package.owner != self._project:
                continue
            self._packages[package.id] = package
            listed = {
                key: package.fields[key]
                for key in ("categories", "tags", "keywords", "yanked", "created_at")
                if package.fields.get(key)
            } | {"owner": package.owner, "visibility": package.visibility}
            yield Entry(
                fqn=package.fqn,
                version=str(package.version),
                stamp=package.digest,
                place=package.id,
                download=f"openstack murano package save {package.id}",
                listed=listed,
            )

    @contextlib.contextmanager
    def fetched(self, entry: Entry) -> Iterator[pathlib.Path]:
        """Download an archive into a temporary file, and yield the path of the file."""
        # The file is closed, since a package can have more versions than a process can open files.
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "package.zip")
            package, name = self._packages[entry.place], self._repository.name
            pieces = self._repository.download(package)
            with open(file, "wb") as stream:
                stream.writelines(exports.checked(pieces, package, name, progress.ignore))
            yield file


class Kept:
    """A source that downloads each package only once, and keeps it on this host.

    :param source: the source of the packages.
    :param stack: the downloaded packages are removed when this stack is closed.
    """

    def __init__(self, source: Source, stack: contextlib.ExitStack) -> None:
        self._source = source
        self._stack = stack
        self._paths: dict[str, pathlib.Path] = {}

    @property
    def title(self) -> str:
        """A text for the pages: where the packages come from."""
        return self._source.title

    def entries(self) -> Iterator[Entry | Unreadable]:
        """Yield the packages of the source."""
        return self._source.entries()

    @contextlib.contextmanager
    def fetched(self, entry: Entry) -> Iterator[pathlib.Path]:
        """Yield the path of a package, which stays valid after the ``with`` statement."""
        if entry.place not in self._paths:
            self._paths[entry.place] = self._stack.enter_context(self._source.fetched(entry))
        yield self._paths[entry.place]


def _of_bundle(place: str) -> Iterator[Entry | Unreadable]:
    if bundles.is_url(place):
        raise bundles.BundleError(f"{place} is a URL; save the bundle with its archives first")
    for listed in bundles.read(place):
        if bundles.is_url(listed.place):
            raise bundles.BundleError(
                f"{place} has archives at URLs; save the bundle with its archives first"
            )
        path = pathlib.Path(listed.place)
        entry = _of_path(path, path.name)
        if isinstance(entry, Entry) and listed.digest not in ("", entry.stamp):
            problem = f"its SHA-256 is {entry.stamp}, but {place} has {listed.digest}"
            entry = Unreadable(str(path), [problem])
        yield entry


def _of_path(path: pathlib.Path, download: str) -> Entry | Unreadable:
    """Read the name and the version of a package in a file or a directory.

    :param download: the value of ``Entry.download``.
    """
    try:
        # This refuses links and devices, which nothing may read.
        with Archive.open(path) as archive:
            manifest = read_manifest(archive)
            stamp = fs.digest(path) if path.is_file() else _stamp(path, archive)
    except InvalidPackage as error:
        return Unreadable(str(path), [str(problem) for problem in error.problems])
    except (OSError, GlareMuranoError) as error:
        return Unreadable(str(path), [str(error)])
    return Entry(manifest.fqn, str(manifest.version), stamp, str(path), download)


def _stamp(root: pathlib.Path, archive: Archive) -> str:
    """Return a digest of all paths and files of a package that is a directory.

    Files that do not belong to the package, such as those of an editor, are not read. They may be
    links or named pipes.
    """
    digest = hashlib.sha256()
    for path in sorted(archive.paths):
        digest.update(f"{path}\0{fs.digest(root / path)}\0".encode())
    return digest.hexdigest()
