# SPDX-License-Identifier: Apache-2.0

"""The packages on this host: find, read and pack them, to publish or to check them.

The directory catalogue leaves invalid packages out; this module reports them.
"""

import contextlib
import dataclasses
import hashlib
import os
import pathlib
import tempfile
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import IO

from glare_murano.package import (
    Archive,
    Contents,
    InvalidPackage,
    InvalidVersion,
    Version,
    VersionSpec,
    parse_version,
    read_contents,
)
from glare_murano.package.archive import Source
from glare_murano.package.archive_rules import DEFAULT_LIMITS, check_size
from glare_murano.package.manifest import MANIFEST_FILE, Manifest, with_version
from glare_murano.package.safe_yaml import MAX_SIZE
from glare_murano.package.ui_form import FormCheck
from glare_murano.resolver import PackageVersion
from loader import errors
from loader.catalogs.directory import DEV


@dataclasses.dataclass(frozen=True)
class LocalPackage:
    """A valid package on this host.

    :param place: its directory or ZIP file, for messages.
    :param archive: its ZIP file, which a directory has been packed into.
    :param digest: the SHA-256 of the ZIP file, in hexadecimal.
    :param size: of the ZIP file, in bytes.
    """

    place: str
    archive: pathlib.Path
    contents: Contents
    digest: str
    size: int

    @property
    def fqn(self) -> str:
        """The name of the package."""
        return self.contents.manifest.full_name

    @property
    def version(self) -> Version:
        """The version of the package."""
        return self.contents.manifest.version

    @property
    def requirements(self) -> Mapping[str, VersionSpec]:
        """The requirements on other packages: FQN -> range."""
        required = self.contents.requirements.items()
        return {fqn: spec for fqn, spec in required if fqn != self.fqn}

    @property
    def key(self) -> PackageVersion:
        """Name and version."""
        return PackageVersion(self.fqn, self.version)

    def __str__(self) -> str:
        return f"{self.fqn} {self.version}"


