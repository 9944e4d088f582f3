# SPDX-License-Identifier: Apache-2.0

"""List the packages in a cache by name and version.

The cache itself knows only digests. Names and versions are read from the manifests in the archives.
"""

import dataclasses

from glare_murano import resolver
from glare_murano.package import Archive, GlareMuranoError, Version
from glare_murano.package.contents import read_manifest
from loader import errors
from loader.cache.store import Cache, StoredArchive
from loader.references import AmbiguousReference, PackageReference


@dataclasses.dataclass(frozen=True)
class CachedPackage:
    """A package in the cache, with the name and version in its manifest.

    :param fqn: the name; empty if the manifest cannot be read.
    :param version: the version; None if the manifest cannot be read.
    :param stored: the archive, as the cache lists it.
    """

    fqn: str
    version: Version | None
    stored: StoredArchive

    def __str__(self) -> str:
        return f"{self.fqn} {self.version}" if self.version else self.stored.digest


def read_all(cache: Cache) -> list[CachedPackage]:
    """Return all packages in a cache, sorted by name, the newest version of each name first.

    :raises CacheError: if the cache cannot be read.
    """
    packages = [_read(stored) for stored in cache.stored()]
    newest_first = resolver.newest_first(p.version for p in packages if p.version)
    rank: dict[Version | None, int] = {version: i for i, version in enumerate(newest_first)}
    return sorted(packages, key=lambda p: (p.fqn, rank.get(p.version, 0), p.stored.digest))


def find(cache: Cache, reference: PackageReference | str) -> CachedPackage:
    """Return the newest package in a range, or the package whose archive has a given digest.

    :param reference: a name and a range; a string is the SHA-256 digest of an archive.
    :raises NotFound: if the cache does not have the package.
    :raises AmbiguousReference: if the cache has several archives of the newest version.
    :raises CacheError: if the cache cannot be read.
    """
    packages = read_all(cache)
    found = [package for package in packages if _matches(package, reference)]
    if not found:
        raise errors.NotFound(
            f"{reference} was not found in the cache {cache.folder}; "
            f"it has {errors.listed(map(str, packages))}"
        )
    same = [package for package in found if package.version == found[0].version]
    if len(same) > 1:
        digests = ", ".join(package.stored.digest for package in same)
        raise AmbiguousReference(
            f"the cache {cache.folder} has several archives of {found[0]}; name one by its "
            f"digest: {digests}"
        )
    return found[0]


def _matches(package: CachedPackage, reference: PackageReference | str) -> bool:
    if isinstance(reference, str):
        return package.stored.digest == reference
    if package.version is None or package.fqn != reference.fqn:
        return False
    return reference.spec.match(package.version)


def _read(stored: StoredArchive) -> CachedPackage:
    try:
        with Archive.open(stored.archive) as archive:
            manifest = read_manifest(archive)
    # The archive is damaged, or another process has removed it meanwhile.
    except (GlareMuranoError, OSError):
        return CachedPackage("", None, stored)
    return CachedPackage(manifest.fqn, manifest.version, stored)
