# SPDX-License-Identifier: Apache-2.0

"""Build the archive of a package: the same files always give the same archive.

Nothing is published. A directory can be published without building its archive before.
"""

import pathlib

from glare_murano.package import Archive, read_contents
from glare_murano.package.type_process import describe_for_author
from glare_murano.package.ui_form import FormCheck
from loader import errors, fs
from loader.authoring import local_packages
from loader.authoring.local_packages import LocalPackage


class BuildError(errors.LoaderError, ValueError):
    """The archive cannot be written to the requested file."""


def build(place: pathlib.Path, target: pathlib.Path | None = None) -> LocalPackage:
    """Check a package, and write its archive; an existing file is replaced.

    :param place: the directory or the ZIP file of the package.
    :param target: the file to write; by default, ``NAME.VERSION.zip`` in the current directory.
    :raises InvalidPackages: if the package breaks rules; the error has all problems.
    :raises WrongDirectory: if the directory's name is a version, but not the package's version.
    :raises BuildError: if the file would be inside the package's directory, or cannot be written.
    :raises OSError: if a file of the package cannot be read.
    """
    with local_packages.named(place), Archive.open(place) as archive:
        contents = read_contents(archive, describe_for_author, FormCheck.WARN)
        manifest = contents.manifest
        local_packages.check_place(place, manifest)
        target = target or pathlib.Path(f"{manifest.fqn}.{manifest.version}.zip")
        if place.is_dir() and target.resolve().is_relative_to(place.resolve()):
            raise BuildError(
                f"{target} would be a file of the package in {place}; name a file outside with "
                f"--file"
            )
        try:
            with fs.replaced(target) as stream:
                archive.pack(stream)
        except OSError as error:
            if error.filename != str(target):
                raise
            raise BuildError(
                f"cannot write {target}: {error.strerror}; name a file in a writable directory "
                f"with --file"
            ) from error
    return LocalPackage.of(str(place), target, contents)