class InvalidPackages(errors.LoaderError, ValueError):
    """Some packages are invalid or missing.

    :ivar problems: all problems, each with its directory or file.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class WrongDirectory(errors.LoaderError, ValueError):
    """A directory is called after another version than that of its package."""


def find(path: pathlib.Path, omitted: Collection[str] = (DEV,)) -> Iterator[pathlib.Path]:
    """Yield the directories and ZIP files of the packages in a path.

    The path is a ZIP file, the directory of a package, or a directory that is searched for
    both. In the layout of the specification "Murano versioning" (section "Developer
    impact"), ``FQN/dev`` is left out: it is published as a version by a release. Hidden
    directories and symbolic links are not searched.

    :param omitted: the names of other directories that are not searched.
    :raises OSError: if a directory cannot be read.
    """
    # Directories may be deeper than Python allows calls.
    waiting = [path]
    while waiting:
        place = waiting.pop()
        if not place.is_dir():
            yield place
            continue
        with os.scandir(place) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
        if any(entry.name == MANIFEST_FILE for entry in entries):
            yield place
            continue
        waiting += [
            pathlib.Path(entry.path)
            for entry in reversed(entries)
            if not entry.name.startswith(".")
            and entry.name not in omitted
            and (
                entry.is_dir(follow_symlinks=False)
                or (entry.name.lower().endswith(".zip") and entry.is_file(follow_symlinks=False))
            )
        ]


def read_all(
    paths: Iterable[pathlib.Path], folder: pathlib.Path, version: Version | None = None
) -> list[LocalPackage]:
    """Read all packages in paths, and pack directories into ZIP files.

    :param folder: the directory for the ZIP files.
    :param version: of all packages, in place of the version in their manifests.
    :raises InvalidPackages: with the problems of all packages; and if a path has none, or
        two packages of the same name and version differ.
    """
    found: dict[tuple[str, Version], LocalPackage] = {}
    problems: list[str] = []
    for path in paths:
        count = 0
        with _collected(problems, path):
            for place in find(path):
                count += 1
                with _collected(problems, place):
                    package = _read(place, folder, version)
                    first = found.setdefault((package.fqn, package.version), package)
                    if first.digest != package.digest:
                        problems.append(f"{place}: {first.place} is another {package}")
            if not count:
                problems.append(f"{path}: there is no package in this directory")
    if problems:
        raise InvalidPackages(problems)
    return list(found.values())


def receive(pieces: Iterable[bytes], file: pathlib.Path, place: str) -> LocalPackage:
    """Write a downloaded archive into a new file, and read it.

    :param place: the origin of the archive, for messages.
    :raises InvalidPackage: with all problems of the package, or if it is too large.
    :raises OSError: if the file cannot be written.
    """
    size = 0
    with open(file, "xb") as stream:
        for piece in pieces:
            size += len(piece)
            check_size(size, DEFAULT_LIMITS)
            stream.write(piece)
    return dataclasses.replace(_read(file, file.parent, None), place=place)


def same_files(package: LocalPackage, other: IO[bytes]) -> bool:
    """Check whether another archive of a package has the same files.

    Archives of different tools have different digests.

    :raises InvalidArchive: if the other archive is not valid.
    """
    return repacked_digest(package.archive) == repacked_digest(other)


def check_place(place: pathlib.Path, manifest: Manifest) -> None:
    """Check that a directory is not called after another version than its package.

    :raises WrongDirectory: if the directory is.
    """
    with contextlib.suppress(InvalidVersion):
        # "." has a name as well.
        name = os.path.basename(os.path.abspath(place))  # noqa: PTH100, PTH119
        if place.is_dir() and parse_version(name) != manifest.version:
            raise WrongDirectory(
                f"the directory is called after another version than {manifest.version}, which "
                f"its manifest has; rename the directory, or change Version"
            )


@contextlib.contextmanager
def named(place: object) -> Iterator[None]:
    """Name the place of a package in errors about it.

    :raises InvalidPackages: with all problems, instead of InvalidPackage.
    """
    try:
        yield
    except InvalidPackage as error:
        raise InvalidPackages(f"{place}: {problem}" for problem in error.everything) from error


def repacked_digest(source: Source) -> str:
    """Return the SHA-256 of the archive that a package of this host would be packed into.

    :raises InvalidArchive: if the archive is not valid.
    """
    with Archive.open(source) as archive, tempfile.TemporaryFile() as packed:
        archive.pack(packed)
        packed.seek(0)
        return hashlib.file_digest(packed, "sha256").hexdigest()


def _read(place: pathlib.Path, folder: pathlib.Path, version: Version | None) -> LocalPackage:
    """Read and check a package; pack a directory, and a package that gets another version.

    :raises InvalidPackage: with all its problems.
    :raises OSError: if it cannot be read.
    """
    with Archive.open(place) as archive:
        contents = read_contents(archive, form_check=FormCheck.WARN)
        packed = folder / f"{uuid.uuid4().hex}.zip"
        if version is not None:
            manifest = with_version(archive.read(MANIFEST_FILE, MAX_SIZE), version)
            with open(packed, "xb") as stream:
                archive.pack(stream, {MANIFEST_FILE: manifest})
            contents = dataclasses.replace(contents, manifest=Manifest.parse(manifest))
        elif place.is_dir():
            check_place(place, contents.manifest)
            with open(packed, "xb") as stream:
                archive.pack(stream)
        else:
            archive.verify()
            packed = place
    with open(packed, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return LocalPackage(str(place), packed, contents, digest, stream.tell())


@contextlib.contextmanager
def _collected(problems: list[str], place: pathlib.Path) -> Iterator[None]:
    try:
        yield
    except InvalidPackage as error:
        problems += [f"{place}: {problem}" for problem in error.everything]
    except OSError as error:
        problems.append(f"{error.filename or place}: {error.strerror or error}")
    except errors.LoaderError as error:
        problems.append(f"{place}: {error}")
