# SPDX-License-Identifier: Apache-2.0

"""Run the code of deployments, deletions and actions in cells, from the engine's process.

The engine's process makes and deletes the trust, plans the packages, and writes what the result
says of pins, project, user and environment. Only the objects come from the cell.
"""

import contextlib
import json
import math
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from murano.common import engine

from glare_murano.package import GlareMuranoError
from glare_murano.package.sandbox import MAX_ANSWER, Turns
from loader.engine import agent_signatures, credentials, tasks
from loader.engine.adapter import EnginePackageLoader
from loader.engine.cells import agent_access, cell_calls, cell_reach, endpoints
from loader.engine.cells.crossing_errors import CellError
from loader.engine.cells.described_packages import DescribedPackages
from loader.engine.cells.package_answers import PackageAnswers
from loader.engine.cells.task_answers import TaskAnswers
from loader.environments import object_model

# The keys of a model that come from the cell.
_OBJECTS = ("Objects", "ObjectsCopy", "Attributes")
# The deepest result or model, in lists and mappings inside each other.
_MAX_DEPTH = 100
# How long a cell may take to end and to save its model after the task has reached its limit, in
# seconds. Then it is killed.
_SECONDS_TO_END = 30
# How long a task waits for a turn among those that the worker handles, in seconds; see
# ``waiting_tasks``.
_SECONDS_TO_WAIT = 1

# The tasks that run in this worker.
_turns = Turns()


class TaskLost(GlareMuranoError):
    """The cell of a task has ended without a result."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(
            f"{reason}; the environment keeps the model that the task began with, and resources "
            f"that the task has created may be left"
        )


def are_enabled() -> bool:
    """Return whether tasks run in cells, by the options of the engine."""
    return cell_calls.are_enabled("task_cells")


def run(executor: Any, packages: EnginePackageLoader) -> dict[str, Any]:
    """Run the code of a task in a cell, and return the task's result.

    The objects that the task has changed become the executor's model.

    :param executor: Murano's ``TaskExecutor``.
    :param packages: the package loader of the task, which has the pins.
    """
    packages.loader.package_types = DescribedPackages(executor.session)
    try:
        engine.get_plugin_loader().register_in_loader(packages)
        model = packages.plan_model(executor.model)
    except Exception as error:
        return _failure(executor, error, "<load>")
    try:
        result, changed = _checked(_call(executor, packages, model), executor.model)
    except Exception as error:
        return _failure(executor, TaskLost(error), "<cell>")
    except tasks.Interrupted:
        # The cell has not ended in time, and was killed.
        return _failure(executor, TaskLost(tasks.EngineStopped()), "<interruption>")
    if changed is not None:
        executor._model = changed
    if not result["action"]["isException"]:
        packages.compact_fixation_table()
    return result


def _failure(executor: Any, error: Exception, method: str) -> dict[str, Any]:
    result: dict[str, Any] = executor.exception_result(error, None, method)
    return result


def _call(executor: Any, packages: EnginePackageLoader, model: Mapping[str, Any]) -> Any:
    """Run a task in a cell, and return what the cell returns."""
    session, conf = executor.session, engine.CONF.engine
    agents = agent_access.of_cells(engine.CONF)
    owner = {"project_id": session.environment_owner_project_id}
    owner["user_id"] = session.environment_owner_user_id
    task = {
        "id": session.environment_id,
        "action": executor.action,
        "model": {**{key: model[key] for key in _OBJECTS if key in model}, **owner},
        "token": session.token,
        "project_id": session.project_id,
        "user_id": session.user_id,
    }
    request = {
        "endpoint": endpoints.TASK,
        "task": task,
        "has_trust": session.trust_id is not None,
        "agents": agents.to_json(),
        "public_key": agent_signatures.public_key(engine.CONF),
    }
    with cell_calls.copies() as directory:
        found = PackageAnswers(packages.loader, session, pathlib.Path(directory))
        answers = TaskAnswers(found, session, session.environment_id)
        # The loader's session has requested the catalogue of services already.
        ports = cell_reach.ports(packages.session or credentials.task_session(session))
        settings = cell_calls.settings(
            directory,
            [*ports, *(broker.destination.port for broker in agents.brokers)],
            seconds=math.ceil(conf.task_seconds) + _SECONDS_TO_END,
            wall_seconds=conf.task_seconds + _SECONDS_TO_END,
            readable=_certificates_of_agents(),
        )
        try:
            result = cell_calls.call(
                session,
                request,
                answers.answer,
                settings,
                started=lambda cell: _interrupt_by(cell.interrupt),
            )
        finally:
            _interrupt_by(None)
        cell_calls.preload(found)
        return result


def _certificates_of_agents() -> list[str]:
    path = engine.CONF.rabbitmq.ca_certs.strip()
    return [path] if path else []


def _interrupt_by(interrupt: Callable[[], object] | None) -> None:
    """Choose how the current task is interrupted; see ``tasks.Task``."""
    if task := tasks.running.current:
        task.interrupt_cell = interrupt


def turn(task: Mapping[str, Any]) -> contextlib.AbstractContextManager[None]:
    """Wait a short time for a turn of the task's project among the tasks of this worker.

    :param task: the task, as murano-api sends it.
    :raises Busy: if too many tasks run.
    """
    conf = engine.CONF.engine
    limits = conf.max_task_cells, conf.max_project_task_cells
    return _turns.turn(task["project_id"], *limits, _SECONDS_TO_WAIT)


def _checked(found: Any, former: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the result that a cell has returned, and the new model; None if it is unchanged.

    :param found: what the cell has returned.
    :param former: the model that the task began with.
    :raises CellError: if something has a wrong form, or the objects are those of another
        environment.
    """
    match found:
        case {"result": {"action": {"isException": False, "result": result}}, "model": model}:
            action = {"isException": False, "result": result}
        case {
            "result": {
                "action": {
                    "isException": True,
                    "result": {"message": str(message), "details": str(details)},
                }
            },
            "model": model,
        }:
            error = {"message": message, "details": details}
            action = {"isException": True, "result": error}
        case _:
            raise CellError("the cell has not returned a result and a model")
    _check_depth(action)
    changed = None if model is None else _checked_model(model, former)
    _check_length([action, changed])
    return {"action": action}, changed


