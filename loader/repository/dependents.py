# SPDX-License-Identifier: Apache-2.0

"""The packages in the repository that require a package."""

from collections.abc import Iterator

from glare_murano import wire
from glare_murano.package import VersionSpec
from loader.repository.client import Repository
from loader.repository.stored_package import StoredPackage


def find(repository: Repository, package: StoredPackage) -> Iterator[StoredPackage]:
    """Yield the active packages that require a package in a range with its version.

    :raises CatalogError: if the service does not answer.
    """
    for requirer in repository.requiring([package.fqn]):
        spec = range_of(requirer, package.fqn)
        if spec is not None and spec.match(package.version):
            yield requirer


def range_of(requirer: StoredPackage, fqn: str) -> VersionSpec | None:
    """Return the range in which a package requires another one; None if it does not require it.

    Each package also requires itself; this requirement is ignored.

    :raises Malformed: if the service sends no valid range.
    """
    ranges = wire.get(requirer.fields, "requirements", wire.ranges_from_json)
    return None if requirer.fqn == fqn else ranges.get(fqn)
