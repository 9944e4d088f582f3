# SPDX-License-Identifier: Apache-2.0

"""Find, read and pack the packages on this host, before they are published or checked.

The directory catalogue leaves out invalid packages; this module reports them.
"""

import contextlib
import dataclasses
import functools
import os
import pathlib
import uuid
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from glare_murano import fields
from glare_murano.package import (
    Archive,
    Contents,
    InvalidPackage,
    InvalidVersion,
    Problem,
    Version,
    VersionSpec,
    parse_version,
    read_contents,
)
from glare_murano.package.archive import Source
from glare_murano.package.manifest import MANIFEST_FILE, Manifest, with_version
from glare_murano.package.safe_yaml import MAX_SIZE
from glare_murano.package.type_process import describe_for_author
from glare_murano.package.ui_form import FormCheck
from glare_murano.resolver import PackageVersion
from loader import errors, fs
from loader.catalogs.directory import DEV


@dataclasses.dataclass(frozen=True)
class LocalPackage:
    """A valid package on this host.

    :param place: the directory or ZIP file of the package, for messages.
    :param archive: the ZIP file; for a directory, the file into which it was packed.
    :param key: the package's name and version.
    :param values: the values of its fields, as from ``fields.from_contents``.
    :param warnings: mistakes in the package that do not prevent its publication.
    :param digest: the SHA-256 of the ZIP file, in hexadecimal.
    :param size: the size of the ZIP file, in bytes.
    """

    place: str
    archive: pathlib.Path
    key: PackageVersion
    values: Mapping[str, Any]
    warnings: tuple[Problem, ...]
    digest: str
    size: int

    @classmethod
    def of(cls, place: str, archive: pathlib.Path, contents: Contents) -> "LocalPackage":
        """Describe a package whose archive was read in this process.

        :param contents: what was read from the archive.
        """
        key = PackageVersion(contents.manifest.fqn, contents.manifest.version)
        values = fields.from_contents(contents)
        digest, size = fs.digest(archive), archive.stat().st_size
        return cls(place, archive, key, values, contents.warnings, digest, size)

    @property
    def fqn(self) -> str:
        """The fully qualified name of the package."""
        return self.key.fqn

    @property
    def version(self) -> Version:
        """The version of the package."""
        return self.key.version

    @functools.cached_property
    def requirements(self) -> Mapping[str, VersionSpec]:
        """The ranges of required packages, by FQN; the package itself is left out."""
        required = self.values["requirements"].items()
        return {fqn: VersionSpec.of(text) for fqn, text in required if fqn != self.fqn}

    def has_files_of(self, other: IO[bytes]) -> bool:
        """Return whether this package and another archive have the same files.

        Different tools pack the same files differently. So both archives are packed again in the
        same way, and then compared.

        :raises InvalidArchive: if the other archive is not valid.
        """
        return repacked_digest(self.archive) == repacked_digest(other)

    def __str__(self) -> str:
        return f"{self.fqn} {self.version}"


class InvalidPackages(errors.LoaderError, ValueError):
    """Some packages are invalid or missing.

    :ivar problems: all problems, each with the directory or file of its package.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class PartOfPackage(errors.LoaderError, ValueError):
    """A path names a file in the directory of a package, instead of the directory."""


class WrongDirectory(errors.LoaderError, ValueError):
    """The name of a directory is a version, but its package has another version."""


def find(path: pathlib.Path, omitted: Collection[str] = (DEV,)) -> Iterator[pathlib.Path]:
    """Yield the directories and the ZIP files of all packages at a path, or below it.

    A path that is not a directory is yielded as it is, without a check. Hidden directories and
    symbolic links are not searched. By default, directories called ``dev`` are not searched either:
    a package in development has no version until the command ``package release`` sets it
    (specification "Murano versioning", section "Developer impact").

    :param path: the ZIP file or the directory of a package, or a directory to search.
    :param omitted: the names of directories that are not searched.
    :raises OSError: if a directory cannot be read.
    """
    # This does not recurse, since directories may be nested deeper than Python's calls.
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
    """Read all packages at the given paths and below them, and pack directories into ZIP files.

    :param folder: the directory for the ZIP files.
    :param version: the version that all packages get instead of the version in their manifests.
    :returns: the packages; if a package is found twice with the same files, only the first.
    :raises InvalidPackages: if packages have problems, if there is no package below a path, or if
        two different packages have the same name and version. The error has all problems.
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
                        problems.append(
                            f"{place}: {first.place} has the same name and version, {package}, but "
                            f"other files; remove one of them"
                        )
            if not count:
                problems.append(f"{path}: there is no package in this directory")
    if problems:
        raise InvalidPackages(problems)
    return list(found.values())


