# SPDX-License-Identifier: Apache-2.0

"""Find releases in Murano's own API, for a cloud where Murano itself keeps the packages.

For each name, Murano keeps one archive for each project, and public archives. Its lists contain
neither versions nor requirements. So each archive is downloaded and read, and then kept until the
loader fetches it. Murano never changes the archive of an id, so a host reads each archive once.

python-muranoclient is not used, since it reads a whole download into memory.
"""

import dataclasses
import logging
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from keystoneauth1 import session as ksa_session
from oslo_config import cfg

from glare_murano.package import InvalidPackage
from glare_murano.wire import Release
from loader import errors
from loader.catalogs import base, metadata_cache
from loader.catalogs.metadata_cache import MetadataCache
from loader.catalogs.openstack import ServiceCatalog
from loader.catalogs.spool import Spool
from loader.transport.sessions import Scope

LOG = logging.getLogger(__name__)

PATH = "/v1/catalog/packages"
# How many packages one page of a list has.
PAGE = 100


class MuranoCatalog(ServiceCatalog):
    """A catalogue of one Murano API; it has a project's own packages and public packages.

    >>> catalog = MuranoCatalog(session, region_name="north")
    """

    title = "Murano's API"
    service_type = "application-catalog"
    group = "murano"

    def __init__(
        self, session: ksa_session.Session, *, metadata: MetadataCache | None = None, **others: Any
    ) -> None:
        """Make a catalogue; no request is sent.

        :param metadata: the cache for the metadata of packages; by default a new one, in memory
            only.
        :param others: further arguments for ``ServiceCatalog``.
        """
        super().__init__(session, **others)
        self._metadata = metadata or MetadataCache()
        self._spool = Spool(self._limits)

    def releases(self, fqn: str) -> list[Release]:
        return [release for release in self._releases("fqn", fqn) if release.fqn == fqn]

    def releases_defining(self, class_name: str) -> list[Release]:
        found = self._releases("class_name", class_name)
        return [release for release in found if class_name in release.classes]

    def fetch(self, release: Release) -> Iterator[bytes]:
        return self._spool.take(release.digest) or self._download(release.id)

    def _releases(self, key: str, value: str) -> list[Release]:
        """List the releases that the API finds, the newest first.

        If several releases have the same version, the project's own releases come first.

        :param key: the parameter of the API, such as ``fqn``.
        :param value: the value of the parameter.
        """
        project = self.project()
        query = [(key, value), ("catalog", "true"), ("limit", str(PAGE))]
        listed = self._client.items(PATH, "packages", query, next_marker)
        usable = [package for package in listed if _is_usable(package, project)]
        usable.sort(key=lambda package: str(package["id"]))
        found = (release for package in usable if (release := self._release(package)))
        return base.newest_first(base.own_first(found, project))

    def _release(self, package: Mapping[str, Any]) -> Release | None:
        """Return the release in the archive of a package; None if the archive is invalid.

        :param package: the package, as the API lists it.
        """
        package_id = package["id"]
        key = f"{self.name} {package_id}"
        release = self._metadata.get(key)
        if release is None:
            try:
                release = self._spool.add(self._download(package_id), package_id)
            except InvalidPackage as error:
                LOG.warning("Left out package %s of %s: %s", package_id, self.name, error)
                return None
            except OSError as error:
                raise errors.CatalogError(
                    f"package {package_id} of {self.name} cannot be written to a temporary file: "
                    f"{error}"
                ) from error
            self._metadata.put(key, release)
        visibility = "public" if package["is_public"] else "private"
        return dataclasses.replace(release, owner=package["owner_id"], visibility=visibility)

    def _download(self, package_id: str) -> Iterator[bytes]:
        return self._client.download(
            archive_path(package_id), f"the archive of package {package_id}"
        )


def archive_path(package_id: str) -> str:
    """Return the path of a package's archive in Murano's API."""
    return f"{PATH}/{urllib.parse.quote(package_id, safe='')}/download"


def next_marker(answer: Mapping[str, Any]) -> Any:
    """Return the marker of the page that follows an answer; None after the last page."""
    return answer.get("next_marker")


def _is_usable(package: Any, project: str | None) -> TypeGuard[dict[str, Any]]:
    """Return whether an item of a list is a package that is public or belongs to the project."""
    if not isinstance(package, dict) or not isinstance(package.get("id"), str):
        return False
    owner = package.get("owner_id")
    return isinstance(owner, str) and (package.get("is_public") is True or owner == project)


OPTIONS = {**MuranoCatalog.service_options(), **metadata_cache.OPTIONS}


def catalogs(conf: cfg.ConfigOpts, scope: Scope) -> list[MuranoCatalog]:
    """Make the catalogue for Murano's API; this is an entry point."""
    return [MuranoCatalog.configured(conf, scope, metadata=metadata_cache.configured(conf))]
