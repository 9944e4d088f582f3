# SPDX-License-Identifier: Apache-2.0

"""Serve static actions and requests for schemas in cells, from the engine's process.

murano-api waits for the results of these requests.
"""

import contextlib
import math
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from murano.common import engine

from glare_murano.package.sandbox import Busy, Turns
from loader.engine import adapter, credentials, tasks
from loader.engine.cells import cell_calls, cell_reach, crossing_errors, endpoints
from loader.engine.cells.described_packages import DescribedPackages
from loader.engine.cells.package_answers import PackageAnswers
from loader.engine.credentials import ExecutionSession

# The cells that run in this worker.
_turns = Turns()

# A cell ends a request at its limit of time, and reports at which place the request was. A package
# can delay that by so many seconds; then the cell is killed. But murano-api waits for 15 seconds.
_SECONDS_TO_REPORT = 4
_MOST_SECONDS = 14


def are_enabled() -> bool:
    """Return whether these requests are served in cells, by the options of the engine."""
    return cell_calls.are_enabled("request_cells")


def run(session: ExecutionSession, request: Mapping[str, Any]) -> Any:
    """Serve a request in a cell, and return its result.

    :param session: the token, the user and the project of the request.
    :param request: a mapping with the keys ``endpoint``, ``context`` and ``arguments``, as values
        for JSON; see ``cell.serve``.
    :raises TaskLimitExceeded: if the request takes too long or too much memory.
    :raises CellError: if the cell fails.
    :raises Exception: an error from the list in ``crossing_errors``.
    """
    seconds = min(engine.CONF.engine.request_seconds + _SECONDS_TO_REPORT, _MOST_SECONDS)
    limit = tasks.TimeLimit(f"cell of the {request['endpoint']}", seconds, "request_seconds")
    return tasks.running.run_request(limit, _run, session, request)


def _run(session: ExecutionSession, request: Mapping[str, Any]) -> Any:
    client = credentials.task_session(session)
    with (
        cell_calls.copies() as directory,
        contextlib.closing(adapter.package_loader(client, session.project_id)) as loader,
    ):
        loader.package_types = DescribedPackages(session)
        engine.get_plugin_loader().register_in_loader(adapter.EnginePackageLoader(loader))
        packages = PackageAnswers(loader, session, pathlib.Path(directory))
        # A schema needs no service: its cell has no token.
        ports = cell_reach.ports(client) if request["endpoint"] == endpoints.STATIC_ACTION else []
        seconds = math.ceil(engine.CONF.engine.request_seconds) + _SECONDS_TO_REPORT
        settings = cell_calls.settings(directory, ports, seconds)
        with _turn(session):
            try:
                result = cell_calls.call(session, request, packages.answer, settings)
            finally:
                adapter.log_costs(loader)
        cell_calls.preload(packages)
        return result


@contextlib.contextmanager
def _turn(session: ExecutionSession) -> Iterator[None]:
    """Wait for a turn of the project among the cells of this worker."""
    conf = engine.CONF.engine
    limits = conf.max_request_cells, conf.max_project_request_cells
    try:
        with _turns.turn(session.project_id, *limits, conf.request_seconds):
            yield
    except Busy as error:
        raise crossing_errors.CellError(
            "too many requests of packages run at once; try again later ([engine] "
            "max_request_cells, max_project_request_cells)"
        ) from error
