# SPDX-License-Identifier: Apache-2.0

"""Interrupt tasks, and report the result of each to Murano's API."""

import logging
from collections.abc import Callable
from typing import Any

from murano.common import engine, rpc
from murano.dsl import executor, helpers, serializer

from loader.engine import results, tasks

LOG = logging.getLogger(__name__)


def interrupt_tasks() -> None:
    """Let a stopping engine interrupt tasks, which then fail with their models and pins.

    Murano 16 ends a task with the process, and its result is never sent. An interrupted task
    saves its objects and pins, as after any error; all its green threads are interrupted.
    Murano destroys the loaded objects of an execution that ends early. The objects of an
    interrupted task are not destroyed: ``.destroy`` would delete their deployed resources.
    """
    run = engine.TaskExecutor._execute
    leave = executor.MuranoDslExecutor.__exit__
    parallel_select = helpers.parallel_select

    def interruptible(execute: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def execute_or_fail(task_executor: Any) -> Any:
            try:
                with tasks.running.interruptible():
                    return execute(task_executor)
            except tasks.Interrupted as error:
                raise tasks.EngineStopped from error

        return execute_or_fail

    def run_or_fail(task_executor: Any, package_loader: Any) -> Any:
        try:
            return run(task_executor, package_loader)
        except tasks.Interrupted:
            return task_executor.exception_result(tasks.EngineStopped(), None, "<stop>")

    def leave_undestroyed(dsl_executor: Any, kind: Any, error: Any, trace: Any) -> None:
        if kind is not tasks.Interrupted:
            leave(dsl_executor, kind, error, trace)

    def select(collection: Any, function: Callable[[Any], Any], *limit: int) -> Any:
        def interruptible_function(element: Any) -> Any:
            with tasks.running.interruptible():
                return function(element)

        return parallel_select(collection, interruptible_function, *limit)

    engine.TaskExecutor.execute = interruptible(engine.TaskExecutor.execute)
    engine.TaskExecutor._execute = run_or_fail
    engine.StaticActionExecutor.execute = interruptible(engine.StaticActionExecutor.execute)
    executor.MuranoDslExecutor.__exit__ = leave_undestroyed
    helpers.parallel_select = select


def return_new_tasks() -> None:
    """Return tasks to the queue that a stopping engine has received and not begun.

    oslo.messaging removes a received task from the queue at once, so no other engine would
    receive the task.
    """
    handle_task = engine.TaskProcessingEndpoint.handle_task

    def handle_or_return(context: Any, task: Any) -> None:
        if tasks.running.is_stopping:
            LOG.info("Task %s is returned to the queue", task["id"])
            rpc.engine().handle_task(task)
        else:
            handle_task(context, task)

    engine.TaskProcessingEndpoint.handle_task = staticmethod(handle_or_return)


def report_every_failure() -> None:
    """Report the errors before and after the execution of a task, with the task's model.

    Murano 16 reports no error of making the package loader, of reading the pins or of saving
    them, and reports an error of Keystone's trusts without the model. In each case its API
    waits for a result for ever, and the environment stays in ``deploying``.
    """
    execute = engine.TaskExecutor.execute

    def reporting(executor: Any) -> Any:
        try:
            result = execute(executor)
        except Exception as error:
            result = executor.exception_result(error, None, "<system>")
        result.setdefault("model", executor.model)
        return result

    engine.TaskExecutor.execute = reporting


def keep_results() -> None:
    """Keep the result of a task until Murano's API takes it.

    Murano 16 waits 15 seconds for an answer, after which the message expires. If its API
    is down for longer, as while a host is restarted, the environment stays in ``deploying``.
    RabbitMQ drops a message without a queue, which its API declares only at its start.
    """

    def process_result(client: Any, result: Any, environment_id: str) -> None:
        results.sending.send(client._client, result, environment_id)

    rpc.ApiClient.process_result = process_result


def return_objects_from_actions() -> None:
    """Let an action return an object, such as a file.

    In the MuranoPL reference, section "Murano actions", an action returns a new
    ``io.murano.File``. Murano 16 writes the result after it has cleared all objects of the
    task, and fails with a ``TypeError``. The result is written before that; to write it again
    changes nothing.
    """
    invoke = engine.TaskExecutor._invoke

    def invoke_and_serialize(task: Any, executor: Any) -> Any:
        return serializer.serialize(invoke(task, executor), executor)

    engine.TaskExecutor._invoke = invoke_and_serialize
