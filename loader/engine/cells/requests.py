# SPDX-License-Identifier: Apache-2.0

"""Serve requests of murano-api in cells, from the engine's process.

These are the requests for which murano-api waits: static actions and requests for schemas.
"""

import contextlib
import logging
import math
import pathlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import identity
from keystoneauth1 import session as ksa_session
from murano.common import engine

from glare_murano.package import sandbox
from glare_murano.package.sandbox import (
    Busy,
    ChildFailed,
    ChildSettings,
    Function,
    LimitReached,
    Turns,
    scratch,
)
from loader import config
from loader.engine import adapter, credentials, destinations, tasks
from loader.engine.cells import cell_options, crossing_errors, warm
from loader.engine.cells.cell_log import CellLog
from loader.engine.cells.package_answers import InvalidQuestion, PackageAnswers
from loader.engine.credentials import ExecutionSession

LOG = logging.getLogger(__name__)

# The cells that run in this worker.
_turns = Turns()

_MEBIBYTE = 1024**2
# The largest file that a cell can write, such as a file of a package that it unpacks.
_FILE_SIZE = 64 * _MEBIBYTE
# The memory of a cell besides that of its task, in MiB: Python, Murano and its libraries.
_OWN_MEMORY = 512
# The most questions of a cell, besides the lines that it logs. A request for a schema of the core
# library asks 20.
_MAX_QUESTIONS = 5000
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
_GROUPS_OF_CLIENTS = ("heat", "neutron", "mistral", "glance", "murano")
# A cell ends a request at its limit of time, and reports at which place the request was. A package
# can delay that by so many seconds; then the cell is killed. But murano-api waits for 15 seconds.
_SECONDS_TO_REPORT = 4
_MOST_SECONDS = 14


def are_enabled() -> bool:
    """Return whether requests are served in cells, by the options of the engine."""
    chosen = engine.CONF.engine
    return bool(chosen.request_cells and chosen.package_loader == config.CATALOGS)


def prepare() -> None:
    """Start the process from which cells are forked, so that the first request need not wait."""
    try:
        sandbox.start(_function())
    except ChildFailed as error:
        LOG.error("No cell can be started now for static actions and schemas: %s", error)


def _function() -> Function:
    return Function(warm.NAME, cell_options.read(engine.CONF))


def run(kind: str, session: ExecutionSession, request: Mapping[str, Any]) -> Any:
    """Serve a request in a cell, and return its result.

    :param kind: what is requested, as in messages: ``static action`` or ``request for a schema``.
    :param session: the token, the user and the project of the request.
    :param request: a mapping with the keys ``endpoint``, ``context`` and ``arguments``, as values
        for JSON; see ``cell.serve``.
    :raises TaskLimitExceeded: if the request takes too long or too much memory.
    :raises CellError: if the cell fails.
    :raises Exception: an error from the list in ``crossing_errors``.
    """
    seconds = min(engine.CONF.engine.request_seconds + _SECONDS_TO_REPORT, _MOST_SECONDS)
    limit = tasks.TimeLimit(f"cell of the {kind}", seconds, "request_seconds")
    return tasks.running.run_request(limit, _run, kind, session, request)


def _run(kind: str, session: ExecutionSession, request: Mapping[str, Any]) -> Any:
    client = credentials.task_session(session)
    prefix = f"{scratch.PREFIX}packages-"
    with (
        tempfile.TemporaryDirectory(prefix=prefix) as directory,
        contextlib.closing(adapter.package_loader(client, session.project_id)) as loader,
    ):
        engine.get_plugin_loader().register_in_loader(adapter.EnginePackageLoader(loader))
        packages = PackageAnswers(loader, session, pathlib.Path(directory))
        log = CellLog(kind, engine.CONF.engine.max_messages)
        answers = Answers(request, packages, log)
        # A schema needs no service: its cell has no token.
        ports = _ports(client) if request["endpoint"] == "static action" else []
        with _turn(session):
            try:
                content = _converse(kind, session, answers, directory, ports)
            finally:
                adapter.log_costs(packages.count, loader.counters)
        for path in packages.public_paths():
            sandbox.keep(warm.NAME, path)
    match content:
        case {"result": result}:
            return result
        case {"error": {"name": str(name), "text": str(text)}}:
            raise crossing_errors.make(name, text)
    raise crossing_errors.CellError("the cell has returned neither a result nor an error")


