# SPDX-License-Identifier: Apache-2.0

"""Call an endpoint of the engine in a cell, from the engine's process."""

import contextlib
import logging
import resource
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from murano.common import config
from murano.engine import execution_session

from glare_murano.package import sandbox
from glare_murano.package.sandbox import (
    ChildFailed,
    ChildSettings,
    Function,
    LimitReached,
    scratch,
    warm_processes,
)
from loader import config as loader_config
from loader.engine import tasks
from loader.engine.cells import cell_options, cell_reach, crossing_errors, endpoints, warm
from loader.engine.cells.cell_log import CellLog
from loader.engine.cells.package_answers import InvalidQuery, PackageAnswers
from loader.engine.credentials import ExecutionSession

LOG = logging.getLogger(__name__)
CONF = config.CONF

_MEBIBYTE = 1024**2
# The most files and sockets that a cell can have open. A deployment of 500 machines can have a
# connection for each of them.
_MAX_FILES = 4096
# The memory of a cell besides that of its task, in MiB: Python, Murano and its libraries.
_OWN_MEMORY = 512
# The most queries of a cell, besides lines of the log, notifications and parts of signed messages.
# A request for a schema of the core library sends 20.
_MAX_QUERIES = 5000
# The most lines of the log that a cell sends, as a multiple of ``[engine] max_messages``.
_MAX_LINES = 10
# The longest processor time of a cell that does nothing, in seconds.
_SECONDS_TO_CHECK = 10


def are_enabled(option: str) -> bool:
    """Return whether the options of the engine enable cells.

    :param option: the option in ``[engine]`` that enables a kind of cells.
    """
    return bool(CONF.engine[option] and CONF.engine.package_loader == loader_config.CATALOGS)


def prepare() -> None:
    """Start the process from which cells are forked, so that the first request need not wait."""
    try:
        sandbox.start(_function())
    except ChildFailed as error:
        LOG.error("No cell can be started now: %s", error)


def check() -> None:
    """Run a cell that does nothing.

    The process from which it is forked goes on running, as after ``prepare``.

    :raises TaskLimitExceeded: if the cell reaches a limit.
    :raises CellError: if the cell fails.
    """
    session = execution_session.ExecutionSession()
    with copies() as directory:
        limits = settings(directory, ports=[], seconds=_SECONDS_TO_CHECK)
        call(session, {"endpoint": endpoints.CHECK}, refuse, limits)


def refuse(_: object) -> Any:
    """Answer no query of a cell that needs no answers.

    :raises InvalidQuery: always.
    """
    raise InvalidQuery("it needs no answer")


def end() -> None:
    """End the process from which cells are forked."""
    warm_processes.end(warm.NAME)


def _function() -> Function:
    preparation = {"options": cell_options.read(CONF), "environment": cell_reach.environment()}
    return Function(warm.NAME, preparation)


def copies() -> contextlib.AbstractContextManager[str]:
    """Make a directory for the packages of one cell, and remove it when the block ends."""
    return tempfile.TemporaryDirectory(prefix=f"{scratch.PREFIX}packages-")


def settings(
    directory: str,
    ports: Sequence[int],
    seconds: int,
    wall_seconds: float | None = None,
    readable: Sequence[str] = (),
) -> ChildSettings:
    """Return the limits of a cell, and what it can reach.

    :param directory: the directory with the packages of the cell.
    :param ports: the TCP ports to which the cell can connect.
    :param seconds: the longest processor time, in seconds.
    :param wall_seconds: the longest time, in seconds, as in ``ChildSettings``.
    :param readable: further files that the cell can read.
    """
    return ChildSettings(
        seconds=seconds,
        wall_seconds=wall_seconds,
        memory=int(CONF.engine.max_task_memory + _OWN_MEMORY) * _MEBIBYTE,
        # A cell unpacks the archives of its packages.
        file_size=CONF.package_loader.max_unpacked_size,
        files=_files(),
        readable=[directory, *cell_reach.files(), *readable],
        ports=ports,
    )


