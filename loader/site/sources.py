# SPDX-License-Identifier: Apache-2.0

"""The releases that a catalogue of pages shows, and where their archives come from.

A source is a directory, a bundle, or a service of a cloud. Only what the caller may use is found:
of a service, public packages and those of the caller's project.
"""

import contextlib
import dataclasses
import pathlib
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from glare_murano.package import Archive, GlareMuranoError, InvalidPackage, read_manifest
from glare_murano.selection import Selection
from loader import fs
from loader.authoring import local_packages
from loader.catalogs.repository import Repository
from loader.catalogs.stored_package import StoredPackage
from loader.publishing import bundles


@dataclasses.dataclass(frozen=True)
class Entry:
    """A release to show.

    :param stamp: a string that changes if a file of the release changes.
    :param place: where its archive is: a path, or an id.
    :param download: where the caller can download it, for the page; empty if nowhere.
    :param listed: what the service says about it beside its archive, such as ``owner``.
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
        """For whom the pages are, and from where, for the pages."""

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
        """For whom the pages are, and from where."""
        return f"the packages in {', '.join(self._places)}"

    def entries(self) -> Iterator[Entry | Unreadable]:
        """Yield all packages; of the same version in several places, the first one is shown."""
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
        # An administrator sees the private packages of others, which must not be on the pages.
        selection = Selection(project_id=self._project, distinct="version")
        for package in self._repository.packages(selection):
            if package.visibility == "private" and package.owner != self._project:
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
        with tempfile.NamedTemporaryFile(suffix=".zip") as file:
            file.writelines(self._repository.download(self._packages[entry.place]))
            file.flush()
            yield pathlib.Path(file.name)


def _of_bundle(place: str) -> Iterator[Entry | Unreadable]:
    if bundles.is_url(place):
        raise bundles.BundleError(f"{place} is a URL; save the bundle with its archives first")
    for listed in bundles.read(place):
        if bundles.is_url(listed.place):
            raise bundles.BundleError(
                f"{place} has archives at URLs; save the bundle with its archives first"
            )
        yield _of_path(pathlib.Path(listed.place), pathlib.Path(listed.place).name)


def _of_path(path: pathlib.Path, download: str) -> Entry | Unreadable:
    """Read the name and the version of a package in a file or a directory."""
    try:
        # This refuses links and devices, which nothing may read.
        with Archive.open(path) as archive:
            manifest = read_manifest(archive)
        stamp = fs.digest(path) if path.is_file() else local_packages.repacked_digest(path)
    except InvalidPackage as error:
        return Unreadable(str(path), [str(problem) for problem in error.problems])
    except (OSError, GlareMuranoError) as error:
        return Unreadable(str(path), [str(error)])
    return Entry(manifest.fqn, str(manifest.version), stamp, str(path), download)