class Answers:
    """Answers all questions of a cell."""

    def __init__(self, request: Mapping[str, Any], packages: PackageAnswers, log: CellLog) -> None:
        """Prepare to answer.

        :param request: the request that the cell serves.
        :param packages: the answers about packages.
        :param log: where the cell logs.
        """
        self._asked = 0
        self._request = request
        self._packages = packages
        self._log = log

    def answer(self, question: object) -> Any:
        """Answer a question.

        :raises InvalidQuestion: if the question does not have the form of a question, or if the
            cell has asked too many questions.
        """
        match question:
            case {"question": "log", "logger": str(logger), "level": int(level), "text": str(text)}:
                return self._log.write(logger, level, text)
        self._asked += 1
        if self._asked > _MAX_QUESTIONS:
            raise InvalidQuestion("it has asked too many questions")
        match question:
            case {"question": "request"}:
                # A request may be too long for the parameters of a child.
                return self._request
        return self._packages.answer(question)


def _converse(
    kind: str,
    session: ExecutionSession,
    answers: Answers,
    directory: str,
    ports: Sequence[int],
) -> Any:
    conf = engine.CONF.engine
    settings = ChildSettings(
        seconds=math.ceil(conf.request_seconds) + _SECONDS_TO_REPORT,
        memory=(conf.max_task_memory + _OWN_MEMORY) * _MEBIBYTE,
        file_size=_FILE_SIZE,
        readable=[directory, *_FILES_OF_CLIENTS, *_certificates()],
        ports=ports,
    )
    try:
        return sandbox.converse(_function(), {}, answers.answer, settings).content
    except LimitReached as error:
        raise tasks.TaskLimitExceeded(f"the cell of the {kind} {error}") from error
    except ChildFailed as error:
        LOG.error("The cell of a %s has failed: %s%s", kind, error, error.output)
        raise crossing_errors.CellError(f"the cell of the {kind} has failed: {error}") from error
    except InvalidQuestion as error:
        LOG.error(
            "A cell was ended, since its code was hostile or faulty: %s (%s, user %s, project %s)",
            *(error, kind, session.user_id, session.project_id),
        )
        raise crossing_errors.CellError(f"the cell of the {kind} was ended: {error}") from error


@contextlib.contextmanager
def _turn(session: ExecutionSession) -> Iterator[None]:
    """Wait for a turn of the project among the cells of this worker."""
    conf = engine.CONF.engine
    limits = conf.max_request_cells, conf.max_project_cells
    try:
        with _turns.turn(session.project_id, *limits, conf.request_seconds):
            yield
    except Busy as error:
        raise crossing_errors.CellError(
            "too many requests of packages run at once; try again later ([engine] "
            "max_request_cells, max_project_cells)"
        ) from error


def _certificates() -> list[str]:
    """Return the paths of the certificates by which HTTP clients check servers."""
    groups = ("murano_auth", *_GROUPS_OF_CLIENTS)
    paths = (getattr(engine.CONF[group], "cafile", None) for group in groups)
    return [path for path in paths if path]


def _ports(client: ksa_session.Session) -> list[int]:
    """Return the TCP ports of the services to which packages may connect.

    :param client: a session with the token of the request.
    """
    if isinstance(client.auth, identity.BaseIdentityPlugin):
        # The token has the catalogue of services. If Keystone refuses it, so will they.
        with contextlib.suppress(ksa_exceptions.ClientException):
            client.auth.get_access(client)
    try:
        found = destinations.of_services(engine.CONF, client.auth)
    except ValueError as error:
        LOG.warning("An endpoint in Keystone's catalogue is not a URL: %s", error)
        found = destinations.of_services(engine.CONF, None)
    return sorted({destination.port for destination in found})
