# SPDX-License-Identifier: Apache-2.0

"""Interrupt tasks, and report the result of each task to Murano's API."""

import functools
import logging
from collections.abc import Callable
from typing import Any

from murano.common import engine, rpc
from murano.dsl import executor, helpers, murano_object, object_store, serializer
from murano.engine import execution_session

from glare_murano.package import GlareMuranoError
from loader.engine import results, task_usage, tasks, yaql_quota
from loader.engine.cells import waiting_tasks

LOG = logging.getLogger(__name__)


class ModelNotSaved(GlareMuranoError):
    """The objects of a task could not be saved as a model."""

    def __init__(self, reason: str = "the engine's log has the reason") -> None:
        super().__init__(
            f"the objects of the environment could not be saved, so it keeps the model that the "
            f"task began with; {reason}"
        )


def interrupt_tasks() -> None:
    """Let the engine interrupt tasks, and report them as failed, with their models and pins.

    If a process ends in Murano 16, its tasks end as well, and their results are never sent. The
    time of a task is not limited. Here, an interruption ends all green threads of a task. The task
    then saves its objects and pins, as after any error, and is reported as failed.
    """
    execute, run = engine.TaskExecutor.execute, engine.TaskExecutor._execute
    execute_static = engine.StaticActionExecutor.execute
    parallel_select = helpers.parallel_select

    def execute_task(executor: Any) -> Any:
        task = tasks.Task(_time_limit("task", "task_seconds"))
        return tasks.running.run(task, execute, executor)

    def run_or_fail(executor: Any, packages: Any) -> Any:
        try:
            return tasks.running.run_limited(run, executor, packages)
        except (tasks.EngineStopped, tasks.TaskLimitExceeded) as error:
            return executor.exception_result(error, None, "<interruption>")

    def execute_static_action(executor: Any) -> Any:
        return run_request("static action", execute_static, executor)

    def select(collection: Any, function: Callable[[Any], Any], *limit: int) -> Any:
        task = tasks.running.current
        if task is None:
            return parallel_select(collection, function, *limit)
        part = functools.partial(tasks.running.run_part, task, task.interruptions, function)
        return parallel_select(collection, part, *limit)

    engine.TaskExecutor.execute = execute_task
    engine.TaskExecutor._execute = run_or_fail
    engine.StaticActionExecutor.execute = execute_static_action
    helpers.parallel_select = select


def run_request(kind: str, function: Callable[..., Any], *args: Any) -> Any:
    """Run a request for which murano-api waits, as a task with the limit ``request_seconds``.

    :param kind: the kind of request, for messages.
    :param function: the function that computes the answer.
    :returns: the answer.
    :raises EngineStopped: if the engine stops.
    :raises TaskLimitExceeded: if the request takes too long or too much memory.
    """
    return tasks.running.run_request(_time_limit(kind, "request_seconds"), function, *args)


def _time_limit(kind: str, option: str) -> tasks.TimeLimit:
    return tasks.TimeLimit(kind, engine.CONF.engine[option], option)


def save_models_of_interrupted_tasks() -> None:
    """Save the model of an interrupted task, whatever its packages do.

    If the execution of a task ends early, Murano 16 destroys the task's objects. For an interrupted
    task, this would delete deployed resources in ``.destroy``. If the model cannot be saved, Murano
    16 loses it.

    Here, the objects of an interrupted task are not destroyed. Only objects that the model does not
    contain any more are destroyed before it is saved, as in any task. If their ``.destroy`` is
    interrupted, the model is still saved. If the model cannot be saved, the environment keeps the
    model that the task began with. A model that is too large is not saved either, since it takes
    unlimited time to log, send and store it.
    """
    leave, finalize = executor.MuranoDslExecutor.__exit__, executor.MuranoDslExecutor.finalize
    prepare = object_store.ObjectStore.prepare_finalize
    on_session_finish = execution_session.ExecutionSession.on_session_finish

    def leave_undestroyed(dsl_executor: Any, kind: Any, error: Any, trace: Any) -> None:
        if kind not in (tasks.Interrupted, ModelNotSaved):
            leave(dsl_executor, kind, error, trace)

    def save(dsl_executor: Any, root: Any = None) -> Any:
        if task := tasks.running.current:
            task.extend_for_saving()
        return _save(dsl_executor, root) if root else finalize(dsl_executor)

    def prepare_anyway(store: Any, used: Any) -> None:
        _go_on("the destruction of unused objects", prepare, store, used)

    def register_hook(session: Any, hook: Callable[[], Any]) -> None:
        on_session_finish(session, functools.partial(_go_on, "a hook of the task", hook))

    executor.MuranoDslExecutor.__exit__ = leave_undestroyed
    executor.MuranoDslExecutor.finalize = save
    object_store.ObjectStore.prepare_finalize = prepare_anyway
    execution_session.ExecutionSession.on_session_finish = register_hook