def _checked_model(model: Any, former: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a cell may say in a model.

    :param model: what the cell has returned.
    :param former: the model that the task began with.
    :raises CellError: if the objects are those of another environment, or if the model does not
        have the form that murano-api expects.
    """
    if not isinstance(model, dict) or "Objects" not in model:
        raise CellError("the cell has not returned a model")
    objects = model["Objects"]
    if objects is not None:
        header, new = object_model.root_header(former) or {}, object_model.root_header(model)
        if new is None or new.get("id") != header.get("id"):
            raise CellError("the cell has returned the model of another environment")
        if not isinstance(objects.get("applications", []), list):
            raise CellError("the cell has returned a model whose applications are not a list")
    found = {key: model[key] for key in _OBJECTS if key in model}
    _check_depth(found)
    return found


def _check_length(content: Any) -> None:
    """Check that content is as short for RabbitMQ as it came from the cell.

    Other characters than ASCII take more bytes in a message. RabbitMQ refuses a message that is too
    long, and the result would be sent again and again.

    :raises CellError: if it is too long.
    """
    if len(json.dumps(content)) > MAX_ANSWER:
        raise CellError(f"the result and the model have more than {MAX_ANSWER} bytes in JSON")


def _check_depth(content: Any) -> None:
    """Check that content is not nested so deep that murano-api cannot read it.

    :raises CellError: if it is.
    """
    level = [content]
    for _ in range(_MAX_DEPTH):
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
        if not level:
            return
    raise CellError(f"the result or the model is nested deeper than {_MAX_DEPTH} levels")
