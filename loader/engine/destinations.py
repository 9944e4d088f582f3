# SPDX-License-Identifier: Apache-2.0

"""Check the hosts and ports to which the engine connects for a package.

Each is checked when the engine connects to it. A host name is compared with the allowed names as it
is written; it is not looked up in DNS.
"""

import dataclasses
import urllib.parse
from collections.abc import Callable, Collection, Iterator
from typing import Any, Self

import requests
from keystoneauth1 import plugin
from oslo_config import cfg
from requests import adapters

_PORTS = {"http": 80, "https": 443}
# The options with a service's URL, which replaces the URL in Keystone's catalogue of services.
_URLS = (
    ("murano_auth", "www_authenticate_uri"),
    ("keystone_authtoken", "www_authenticate_uri"),
    ("barbican", "barbican_endpoint"),
    *((group, "url") for group in ("heat", "neutron", "mistral", "glance", "murano")),
)


class ForbiddenDestination(Exception):
    """A package needs a connection that the operator has not allowed."""

    def __init__(self, destination: "Destination | str", allowed: str) -> None:
        """Make the error.

        :param allowed: which destinations are allowed, as the end of the sentence "it is not ...".
        """
        super().__init__(
            f"the engine does not connect to {destination} for a package: it is not {allowed}; "
            f"the operator can name it in [engine] reachable_endpoints"
        )


@dataclasses.dataclass(frozen=True)
class Destination:
    """A host and a port; the host is an address, or a name in lower case."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def of_url(cls, url: str) -> Self:
        """Return the destination of a URL, or of ``//HOST:PORT``.

        :raises ValueError: if the URL lacks a host, or has neither a port nor a known scheme.
        """
        parts = urllib.parse.urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
        if not parts.hostname or not port:
            raise ValueError(f"{url!r} names no host and port")
        return cls(parts.hostname.lower(), port)


class CheckedAdapter(adapters.BaseAdapter):
    """An adapter of ``requests`` that refuses destinations that are not allowed.

    It checks each request, also those that follow a redirection.
    """

    def __init__(
        self, inner: adapters.BaseAdapter, allowed: Callable[[], Collection[Destination]]
    ) -> None:
        """Make an adapter that checks destinations, and sends requests with another adapter.

        :param inner: the adapter that sends the requests.
        :param allowed: a function that returns the allowed destinations; called for each request.
        """
        super().__init__()
        self._inner = inner
        self._allowed = allowed

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> Any:
        """Send a request, if its destination is allowed.

        :raises ForbiddenDestination: if the request's host and port are not allowed.
        """
        destination = Destination.of_url(str(request.url))
        if destination not in self._allowed():
            raise ForbiddenDestination(
                destination, "an endpoint of Keystone's catalogue or of the engine's configuration"
            )
        return self._inner.send(request, *args, **kwargs)

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


def restrict(session: requests.Session, allowed: Callable[[], Collection[Destination]]) -> None:
    """Let a session of ``requests`` connect to the allowed destinations only.

    :param allowed: a function that returns the allowed destinations; called for each request.
    """
    for prefix, inner in list(session.adapters.items()):
        session.mount(prefix, CheckedAdapter(inner, allowed))


def of_services(conf: cfg.ConfigOpts, auth: plugin.BaseAuthPlugin | None) -> set[Destination]:
    """Return the destinations to which HTTP clients may connect.

    These are the endpoints in the options, Keystone's endpoint, and the endpoints in the catalogue
    of services that the token contains.

    :param auth: the credentials; before they have a token, there is no catalogue of services.
    """
    found = reachable_endpoints(conf)
    for group, option in _URLS:
        if url := getattr(getattr(conf, group, None), option, None):
            found.add(Destination.of_url(url))
    if url := getattr(auth, "auth_url", None):
        found.add(Destination.of_url(url))
    found.update(_of_catalogue(getattr(auth, "auth_ref", None)))
    return found


def reachable_endpoints(conf: cfg.ConfigOpts) -> set[Destination]:
    """Return the destinations in the option ``[engine] reachable_endpoints``.

    :raises ValueError: if an entry is not a host with a port; the message names the option.
    """
    return {_of_option(text) for text in conf.engine.reachable_endpoints}


def _of_option(text: str) -> Destination:
    try:
        if "/" in text:
            raise ValueError("it is a URL or a path")
        return Destination.of_url(f"//{text}")
    except ValueError as error:
        raise ValueError(
            f"[engine] reachable_endpoints = {text}: expected HOST:PORT, such as "
            f"ldap.example.org:8080: {error}"
        ) from error


def _of_catalogue(token: Any) -> Iterator[Destination]:
    """Yield the endpoints of all regions and interfaces in a token's catalogue of services."""
    if token is not None and token.has_service_catalog():
        for url in token.service_catalog.get_urls(interface=None):
            yield Destination.of_url(url)