def release_objects_of_ended_tasks() -> None:
    """Do not call ``.destroy`` of objects that still exist after their task has ended.

    The objects of a failed call exist as long as its exception. After the end of the task, nothing
    can call their ``.destroy`` any more. Murano 16 tries to call it, and for each object writes an
    error about ``object_store`` to the engine's output, without the name of a package. Here, it is
    not called, and there is no error.
    """
    schedule_destruction = murano_object.RecyclableMuranoObject.__del__

    def release(obj: Any) -> None:
        if obj.executor is not None:
            schedule_destruction(obj)

    murano_object.RecyclableMuranoObject.__del__ = release


def _save(dsl_executor: Any, root: Any) -> Any:
    """Make a model from the objects of a task, and return it.

    Unlike Murano 16, which only logs a failure, this function raises an error.

    :param root: the object of the environment.
    :raises ModelNotSaved: if the model cannot be made, or is too large. The message names the value
        or the size that is the cause, or refers to the log.
    """
    store = dsl_executor.object_store
    try:
        store.prepare_finalize(serializer.collect_objects(root))
        model = serializer.serialize_model(root, dsl_executor)
        store.finalize()
        task_usage.check_model(model)
    except (ValueError, yaql_quota.LimitExceeded) as error:
        raise ModelNotSaved(str(error)) from error
    except Exception as error:
        raise ModelNotSaved from error
    return model


def _go_on(what: str, function: Callable[..., Any], *args: Any) -> None:
    """Call a function; if it is interrupted, log this and return, so that the model can be saved.

    The task still fails, with the reason for its interruption.

    :param what: what the function does, for the log.
    """
    try:
        function(*args)
    except tasks.Interrupted:
        LOG.warning("An interruption ended %s", what)


def return_new_tasks() -> None:
    """Send tasks back to the queue if the engine is stopping and has not begun them.

    oslo.messaging removes a task from the queue as soon as an engine receives it. If the engine
    then stops, Murano 16 loses the task. Here, the engine sends the task again when it has left the
    queue, so that another engine receives it.
    """
    handle_task = engine.TaskProcessingEndpoint.handle_task

    def handle_or_return(context: Any, task: Any) -> None:
        if tasks.running.is_stopping:
            waiting_tasks.waiting.wait_for_end()
            LOG.info("Task %s is returned to the queue", task["id"])
            rpc.engine().handle_task(task)
        else:
            handle_task(context, task)

    engine.TaskProcessingEndpoint.handle_task = staticmethod(handle_or_return)


def report_every_failure() -> None:
    """Report errors before and after the execution of a task, with the task's model.

    Murano 16 does not report an error that occurs while it makes the package loader, or while it
    reads or saves the pins. For an error with Keystone's trusts, its report lacks the model.
    Murano's API then waits for a result for ever, and the environment stays in ``deploying``. Here,
    each error becomes a result that has the model.
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

    Murano 16 waits 15 seconds for an answer to the result; then the message expires. If its API is
    down for longer, as while a host is restarted, the environment stays in ``deploying``. RabbitMQ
    also drops a message if the queue is missing, and the API declares the queue only when it
    starts. Here, ``results`` keeps the result until a queue has it.
    """

    def process_result(client: Any, result: Any, environment_id: str) -> None:
        results.sender.send(client._client, result, environment_id)

    rpc.ApiClient.process_result = process_result


def return_objects_from_actions() -> None:
    """Let an action return an object, such as a file.

    In the MuranoPL reference, section "Murano actions", an action returns a new ``io.murano.File``.
    Murano 16 serializes the result after it has cleared all objects of the task, and fails with a
    ``TypeError``. Here, the result is serialized earlier. Murano then serializes it again, which
    does not change it.
    """
    invoke = engine.TaskExecutor._invoke

    def invoke_and_serialize(task: Any, executor: Any) -> Any:
        return serializer.serialize(invoke(task, executor), executor)

    engine.TaskExecutor._invoke = invoke_and_serialize
