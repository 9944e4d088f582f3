# SPDX-License-Identifier: Apache-2.0

"""Serve requests of murano-api, and run tasks, in cells."""

import contextlib
import logging
from collections.abc import Mapping
from typing import Any

from murano.common import engine, rpc
from murano.engine import execution_session
from murano.engine.system import status_reporter

from glare_murano.package.sandbox import Busy
from loader.engine import tasks
from loader.engine.adapter import EnginePackageLoader
from loader.engine.cells import endpoints, request_cells, task_cells, waiting_tasks
from loader.engine.cells.waiting_tasks import TaskTooLarge, TooManyWaiting

LOG = logging.getLogger(__name__)


def serve_requests_in_cells() -> None:
    """Serve static actions and requests for schemas in cells, if ``[engine] request_cells`` is set.

    In Murano 16, the code of a package runs in the process of the engine, which has the passwords
    of the engine and the tokens of all running tasks. Here, it runs in a child process that has the
    token of its own user only; see ``loader.engine.cells``. Contracts are code as well, so requests
    for schemas need this, too.
    """
    generate_schema = engine.SchemaEndpoint.generate_schema
    call_static_action = engine.StaticActionEndpoint.call_static_action

    def generate(context: Mapping[str, Any], *args: Any, **arguments: Any) -> Any:
        if not request_cells.are_enabled():
            return generate_schema(context, *args, **arguments)
        if args:
            raise TypeError("murano-api passes the arguments by name")
        # No schema needs the token: only the engine's process sends requests.
        known = {"token": None, "project_id": context["project_id"]}
        request = {"endpoint": endpoints.SCHEMA, "context": known, "arguments": arguments}
        return request_cells.run(_session(context), request)

    def call(context: Any, task: Mapping[str, Any]) -> Any:
        if not request_cells.are_enabled():
            return call_static_action(context, task)
        arguments = {"task": task}
        request = {"endpoint": endpoints.STATIC_ACTION, "context": {}, "arguments": arguments}
        return request_cells.run(_session(task), request)

    engine.SchemaEndpoint.generate_schema = staticmethod(generate)
    engine.StaticActionEndpoint.call_static_action = staticmethod(call)


def run_tasks_in_cells() -> None:
    """Run the code of deployments, deletions and actions in cells, by ``[engine] task_cells``.

    In Murano 16, this code runs in the process of the engine, as that of static actions does.
    """
    execute = engine.TaskExecutor._execute

    def execute_in_cell(executor: Any, packages: Any) -> Any:
        if task_cells.are_enabled() and isinstance(packages, EnginePackageLoader):
            return task_cells.run(executor, packages)
        return execute(executor, packages)

    engine.TaskExecutor._execute = execute_in_cell


def limit_tasks() -> None:
    """Limit how many tasks a worker runs at once, and how many of each project.

    Murano 16 runs as many tasks as oslo.messaging receives at once, all of one project if it sends
    them first. Here, a task that gets no turn goes back to the queue, where another worker can take
    it, and the owner of the environment gets a report. If too many tasks of its project wait, or if
    it is too large, it fails.
    """
    handle_task = engine.TaskProcessingEndpoint.handle_task

    def handle_in_turn(context: Any, task: Any) -> None:
        if tasks.running.is_stopping or not task_cells.are_enabled():
            handle_task(context, task)
            return
        try:
            text = waiting_tasks.to_json(task)
        except TaskTooLarge as error:
            _fail(task, error)
            return
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(task_cells.turn(task))
            except Busy:
                _wait(task, text)
            else:
                # A task may run for hours.
                del text
                handle_task(context, task)

    engine.TaskProcessingEndpoint.handle_task = staticmethod(handle_in_turn)


def _wait(task: Mapping[str, Any], text: str) -> None:
    """Let a task wait, and report it once; if too many tasks wait, let it fail.

    :param text: the task as JSON.
    """
    try:
        waiting_tasks.waiting.add(task["project_id"], text)
    except TooManyWaiting as error:
        _fail(task, error)
        return
    if not waiting_tasks.has_waited(task):
        report = "The task waits in the queue, since too many tasks run"
        try:
            status_reporter.StatusReporter(task["id"]).report(None, report)
        except Exception:
            LOG.warning("A report that a task waits was not sent", exc_info=True)


def _fail(task: Mapping[str, Any], error: Exception) -> None:
    """Let a task fail that has not begun; its environment keeps its model."""
    executor = engine.TaskExecutor(task)
    result = executor.exception_result(error, None, "<queue>")
    # Without a traceback, the result is not longer than the task, which RabbitMQ has accepted.
    result["action"]["result"]["details"] = ""
    rpc.api().process_result({**result, "model": executor.model}, task["id"])


def _session(known: Mapping[str, Any]) -> execution_session.ExecutionSession:
    session = execution_session.ExecutionSession()
    session.token = known["token"]
    session.project_id = known["project_id"]
    session.user_id = known.get("user_id")
    return session
