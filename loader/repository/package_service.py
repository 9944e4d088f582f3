# SPDX-License-Identifier: Apache-2.0

"""The service of a cloud that keeps its packages: Glare or Glance.

It is the one that the user names, with ``--os-murano-catalog``, ``OS_MURANO_CATALOG`` or
``murano_catalog`` in ``clouds.yaml``; else the only one of the cloud. Every cloud has Glance,
so that its discovery document is read where Glare is, too.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from loader import errors
from loader.catalogs.glance import GlanceCatalog
from loader.catalogs.glare import GlareCatalog
from loader.catalogs.openstack import ServiceCatalog
from loader.counters import Counters
from loader.repository.client import Repository
from loader.repository.glance_packages import GlanceRepository
from loader.repository.glare_packages import GlareRepository
from loader.transport import download, retries, sessions
from loader.transport.adapter import ServiceAdapter

if TYPE_CHECKING:
    from openstack.config.cloud_region import CloudRegion

OPTION = "murano_catalog"
_DISCOVERY_PATH = "/murano"


class UnknownService(errors.LoaderError, ValueError):
    """It is not clear which service keeps the packages of a cloud."""


@dataclasses.dataclass(frozen=True)
class PackageService:
    """A kind of service that keeps packages.

    :param name: its name for users.
    """

    name: str
    repository_class: type[Repository]
    catalog_class: type[ServiceCatalog]

    @property
    def service_type(self) -> str:
        """Its type in Keystone's catalogue."""
        return self.catalog_class.service_type

    def repository(self, cloud: "CloudRegion") -> Repository:
        """Make a client of all packages in a cloud."""
        return self.repository_class(cloud.get_session(), **self._arguments(cloud))

    def catalog(self, cloud: "CloudRegion") -> ServiceCatalog:
        """Make a catalogue of the releases in a cloud."""
        return self.catalog_class(cloud.get_session(), **self._arguments(cloud))

    def _arguments(self, cloud: "CloudRegion") -> dict[str, Any]:
        found = place(cloud, self.service_type)
        return {
            # For a cloud without Keystone.
            "project_id": cloud.config.get(f"{self.service_type}_project_id"),
            "endpoint": found["endpoint_override"],
            "interface": found["interface"],
            "region_name": found["region_name"],
        }


GLARE = PackageService("glare", GlareRepository, GlareCatalog)
GLANCE = PackageService("glance", GlanceRepository, GlanceCatalog)
SERVICES = {service.name: service for service in (GLARE, GLANCE)}


def of_cloud(cloud: "CloudRegion", name: str | None = None) -> PackageService:
    """Return the service that keeps the packages of a cloud.

    :param name: the name that the user has given for this cloud; by default that of its
        configuration.
    :raises UnknownService: if there are packages in both, or the name is not known.
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
            "the cloud has packages in Glare and in Glance; choose with --os-murano-catalog, or "
            f"with {OPTION} in clouds.yaml"
        )
    return GLARE


def place(cloud: "CloudRegion", service_type: str) -> dict[str, str | None]:
    """Return the place of a service, as parameters of keystoneauth's ``Adapter``."""
    interface = cloud.get_interface(service_type)
    return {
        "endpoint_override": cloud.get_endpoint(service_type),
        # The configuration also allows a list, in the order of preference.
        "interface": interface if isinstance(interface, str) else None,
        "region_name": cloud.get_region_name(service_type),
    }


def client(cloud: "CloudRegion", service_type: str, title: str) -> ServiceAdapter:
    """Make a client of any service of a cloud.

    :param title: the service's name in messages.
    """
    return ServiceAdapter(
        cloud.get_session(),
        title,
        Counters(),
        retries.DEFAULT_ATTEMPTS,
        sessions.DEFAULT_REQUEST_TIMEOUT,
        download.DEFAULT_MIN_RATE,
        service_type=service_type,
        **place(cloud, service_type),
    )


def _client(cloud: "CloudRegion", service: PackageService) -> ServiceAdapter:
    return client(cloud, service.service_type, service.catalog_class.title)


def _with_endpoint(
    cloud: "CloudRegion", endpoint: Callable[[PackageService], str | None]
) -> set[PackageService]:
    """Return the services of a cloud that have an endpoint of their own."""
    found = {service: url for service in SERVICES.values() if (url := endpoint(service))}
    # Credentials without Keystone have one URL for all services.
    return {GLARE} if len(set(found.values())) < len(found) else set(found)


def _has_filter(cloud: "CloudRegion") -> bool:
    """Check whether Glance has the filter of ``glare_murano``."""
    try:
        found = _client(cloud, GLANCE).document("GET", _DISCOVERY_PATH)
    except errors.CatalogError:
        return False
    return isinstance(found, dict) and "versions" in found