def receive(pieces: Iterable[bytes], file: pathlib.Path, place: str) -> LocalPackage:
    """Write a downloaded archive into a new file, and read the package in it.

    :param pieces: the content of the archive.
    :param place: where the archive comes from, for messages.
    :raises InvalidPackage: if the package breaks rules; the error has all problems.
    :raises OSError: if the file cannot be written.
    """
    with open(file, "xb") as stream:
        stream.writelines(pieces)
    return dataclasses.replace(_read(file, file.parent, None), place=place)


def check_place(place: pathlib.Path, manifest: Manifest) -> None:
    """Check that a directory whose name is a version has a package of this version.

    ZIP files, and directories with other names, are not checked.

    :param place: the directory or the ZIP file of the package.
    :raises WrongDirectory: if the package has another version.
    """
    with contextlib.suppress(InvalidVersion):
        # The place may be ".", so its absolute path is needed for the name.
        name = os.path.basename(os.path.abspath(place))  # noqa: PTH100, PTH119
        if place.is_dir() and parse_version(name) != manifest.version:
            raise WrongDirectory(
                f"the directory is called {name}, but Version in the manifest is "
                f"{manifest.version}; rename the directory, or change Version"
            )


def find_form_problems(package: LocalPackage) -> Sequence[Problem]:
    """Return the problems that prevent the dashboard from showing the form of a package.

    By default, services accept such packages, but they can be configured to refuse them.
    """
    with Archive.open(package.archive) as archive:
        try:
            read_contents(archive, form_check=FormCheck.ENFORCE)
        except InvalidPackage as error:
            return error.problems
    return ()


@contextlib.contextmanager
def named(place: object) -> Iterator[None]:
    """Raise InvalidPackages if the ``with`` block raises InvalidPackage.

    The new error has all problems of the old one, each with the place of the package in front.

    :param place: the directory or the ZIP file of the package.
    :raises InvalidPackages: if the block raises InvalidPackage.
    """
    try:
        yield
    except InvalidPackage as error:
        raise InvalidPackages(f"{place}: {problem}" for problem in error.everything) from error


def repacked_digest(source: Source) -> str:
    """Return ``Archive.repacked_digest`` of a package, which is equal for the same files.

    :raises InvalidArchive: if the archive is not valid.
    """
    with Archive.open(source) as archive:
        return archive.repacked_digest()


def pack(archive: Archive, target: pathlib.Path, manifest: bytes | None = None) -> None:
    """Write a package into a new ZIP file.

    :param manifest: the content that replaces the manifest; None keeps the manifest.
    :raises InvalidArchive: if the archive is not valid.
    :raises OSError: if the file exists, or cannot be written.
    """
    with open(target, "xb") as stream:
        archive.pack(stream, {} if manifest is None else {MANIFEST_FILE: manifest})


def _read(place: pathlib.Path, folder: pathlib.Path, version: Version | None) -> LocalPackage:
    """Read and check a package; pack it if it is a directory, or if it gets another version.

    :param folder: the directory for the new ZIP file.
    :param version: the version of the new ZIP file; None keeps the version in the manifest.
    :raises InvalidPackage: if the package breaks rules; the error has all problems.
    :raises PartOfPackage: if the place is a file in the directory of a package.
    :raises WrongDirectory: if the directory's name is a version, but not the package's version.
    :raises OSError: if a file cannot be read or written.
    """
    _check_whole(place)
    with Archive.open(place) as archive:
        contents = read_contents(archive, describe_for_author, FormCheck.WARN)
        packed = folder / f"{uuid.uuid4().hex}.zip"
        if version is not None:
            manifest = with_version(archive.read(MANIFEST_FILE, MAX_SIZE), version)
            pack(archive, packed, manifest)
            contents = dataclasses.replace(contents, manifest=Manifest.parse(manifest))
        elif place.is_dir():
            check_place(place, contents.manifest)
            pack(archive, packed)
        else:
            archive.verify()
            packed = place
    return LocalPackage.of(str(place), packed, contents)


def _check_whole(place: pathlib.Path) -> None:
    """Check that a path is not a file in the directory of a package, such as the manifest.

    :raises PartOfPackage: if it is one.
    """
    if not place.is_file() or zipfile.is_zipfile(place):
        return
    for directory in (place.parent, place.parent.parent):
        if (directory / MANIFEST_FILE).is_file():
            raise PartOfPackage(
                f"is a file of a package; name the directory of the package, {directory}"
            )


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
