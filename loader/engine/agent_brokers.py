# SPDX-License-Identifier: Apache-2.0

"""Check to which RabbitMQ servers the engine may connect, to reach Murano's agents.

The engine sends messages to the agents in virtual machines through RabbitMQ. A region's
``getConfig`` returns the server and the credentials for it, and packages can define regions of
their own. So the engine compares what a package returns with the operator's settings.
"""

import dataclasses
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any, Self

import oslo_messaging
from oslo_config import cfg

from loader.engine import class_configs
from loader.engine.destinations import Destination, ForbiddenDestination, reachable_endpoints

_ENVIRONMENT = "io.murano.Environment"
_PORT = 5672


@dataclasses.dataclass(frozen=True)
class AgentBroker:
    """A RabbitMQ server, with the engine's credentials for it."""

    destination: Destination
    login: str
    password: str = dataclasses.field(repr=False)
    virtual_host: str
    # ``select`` takes these two from the operator's settings, so it does not compare them.
    ssl: bool = dataclasses.field(default=False, compare=False)
    insecure: bool = dataclasses.field(default=False, compare=False)

    @classmethod
    def of(cls, settings: Any) -> Self:
        """Make a broker from settings. A missing port or virtual host gets Murano's default.

        :param settings: the mapping ``agentRabbitMq`` of a region, or the group ``[rabbitmq]``.
        :raises ValueError: if the settings are not a mapping, or have no host or no valid port.
        """
        if not isinstance(settings, Mapping):
            raise ValueError(
                f"agentRabbitMq is of the wrong type {type(settings).__name__}; use a dictionary"
            )
        host, port = settings.get("host"), settings.get("port") or _PORT
        if not isinstance(host, str) or not isinstance(port, int | str) or not host:
            raise ValueError("agentRabbitMq has no host or no valid port; set both")
        return cls(
            Destination(host.lower(), int(port)),
            str(settings.get("login")),
            str(settings.get("password")),
            str(settings.get("virtual_host") or "/"),
            bool(settings.get("ssl")),
            bool(settings.get("insecure")),
        )

    def arguments(self) -> dict[str, Any]:
        """Return the arguments for Murano's client of RabbitMQ, quoted for a URL.

        The client itself puts the arguments into a URL without quoting them.
        """
        host, quote = self.destination.host, urllib.parse.quote
        return {
            "host": f"[{host}]" if ":" in host else quote(host, safe=""),
            "port": self.destination.port,
            "login": quote(self.login, safe=""),
            "password": quote(self.password, safe=""),
            "virtual_host": quote(self.virtual_host, safe=""),
            "ssl": self.ssl,
            "insecure": self.insecure,
        }


def of_operator(conf: cfg.ConfigOpts) -> Iterator[AgentBroker]:
    """Yield the RabbitMQ servers that the operator has configured for the agents.

    These are the server in the options ``[rabbitmq]``, and the servers in the class configs of
    ``io.murano.Environment``. A class config is an operator's file with values for a class, see
    ``class_configs``.

    :raises ValueError: if a class config is not valid.
    """
    yield AgentBroker.of(conf.rabbitmq)
    for path in class_configs.find(conf.engine.class_configs, _ENVIRONMENT):
        regions = class_configs.read(path).get("regionConfigs") or {}
        try:
            yield from [AgentBroker.of(region["agentRabbitMq"]) for region in regions.values()]
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: regionConfigs cannot be read: {error}") from error


def select(settings: Any, conf: cfg.ConfigOpts) -> AgentBroker:
    """Return the RabbitMQ server for the settings that a package's region returns.

    If the operator has configured a server with the same host, port, virtual host and credentials,
    this server is returned with the operator's TLS settings. If the operator only lists the host
    and port in ``reachable_endpoints``, the server is returned with the package's settings.

    :param settings: the value of ``agentRabbitMq`` that the region returns.
    :raises ForbiddenDestination: if the operator has neither configured nor listed the server.
    :raises ValueError: if the settings or the operator's files are not valid.
    """
    given = AgentBroker.of(settings)
    for broker in of_operator(conf):
        if broker == given:
            return broker
    if given.destination in reachable_endpoints(conf):
        return given
    raise ForbiddenDestination(
        given.destination,
        "the RabbitMQ, with its virtual host and credentials, that [rabbitmq] or the class "
        f"config of {_ENVIRONMENT} names",
    )


def find_shared(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield warnings if agents and Murano's services share a user or virtual host in RabbitMQ.

    Virtual machines get the agents' password. If the engine does not use agents, there is no
    warning.

    :raises ValueError: if a class config of environments is not valid.
    """
    if conf.engine.disable_murano_agent:
        return
    for broker, what in shared(conf).items():
        yield (
            f"The agents' RabbitMQ at {broker.destination} has the {what}: whoever knows the "
            f"password of this RabbitMQ, as every virtual machine does, can read and send the "
            f"messages of Murano. "
            f"So cells do not get the password, and packages cannot use these agents, unless "
            f"[engine] share_agent_password is set. Give the agents a virtual host and a user of "
            f"their own, in [rabbitmq] or in the class config of {_ENVIRONMENT}"
        )


def shared(conf: cfg.ConfigOpts) -> dict[AgentBroker, str]:
    """Return the RabbitMQ servers of agents that share a user or a virtual host with the services.

    :returns: a mapping of servers to what is shared, such as ``user murano of the services``.
    :raises ValueError: if a class config of environments is not valid.
    """
    own = list(_of_services(conf))
    found = {}
    for broker in dict.fromkeys(of_operator(conf)):
        for what in sorted({_shared(broker, service) for service in own} - {""}):
            found[broker] = f"{what} of the services"
    return found


def _of_services(conf: cfg.ConfigOpts) -> Iterator[AgentBroker]:
    """Yield the RabbitMQ servers in the options ``transport_url``, which Murano's services use."""
    of_notifications = getattr(conf, "oslo_messaging_notifications", None)
    # The notifications may have a server of their own.
    for text in (None, getattr(of_notifications, "transport_url", None)):
        url = oslo_messaging.TransportURL.parse(conf, text)
        for host in url.hosts if url.transport == "rabbit" else ():
            destination = Destination((host.hostname or "localhost").lower(), host.port or _PORT)
            user, password = host.username or "guest", host.password or "guest"
            yield AgentBroker(destination, user, password, url.virtual_host or "/")


def _shared(broker: AgentBroker, service: AgentBroker) -> str:
    """Return the user or the virtual host that agents share with Murano's services.

    A server may have several host names. So two users with the same name are the same user if the
    server is the same, or if the passwords are the same. Virtual hosts are the same if their names
    and the servers are the same.

    :param broker: the server of the agents.
    :param service: the server of Murano's services.
    :returns: a description for a warning, such as ``user murano``; an empty string if nothing is
        shared.
    """
    is_same_host = broker.destination == service.destination
    if broker.login == service.login and (is_same_host or broker.password == service.password):
        return f"user {broker.login}"
    if is_same_host and broker.virtual_host == service.virtual_host:
        return f"virtual host {broker.virtual_host}"
    return ""
