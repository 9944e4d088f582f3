# SPDX-License-Identifier: Apache-2.0

"""Restrict the servers to which packages can make the engine connect."""

from typing import Any

from keystoneauth1 import session as ksa_session
from murano.common import auth_utils
from murano.common.messaging import mqclient
from murano.dsl import session_local_storage
from murano.engine.system import common, workflowclient

from loader.engine import agent_brokers, destinations
from loader.engine.adapter import CONF


def restrict_http_clients() -> None:
    """Let the HTTP clients of system classes connect to the operator's endpoints only.

    Murano 16 follows every redirection, and sends the task's token along. So a package can send the
    token to any server. Here, each request is checked, see ``destinations``. The patch changes the
    session that all these clients use, except Mistral's.
    """
    make_session = auth_utils._get_session

    def checked(auth: Any, conf_section: str | None = None) -> Any:
        session = make_session(auth, conf_section)

        def allowed() -> set[destinations.Destination]:
            # The session's credentials may have been replaced since it was made.
            return destinations.of_services(CONF, session.auth)

        if isinstance(session, ksa_session.Session):
            destinations.restrict(session.session, allowed)
        return session

    auth_utils._get_session = checked


def restrict_workflow_client() -> None:
    """Let the client of Mistral connect to the operator's endpoints only.

    Murano 16 gives this client a URL and a token, and the client follows every redirection with the
    token. Here, each request of the client is checked, as in ``restrict_http_clients``.
    """
    create = workflowclient.MistralClient._create_client

    def create_checked(region: str | None) -> Any:
        client = create(region)
        http_client = client.workflows.http_client

        def allowed() -> set[destinations.Destination]:
            # The URL comes from the catalogue of services, or from [mistral] url.
            return {destinations.Destination.of_url(http_client.base_url)}

        destinations.restrict(http_client.session, allowed)
        return client

    workflowclient.MistralClient._create_client = staticmethod(
        session_local_storage.execution_session_memoize(create_checked)
    )


def select_agent_brokers() -> None:
    """Connect to the agents' RabbitMQ with the operator's settings.

    Murano 16 connects to any server that a region's ``getConfig`` returns, and any package can
    define a region. It does not quote the values in the URL, so a login can contain another host.
    Here, the server has to be one that the operator names, and the values are quoted, see
    ``agent_brokers``.
    """

    def create(region: Any) -> mqclient.MqClient:
        found = region().getConfig()
        settings = found.get("agentRabbitMq") if hasattr(found, "get") else None
        broker = agent_brokers.select(settings, CONF)
        certificates = CONF.rabbitmq.ca_certs.strip() or None
        return mqclient.MqClient(**broker.arguments(), ca_certs=certificates)

    common.create_rmq_client = create
