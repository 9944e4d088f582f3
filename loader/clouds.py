# SPDX-License-Identifier: Apache-2.0

"""Find a cloud in ``clouds.yaml``, which openstacksdk reads.

openstacksdk is imported on first use. ``catalogs.package_service`` finds the services in a cloud.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from glare_murano import extras
from loader import errors

if TYPE_CHECKING:
    from openstack.config.cloud_region import CloudRegion


def find(name: str | None = None) -> "CloudRegion":
    """Return a cloud in ``clouds.yaml``, and check that a session can be made for it.

    No request is sent.

    :param name: the name of the cloud; by default, the name in ``OS_CLOUD``, or the only cloud.
    :raises LoaderError: if openstacksdk is missing.
    :raises InvalidCloud: if the cloud is missing, or its values are wrong.
    """
    try:
        from keystoneauth1 import exceptions as ksa_exceptions
        from openstack import exceptions as sdk_exceptions
        from openstack.config import OpenStackConfig
    except ImportError as error:
        raise errors.LoaderError(
            f"clouds.yaml is read by openstacksdk, which is missing ({error}); "
            f"{extras.remedy('cli')}"
        ) from error
    try:
        return checked(OpenStackConfig().get_one, name)
    except (sdk_exceptions.ConfigException, ksa_exceptions.ClientException) as error:
        raise _invalid(name, error) from error


def checked(
    get_one: "Callable[..., CloudRegion]", name: str | None, **arguments: Any
) -> "CloudRegion":
    """Get a cloud from openstacksdk's configuration, and check that a session can be made for it.

    :param get_one: the method of the configuration that returns a cloud.
    :param name: the name of the cloud.
    :param arguments: further arguments for the method.
    :raises InvalidCloud: if a value has a wrong type, or is missing.
    """
    try:
        found = get_one(cloud=name, **arguments)
        # No request is sent, and the session is kept.
        found.get_session()
    except (AttributeError, TypeError, ValueError) as error:
        raise _invalid(name, error) from error
    return found


def _invalid(name: str | None, error: Exception) -> errors.InvalidCloud:
    return errors.InvalidCloud(
        f"the cloud {name or 'of OS_CLOUD'} cannot be used as configured: {error}"
    )
