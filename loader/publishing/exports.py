# SPDX-License-Identifier: Apache-2.0

"""Export packages of a catalogue as ZIP files, and as a bundle for a cloud without a network."""

import hashlib
import pathlib
from collections.abc import Iterable, Iterator

from glare_murano.package import VersionSpec
from glare_murano.wire import Query, Release
from loader import errors, fs, resolution
from loader.catalogs.base import Catalog
from loader.catalogs.stored_package import StoredPackage
from loader.progress import Progress, Report
from loader.publishing import bundles
from loader.publishing.bundles import Entry


def choose(
    catalog: Catalog, fqn: str, spec: VersionSpec, package_id: str = ""
) -> tuple[Release, list[Release]]:
    """Return the newest release in a range, and a list of this release and all that it requires.

    The list includes what the required releases require, and so on.

    :param package_id: the id that the release must have; by default, any id.
    :raises NoSuchPackage: if a package or a required package is missing.
    :raises NotFound: if the newest release in the range has another id.
    :raises CatalogError: if the catalogue cannot be read.
    """
    resolved = resolution.resolve([catalog], Query(((fqn, spec),)))
    missing = [resolved.error(each, [catalog]) for each in resolved.unsatisfied]
    if missing:
        raise errors.NoSuchPackage.combine(missing)
    root = resolved.find(fqn, spec)
    if root is None:
        raise errors.NotFound(f"package {fqn} {spec} was not found in {catalog.name}")
    if package_id not in ("", root.release.id):
        raise errors.NotFound(
            f"the package {package_id} is {root.release}, but your project has its own package of "
            f"this version, {root.release.id}; name that one"
        )
    return root.release, [choice.release for choice in resolved.chosen]


def file_name(release: Release) -> str:
    """Return the name of the ZIP file for a release."""
    return f"{release.fqn}.{release.version}.zip"


def save(catalog: Catalog, release: Release, path: pathlib.Path, report: Report) -> None:
    """Save the archive of a release in a file, and check its digest.

    If the file already has this archive, nothing is downloaded. A failed or killed download leaves
    no file with this name.

    :param report: a function that is called with the progress of the download.
    :raises NotAFile: if the path is a directory.
    :raises FileExistsError: if a file with another content has this name.
    :raises DigestMismatch: if the archive has another digest.
    :raises CatalogError: if the download fails.
    :raises OSError: if the file cannot be written.
    """
    if path.is_dir():
        raise errors.NotAFile(f"{path} is a directory; name a file")
    if not _has_digest(path, release.digest):
        with fs.created(path) as file:
            file.writelines(checked(catalog.fetch(release), release, catalog.name, report))


def checked(
    pieces: Iterable[bytes],
    package: Release | StoredPackage,
    source: str,
    report: Report,
) -> Iterator[bytes]:
    """Yield the pieces of a package's archive, and check its digest after the last piece.

    If the package has no digest, nothing is checked.

    :param source: the name of the service that sends the archive, for the error.
    :param report: a function that is called with the progress after each piece.
    :raises DigestMismatch: if the archive does not have the digest of the package.
    """
    digest, size = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
        report(Progress(str(package), size, package.size))
        yield piece
    if package.digest and digest.hexdigest() != package.digest:
        raise errors.DigestMismatch(
            f"the archive of {package} has the SHA-256 {digest.hexdigest()}, but {source} says "
            f"{package.digest}; try again"
        )


def save_bundle(
    catalog: Catalog, releases: list[Release], folder: pathlib.Path, report: Report
) -> pathlib.Path:
    """Save releases as ZIP files in a directory, and write a bundle that lists them.

    Archives that the directory already has are not downloaded. A file with other content is
    replaced when the download is complete.

    :returns: the path of the bundle, which is written last.
    :raises LoaderError: as in ``save``.
    :raises OSError: if a file cannot be written.
    """
    fs.make_directory(folder)
    for release in releases:
        path = folder / file_name(release)
        if not _has_digest(path, release.digest):
            with fs.replaced(path) as file:
                file.writelines(checked(catalog.fetch(release), release, catalog.name, report))
    bundle = folder / "packages.bundle"
    bundles.write(
        bundle,
        [Entry(r.fqn, str(r.version), file_name(r), r.digest) for r in releases],
    )
    return bundle


def _has_digest(path: pathlib.Path, digest: str) -> bool:
    return path.is_file() and fs.digest(path) == digest
