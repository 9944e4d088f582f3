# SPDX-License-Identifier: Apache-2.0

"""System classes that act only for the environment of the running task.

With Murano's own classes, a package can choose the environment, or its id.
"""

import logging
from typing import Any

from murano.dsl import helpers
from murano.engine.system import agent, instance_reporter, status_reporter

LOG = logging.getLogger(__name__)


class ForbiddenQueue(Exception):
    """A package sends a message to an agent whose host is not in the task's environment."""

    def __init__(self, queue: str, environment_id: str | None) -> None:
        owner = f"environment {environment_id}" if environment_id else "a task of an environment"
        super().__init__(
            f"the agent's queue {queue} does not belong to {owner}; only hosts in the environment "
            f"that is deployed can be reached"
        )


def environment_id() -> str | None:
    """Return the id of the running task's environment; None in a static action."""
    return getattr(helpers.get_execution_session(), "environment_id", None)


def check_queue(queue: str, environment_id: str | None) -> None:
    """Check that the queue of an agent belongs to an environment.

    :param environment_id: the id of the environment; None in a static action.
    :raises ForbiddenQueue: if it does not.
    """
    if environment_id is None or not queue.startswith(f"e{environment_id}-h".lower()):
        raise ForbiddenQueue(queue, environment_id)


class TaskReporter(status_reporter.StatusReporter):  # type: ignore[misc]
    """Reports to the task's environment.

    The environment that a package passes is ignored. In a static action, nothing is reported.
    """

    def __init__(self, environment: Any) -> None:
        super().__init__(environment_id() or "")

    def _report(self, instance: Any, msg: Any, details: Any = None, level: str = "info") -> None:
        if self._environment_id:
            super()._report(instance, msg, details, level)
        else:
            LOG.debug("A report without an environment is not sent: %s", msg)


class TaskInstanceNotifier(instance_reporter.InstanceReportNotifier):  # type: ignore[misc]
    """Counts the instances of the task's environment.

    The environment that a package passes is ignored. In a static action, nothing is counted.
    """

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self._environment_id = environment_id()

    def _track_instance(self, *arguments: Any) -> None:
        if self._environment_id:
            super()._track_instance(*arguments)

    def _untrack_instance(self, *arguments: Any) -> None:
        if self._environment_id:
            super()._untrack_instance(*arguments)


class TaskAgent(agent.Agent):  # type: ignore[misc]
    """Sends messages only to the agents of the task's environment.

    The name of an agent's queue consists of the environment's id and the id of the host in the
    model. A package can choose such ids. So the name is compared with the id of the task's
    environment.
    """

    def _send(self, *arguments: Any) -> Any:
        check_queue(self._queue, environment_id())
        return super()._send(*arguments)