def _files() -> int:
    """Return how many files a cell can have open.

    If a process sends descriptors to another one, the kernel compares all descriptors of the user
    that nobody has received yet with the limit of the sender. A cell with the limit of the engine
    could keep the engine from sending any.
    """
    own, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(_MAX_FILES, own // 2)


def preload(packages: PackageAnswers) -> None:
    """Let later cells have the parsed classes of the public packages that a cell has loaded."""
    for package in packages.public_packages():
        sandbox.preload(warm.NAME, package)


def call(
    session: ExecutionSession,
    request: Mapping[str, Any],
    answer: Callable[[object], Any],
    settings: ChildSettings,
    started: Callable[[Any], object] = lambda _: None,
) -> Any:
    """Serve a request in a cell, and return its result, which must not be trusted.

    :param session: the user and the project of the request, for the log.
    :param request: a mapping for ``cell.serve``, as values for JSON. Its key ``endpoint`` names
        what is requested, as in messages.
    :param answer: a function that answers a query of the cell.
    :param settings: the limits of the cell, and what it can reach.
    :param started: as in ``sandbox.converse``.
    :raises TaskLimitExceeded: if the request takes too long or too much memory.
    :raises CellError: if the cell fails.
    :raises Exception: an error from the list in ``crossing_errors``.
    """
    kind = request["endpoint"]
    answers = _Answers(request, answer, CellLog(kind, CONF.engine.max_messages))
    try:
        content = sandbox.converse(_function(), {}, answers.answer, settings, started).content
    except LimitReached as error:
        raise tasks.TaskLimitExceeded(f"the cell of the {kind} {error}") from error
    except ChildFailed as error:
        LOG.error("The cell of a %s has failed: %s%s", kind, error, error.output)
        raise crossing_errors.CellError(f"the cell of the {kind} has failed: {error}") from error
    except InvalidQuery as error:
        LOG.error(
            "A cell was ended, since its code was hostile or faulty: %s (%s, user %s, project %s)",
            *(error, kind, session.user_id, session.project_id),
        )
        raise crossing_errors.CellError(f"the cell of the {kind} was ended: {error}") from error
    match content:
        case {"result": result}:
            return result
        case {"error": {"name": str(name), "text": str(text)}}:
            raise crossing_errors.make(name, text)
    raise crossing_errors.CellError("the cell has returned neither a result nor an error")


class _Answers:
    """Answers all queries of a cell."""

    def __init__(
        self, request: Mapping[str, Any], answer: Callable[[object], Any], log: CellLog
    ) -> None:
        """Prepare to answer.

        :param request: the request that the cell serves.
        :param answer: the function that answers all queries but those for the request and the log.
        :param log: where the cell logs.
        """
        self._received = self._logged = 0
        self._request: Mapping[str, Any] | None = request
        self._answer = answer
        self._log = log

    def answer(self, query: object) -> Any:
        """Answer a query.

        :raises InvalidQuery: if the query does not have the form of a query, or if the cell has
            sent too many queries.
        """
        match query:
            case {"query": "log", "logger": str(logger), "level": int(level), "text": str(text)}:
                self._logged += 1
                if self._logged > _MAX_LINES * (CONF.engine.max_messages + 1):
                    raise InvalidQuery("it has sent too many lines of the log")
                return self._log.write(logger, level, text)
            case {"query": "notification" | "signed part"}:
                # These have limits of their own.
                return self._answer(query)
        self._received += 1
        if self._received > _MAX_QUERIES:
            raise InvalidQuery("it has sent too many queries")
        match query:
            case {"query": "request"} if self._request is not None:
                # A request may be too long for the parameters of a child. To write it takes long,
                # so it is answered once.
                request, self._request = self._request, None
                return request
        return self._answer(query)
