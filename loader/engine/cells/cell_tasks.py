# SPDX-License-Identifier: Apache-2.0

"""Run a task in a cell: a deployment, a deletion or an action."""

import base64
import functools
import signal
import types
from collections.abc import Callable, Mapping
from typing import Any

import eventlet
from keystoneauth1 import access, identity
from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import session as ksa_session
from murano.common import auth_utils, config, engine, rpc
from murano.dsl import dsl
from murano.engine.system import common, instance_reporter, status_reporter
from yaql.language import specs, yaqltypes

from glare_murano.package.sandbox import Queries
from loader.engine import agent_brokers, task_system_classes, tasks
from loader.engine.cells.agent_access import AgentAccess
from loader.engine.cells.cell_packages import CellPackages, EngineCellPackageLoader, Send
from loader.engine.cells.crossing_errors import CellError
from loader.engine.destinations import ForbiddenDestination

CONF = config.CONF

# The longest part of a message that is signed, in characters. A query has room for it.
_PART = 30_000


def run(request: Mapping[str, Any], packages: CellPackages, queries: Queries) -> dict[str, Any]:
    """Run a task, and return its result, and the model if the task has changed it.

    :param request: the request of the engine's process; see ``task_cells``.
    """
    _send_notifications(queries)
    _use_engine_tokens(queries.send)
    _use_agents(AgentAccess.from_json(request["agents"]), request["public_key"], queries.send)
    task = request["task"]
    executor = engine.TaskExecutor(task, status_reporter.StatusReporter(task["id"]))
    # Only the engine's process knows the trust. Murano's functions check that there is one.
    executor.session.trust_id = "trust" if request["has_trust"] else None
    # Murano either makes a new model, or only changes the copy of the former objects.
    model, copied = executor.model, executor.model.get("ObjectsCopy")
    limit = tasks.TimeLimit("task", CONF.engine.task_seconds, "task_seconds")
    signal.signal(signal.SIGINT, _interrupt)
    try:
        result = tasks.running.run(
            tasks.Task(limit), executor._execute, EngineCellPackageLoader(packages)
        )
    except Exception as error:
        result = executor.exception_result(error, None, "<system>")
    is_changed = executor.model is not model or model.get("ObjectsCopy") is not copied
    return {"result": result, "model": executor.model if is_changed else None}


def _interrupt(*_: object) -> None:
    """Interrupt the task, since the engine stops."""
    # Afterwards, the task's own watchdog repeats the interruption, and leaves time for the model.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Code of the task may be running here, which must not interrupt itself.
    eventlet.spawn_after(0, tasks.running.interrupt, tasks.EngineStopped())


def value_of(answer: Mapping[str, Any]) -> Any:
    """Return the value in an answer.

    :raises CellError: if the answer is an error.
    """
    if "value" in answer:
        return answer["value"]
    raise CellError(answer["error"])


def _send_notifications(queries: Queries) -> None:
    """Let Murano's reporters send notifications through the engine's process.

    The task does not wait for the answers, which say nothing.
    """

    class Notifier:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        def info(self, _context: object, event: str, payload: Mapping[str, Any]) -> None:
            queries.cast({"query": "notification", "event": event, "payload": payload})

    rpc.TRANSPORT = rpc.NOTIFICATION_TRANSPORT = types.SimpleNamespace()
    for module in (status_reporter, instance_reporter):
        module.messaging = types.SimpleNamespace(Notifier=Notifier)


class EngineToken(identity.BaseIdentityPlugin):
    """Credentials that the engine's process gets from Keystone, with the trust of the task."""

    def __init__(self, send: Send) -> None:
        """Make the plug-in; nothing is requested yet.

        :param send: a function that sends a query, and returns the answer.
        """
        super().__init__(CONF.murano_auth.www_authenticate_uri)
        self._send = send

    def get_auth_ref(self, _session: ksa_session.Session) -> access.AccessInfo:
        """Request a token from the engine's process.

        :raises AuthorizationFailure: if Keystone does not issue one.
        """
        answer = self._send({"query": "token"})
        if "error" in answer:
            raise ksa_exceptions.AuthorizationFailure(answer["error"])
        value = answer["value"]
        return access.create(body=value["body"], auth_token=value["token"])

    def get_cache_id_elements(self) -> dict[str, str | None]:
        """Return the values that identify these credentials in keystoneauth's cache."""
        return {}


def _use_engine_tokens(send: Send) -> None:
    # The cell has no password for Keystone.
    auth_utils._get_keystone_auth = lambda _trust_id=None: EngineToken(send)


def _use_agents(agents: AgentAccess, public_key: str | None, send: Send) -> None:
    """Connect to the agents' RabbitMQ, and let the engine's process sign the messages.

    :param agents: the servers that the cell may use.
    :param public_key: the key by which agents check signatures; None if nothing is signed.
    :param send: a function that sends a query, and returns the answer.
    """
    for name, value in agents.options.items():
        CONF.set_override(name, value, "rabbitmq")
    agent_brokers.of_operator = lambda conf: iter(agents.brokers)
    connect = functools.partial(_connect, common.create_rmq_client, agents.withheld)
    common.create_rmq_client = connect

    class CellAgent(task_system_classes.TaskAgent):
        """An agent, whose messages the engine's process signs."""

        def queue_name(self) -> str:
            if agents.withheld:
                # A virtual machine gets this name and the credentials. Without credentials, it
                # would be of no use, so no machine is made.
                connect(dsl.MuranoObjectInterface.create(self._host().getRegion()))
            return str(super().queue_name())

        @specs.parameter("line_prefix", yaqltypes.String())  # type: ignore[untyped-decorator]
        def signing_key(self, line_prefix: str = "") -> str:
            lines = (public_key or "").splitlines(keepends=True)
            return line_prefix + line_prefix.join(lines) if lines else ""

        def _sign(self, message: str) -> bytes | None:
            return _sign(send, self._queue, message) if public_key is not None else None

    task_system_classes.TaskAgent = CellAgent  # type: ignore[misc]


def _connect(connect: Callable[[Any], Any], withheld: str, region: Any) -> Any:
    """Connect to the RabbitMQ of a region.

    :param connect: Murano's function that connects.
    :param withheld: why the cell does not get a server; empty if it gets all of them.
    :raises CellError: if the cell does not get this server.
    """
    try:
        return connect(region)
    except ForbiddenDestination as error:
        if not withheld:
            raise
        raise CellError(
            f"{error}. Cells do not get the password of all servers: {withheld}. The operator can "
            f"give the agents a user and a virtual host of their own, or set [engine] "
            f"share_agent_password"
        ) from error


def _sign(send: Send, queue: str, message: str) -> bytes:
    """Let the engine's process sign a message for an agent."""
    for start in range(0, len(message), _PART):
        part = {"part": message[start : start + _PART], "is_first": start == 0}
        value_of(send({"query": "signed part", "queue": queue, **part}))
    return base64.b64decode(value_of(send({"query": "signature"})))
