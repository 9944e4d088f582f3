# SPDX-License-Identifier: Apache-2.0

"""The packages in the repository that require a package."""

from collections.abc import Iterator

from glare_murano import wire
from glare_murano.package import VersionSpec
from loader.repository.client import Repository
from loader.repository.stored_package import Selection, StoredPackage


def find(repository: Repository, package: StoredPackage) -> Iterator[StoredPackage]:
    """Yield the active packages whose range upon a package contains its version.

    :raises CatalogError: if the service does not answer.
    """
    selection = Selection(values={"requirements": package.fqn, "status": "active"})
    for requirer in repository.packages(selection):
        if required_range(requirer, package.fqn).match(package.version):
            yield requirer


def required_range(requirer: StoredPackage, fqn: str) -> VersionSpec:
    """Return the range of a requirement.

    :raises Malformed: if the service sends no valid range.
    """
    return wire.get(requirer.fields, "requirements", wire.ranges_from_json)[fqn]
