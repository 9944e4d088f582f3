# SPDX-License-Identifier: Apache-2.0

"""Choose which files a cell can read, and to which ports it can connect.

A cell can also read Python's modules and its packages; see ``glare_murano.package.sandbox``.
"""

import contextlib
import logging
import os
from collections.abc import Iterator

from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import identity
from keystoneauth1 import session as ksa_session
from murano.common import config

from loader.engine import destinations
from loader.engine.destinations import Destination

LOG = logging.getLogger(__name__)
CONF = config.CONF

# The files that HTTP clients read, to look up hosts and to check certificates.
_FILES_OF_CLIENTS = (
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/usr/share/ca-certificates",
    "/run/systemd/resolve",
)
# The groups with options for TLS.
GROUPS_OF_CLIENTS = ("murano_auth", "heat", "neutron", "mistral", "glance", "murano")
# The options with the certificate of a server.
_CERTIFICATES = (
    *((group, "cafile") for group in GROUPS_OF_CLIENTS),
    ("barbican", "verify_ssl_path"),
)


# The variables of the environment that HTTP clients read.
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def environment() -> dict[str, str]:
    """Return the variables of the environment that HTTP clients read.

    A proxy with a password is left out.
    """
    names = {*_PROXIES, "no_proxy", "NO_PROXY", *_BUNDLES} - {*withheld_proxies()}
    return {name: os.environ[name] for name in sorted(names & os.environ.keys())}


def withheld_proxies() -> list[str]:
    """Return the variables of the environment with a proxy that needs a password."""
    return [name for name in _PROXIES if "@" in os.environ.get(name, "")]


def _ports_of_proxies() -> Iterator[int]:
    for name, url in environment().items():
        if name in _PROXIES:
            with contextlib.suppress(ValueError):
                yield Destination.of_url(url if "//" in url else f"//{url}").port


def files() -> list[str]:
    """Return the paths of the files that clients of services read."""
    certificates = (getattr(CONF[group], name, None) for group, name in _CERTIFICATES)
    bundles = map(os.environ.get, _BUNDLES)
    return [*_FILES_OF_CLIENTS, *filter(None, [*certificates, *bundles])]


def ports(client: ksa_session.Session) -> list[int]:
    """Return the TCP ports of the services to which packages may connect.

    :param client: a session with the token of the request.
    """
    if isinstance(client.auth, identity.BaseIdentityPlugin):
        # The token has the catalogue of services. If Keystone refuses it, so will they.
        with contextlib.suppress(ksa_exceptions.ClientException):
            client.auth.get_access(client)
    try:
        found = destinations.of_services(CONF, client.auth)
    except ValueError as error:
        LOG.warning("An endpoint in Keystone's catalogue is not a URL: %s", error)
        found = destinations.of_services(CONF, None)
    return sorted({*(destination.port for destination in found), *_ports_of_proxies()})
