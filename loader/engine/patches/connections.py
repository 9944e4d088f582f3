# SPDX-License-Identifier: Apache-2.0

"""Check the connections that packages make the engine open."""

from typing import Any

from keystoneauth1 import session as ksa_session
from murano.common import auth_utils
from murano.common.messaging import mqclient
from murano.dsl import session_local_storage
from murano.engine.system import common, workflowclient

from loader.engine import agent_brokers, destinations
from loader.engine.adapter import CONF


def restrict_http_clients() -> None:
    """Let the HTTP clients of system classes connect to the endpoints of the operator only.

    Murano 16 follows each redirection, with the token of the task. All its clients but that of
    Mistral use the session that is made here.
    """
    make_session = auth_utils._get_session

    def checked(auth: Any, conf_section: str | None = None) -> Any:
        session = make_session(auth, conf_section)

        def allowed() -> set[destinations.Destination]:
            # Others may replace the credentials of the session.
            return destinations.of_services(CONF, session.auth)

        if isinstance(session, ksa_session.Session):
            destinations.restrict(session.session, allowed)
        return session

    auth_utils._get_session = checked


def restrict_workflow_client() -> None:
    """Let the client of Mistral connect to the endpoints of the operator only.

    Murano 16 gives it a URL and a token, and the client follows each redirection.
    """
    create = workflowclient.MistralClient._create_client

    def create_checked(region: str | None) -> Any:
        client = create(region)
        http_client = client.workflows.http_client

        def allowed() -> set[destinations.Destination]:
            # Of the catalogue, or [mistral] url.
            return {destinations.Destination.of_url(http_client.base_url)}

        destinations.restrict(http_client.session, allowed)
        return client

    workflowclient.MistralClient._create_client = staticmethod(
        session_local_storage.execution_session_memoize(create_checked)
    )


def select_agent_brokers() -> None:
    """Connect to the RabbitMQ of the agents with the operator's settings.

    Murano 16 connects to whatever ``getConfig`` of a region returns, which can be an object of
    any package, and writes it into a URL unquoted, so that a login can name another host.
    """

    def create(region: Any) -> mqclient.MqClient:
        found = region().getConfig()
        settings = found.get("agentRabbitMq") if hasattr(found, "get") else None
        broker = agent_brokers.select(settings, CONF)
        certificates = CONF.rabbitmq.ca_certs.strip() or None
        return mqclient.MqClient(**broker.arguments(), ca_certs=certificates)

    common.create_rmq_client = create
