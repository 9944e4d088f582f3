# SPDX-License-Identifier: Apache-2.0

"""System classes that act for the running task's environment, and for no other.

Murano's own classes let the package choose the environment, or its id.
"""

import logging
from typing import Any

from murano.dsl import helpers
from murano.engine.system import agent, instance_reporter, status_reporter

LOG = logging.getLogger(__name__)


class ForbiddenQueue(Exception):
    """A package sends to an agent whose host is not in the task's environment."""

    def __init__(self, queue: str, environment_id: str | None) -> None:
        owner = f"environment {environment_id}" if environment_id else "a task of an environment"
        super().__init__(
            f"the agent's queue {queue} does not belong to {owner}; only hosts in the environment "
            f"that is deployed can be reached"
        )


def environment_id() -> str | None:
    """Return the id of the running task's environment; None in a static action."""
    return getattr(helpers.get_execution_session(), "environment_id", None)


class TaskReporter(status_reporter.StatusReporter):  # type: ignore[misc]
    """Reports for the task's environment, whatever object is given; not in a static action."""

    def __init__(self, environment: Any) -> None:
        super().__init__(environment_id() or "")

    def _report(self, instance: Any, msg: Any, details: Any = None, level: str = "info") -> None:
        if self._environment_id:
            super()._report(instance, msg, details, level)
        else:
            LOG.debug("A report without an environment is not sent: %s", msg)


class TaskInstanceNotifier(instance_reporter.InstanceReportNotifier):  # type: ignore[misc]
    """Counts the instances of the task's environment; none in a static action."""

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
    """Sends to the agents of the task's environment.

    The name of a queue consists of the environment's id and the host's id in the model, and a
    package can choose ids.
    """

    def _send(self, *arguments: Any) -> Any:
        own = environment_id()
        if own is None or not self._queue.startswith(f"e{own}-h".lower()):
            raise ForbiddenQueue(self._queue, own)
        return super()._send(*arguments)
