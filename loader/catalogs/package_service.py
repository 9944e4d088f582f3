# SPDX-License-Identifier: Apache-2.0

"""Find the service that keeps the packages of a cloud: Glare or Glance.

The user names the service with ``--os-murano-catalog``, ``OS_MURANO_CATALOG`` or ``murano_catalog``
in ``clouds.yaml``. By default, the service that the cloud has is used. Nearly every cloud has
Glance, but not for packages. So if a cloud has both services, a request to Glance finds out whether
it has this project's WSGI filter for packages. If Glance has the filter, the user has to name a
service. Otherwise, Glare is used.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from loader import errors
from loader.catalogs.glance import GlanceCatalog, GlanceRepository
from loader.catalogs.glare import GlareCatalog, GlareRepository
from loader.catalogs.openstack import ServiceCatalog
from loader.catalogs.repository import Repository
from loader.transport.adapter import ServiceAdapter

if TYPE_CHECKING:
    from openstack.config.cloud_region import CloudRegion

OPTION = "murano_catalog"
_DISCOVERY_PATH = "/murano"


class UnknownService(errors.LoaderError, ValueError):
    """The user has named an unknown service; or none, although Glare and Glance have packages."""


@dataclasses.dataclass(frozen=True)
class PackageService:
    """A kind of service that keeps packages.

    :param name: the name by which users choose the service.
    :param repository_class: the class of clients that find and change all packages.
    :param catalog_class: the class of clients that find the releases that can be loaded.
    """

    name: str
    repository_class: type[Repository]
    catalog_class: type[ServiceCatalog]

    @property
    def service_type(self) -> str:
        """The service's type in Keystone's catalogue."""
        return self.catalog_class.service_type

    def repository(self, cloud: "CloudRegion") -> Repository:
        """Make a client for all packages in a cloud, for publishers."""
        return self.repository_class(cloud.get_session(), **self._arguments(cloud))

    def catalog(self, cloud: "CloudRegion") -> ServiceCatalog:
        """Make a catalogue of the releases in a cloud that can be loaded."""
        return self.catalog_class(cloud.get_session(), **self._arguments(cloud))

    def _arguments(self, cloud: "CloudRegion") -> dict[str, Any]:
        # Without Keystone, only the cloud's configuration has the project.
        project_id = cloud.config.get(f"{self.service_type}_project_id")
        return {"project_id": project_id, **_place(cloud, self.service_type)}


GLARE = PackageService("glare", GlareRepository, GlareCatalog)
GLANCE = PackageService("glance", GlanceRepository, GlanceCatalog)
SERVICES = {service.name: service for service in (GLARE, GLANCE)}


def of_cloud(cloud: "CloudRegion", name: str | None = None) -> PackageService:
    """Return the service that keeps the packages of a cloud.

    :param name: the service that the user names; by default, the service that the cloud's
        configuration names.
    :raises UnknownService: if the name is unknown; or if no service is named, and both Glare and
        Glance may have packages.
    :raises CatalogError: if Keystone does not answer.
    """
    name = name or cloud.config.get(OPTION)
    if name:
        if name not in SERVICES:
            raise UnknownService(f"{OPTION} = {name!r}: expected {' or '.join(SERVICES)}")
        return SERVICES[name]
    services = _with_endpoint(cloud, lambda service: cloud.get_endpoint(service.service_type))
    services = services or _with_endpoint(cloud, lambda service: _client(cloud, service).endpoint())
    if services == {GLANCE}:
        return GLANCE
    if services == {GLARE, GLANCE} and _has_filter(cloud):
        raise UnknownService(
            f"the cloud {cloud.name} has packages in Glare and in Glance; choose one with "
            f"{OPTION} in clouds.yaml, or with --os-murano-catalog, and for the target of a copy "
            f"with --to-catalog"
        )
    return GLARE


def _place(cloud: "CloudRegion", service_type: str) -> dict[str, Any]:
    """Return a service's endpoint, interface and region, as arguments for ``ServiceClient``."""
    interface = cloud.get_interface(service_type)
    return {
        "endpoint": cloud.get_endpoint(service_type),
        # The configuration also allows a list, in the order of preference.
        "interface": interface if isinstance(interface, str) else None,
        "region_name": cloud.get_region_name(service_type),
    }


def client(
    cloud: "CloudRegion", service_type: str, title: str, url: str | None = None
) -> ServiceAdapter:
    """Make a client for any service in a cloud.

    :param service_type: the service's type in Keystone's catalogue.
    :param title: the service's name in messages.
    :param url: the service's URL; by default, the URL in the cloud's configuration, or in
        Keystone's catalogue.
    """
    place = _place(cloud, service_type)
    endpoint = place.pop("endpoint")
    place["endpoint_override"] = url or endpoint
    return ServiceAdapter(cloud.get_session(), title, service_type=service_type, **place)


def _client(cloud: "CloudRegion", service: PackageService) -> ServiceAdapter:
    return client(cloud, service.service_type, service.catalog_class.title)


def _with_endpoint(
    cloud: "CloudRegion", endpoint: Callable[[PackageService], str | None]
) -> set[PackageService]:
    """Return which of the services Glare and Glance have an endpoint in a cloud.

    If both have the same endpoint, only Glare is returned.

    :param endpoint: a function that returns the URL of a service; None if it has none.
    """
    found = {service: url for service in SERVICES.values() if (url := endpoint(service))}
    # Credentials without Keystone have one URL for all services.
    return {GLARE} if len(set(found.values())) < len(found) else set(found)


def _has_filter(cloud: "CloudRegion") -> bool:
    """Return whether Glance has this project's WSGI filter for packages.

    If the request to Glance fails, the result is False.
    """
    try:
        found = _client(cloud, GLANCE).document("GET", _DISCOVERY_PATH)
    except errors.CatalogError:
        return False
    return isinstance(found, dict) and "versions" in found
