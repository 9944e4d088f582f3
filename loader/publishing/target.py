# SPDX-License-Identifier: Apache-2.0

"""Find the packages that a service already has, before packages are published to it.

Several steps of a publication need the service's packages with the names of the published ones.
Each name is requested from the service only once.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from loader.catalogs import stored_package
from loader.catalogs.repository import Repository
from loader.catalogs.stored_package import StoredPackage


class Target:
    """The packages in a service that one project can use; each name is requested only once.

    :ivar repository: the client for all packages in the service.
    """

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self._found: dict[str, Sequence[StoredPackage]] = {}

    def named(self, fqns: Collection[str]) -> Mapping[str, Sequence[StoredPackage]]:
        """Return a mapping of names to the packages with these names, in any state.

        :raises CatalogError: if the service does not answer.
        """
        if missing := set(fqns) - self._found.keys():
            self._found |= dict.fromkeys(missing, ())
            self._found |= stored_package.by_name(self._search(missing))
        return {fqn: self._found[fqn] for fqn in fqns}

    def _search(self, fqns: Collection[str]) -> Iterator[StoredPackage]:
        project = self.repository.project()
        for stored in self.repository.named(fqns):
            # An administrator also sees the private packages of other projects. The project is
            # unknown if a token is used without Keystone. Other users see a shared package only if
            # their project has accepted it.
            if project in (None, stored.owner) or stored.visibility in ("public", "shared"):
                yield stored
