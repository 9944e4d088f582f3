# SPDX-License-Identifier: Apache-2.0

"""Find the releases for a catalogue of pages, and fetch their archives.

A source is a directory, a bundle, or a service of a cloud. From a service, only those packages come
that the caller's project can use.
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
    """A release to show.

    :param stamp: a string that changes if a file of the release changes.
    :param place: the path of its archive or directory; for a package in a service, its id.
    :param download: how to get the archive, for the page: a file name or a command; empty if the
        package is a directory.
    :param listed: fields that do not come from the archive, such as ``owner``; empty if the package
        is in no service.
    """

    fqn: str
    version: str
    stamp: str
    place: str
    download: str = ""
    listed: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Unreadable:
    """A package without a readable name or version.

    :param place: its path.
    :param problems: what is wrong with it, as messages.
    """

    place: str
    problems: Sequence[str]


class Source(Protocol):
    """Where releases come from."""

    @property
    def title(self) -> str:
        """Whose packages are shown, and where they come from, for the pages."""

    def entries(self) -> Iterator[Entry | Unreadable]:
        """Yield all releases.

        :raises CatalogError: if a service does not answer.
        :raises OSError: if a directory cannot be read.
        """

    def fetched(self, entry: Entry) -> contextlib.AbstractContextManager[pathlib.Path]:
        """Return a context with the path of a release's archive or directory.

        :raises LoaderError: if the archive cannot be fetched.
        """


class Local:
    """The packages below directories and in bundles of this host."""

    def __init__(self, places: Sequence[str]) -> None:
        self._places = places

    @property
    def title(self) -> str:
        """Where the packages come from, for the pages."""
        return f"the packages in {', '.join(self._places)}"

    def entries(self) -> Iterator[Entry | Unreadable]:
        """Yield all packages; a release that is in several places is repeated."""
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
        """Yield the path of the package, which is on this host."""
        yield pathlib.Path(entry.place)


class Service:
    """The packages of a service that a project can use.

    :param project: the id of the project.
    :param title: who sees what, for the pages.
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
        """Download the archive into a temporary file, and yield its path."""
        # The file is closed, since a package can have more versions than a process can open files.
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "package.zip")
            package, name = self._packages[entry.place], self._repository.name
            pieces = self._repository.download(package)
            with open(file, "wb") as stream:
                stream.writelines(exports.checked(pieces, package, name, progress.ignore))
            yield file


class Kept:
    """A source whose packages stay on this host until the end, so each is downloaded once.

    :param source: the source of the packages.
    :param stack: what removes the downloaded packages.
    """

    def __init__(self, source: Source, stack: contextlib.ExitStack) -> None:
        self._source = source
        self._stack = stack
        self._paths: dict[str, pathlib.Path] = {}

    @property
    def title(self) -> str:
        """Where the packages come from, for the pages."""
        return self._source.title

    def entries(self) -> Iterator[Entry | Unreadable]:
        """Yield the packages of the source."""
        return self._source.entries()

    @contextlib.contextmanager
    def fetched(self, entry: Entry) -> Iterator[pathlib.Path]:
        """Yield the path of a package, which also stays after the block."""
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
    """Read the name and the version of a package in a file or a directory."""
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
    """Return a digest of the paths and the files of a package in a directory.

    Other files, such as those of an editor, are not read. They may be links or named pipes.
    """
    digest = hashlib.sha256()
    for path in sorted(archive.paths):
        digest.update(f"{path}\0{fs.digest(root / path)}\0".encode())
    return digest.hexdigest()
