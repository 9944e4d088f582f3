# SPDX-License-Identifier: Apache-2.0

"""Keep tasks that get no turn for some seconds, and then send them back to the queue.

Other workers take tasks from the queue as well. Here, a task takes no place among those that the
worker handles at once. The tasks of one project go back at a constant rate, so a project with many
waiting tasks sends no more messages than a project with few.
"""

import collections
import logging
import sys
from collections.abc import Mapping
from typing import Any

import eventlet
from eventlet import event
from murano.common import rpc

from glare_murano.package import GlareMuranoError

LOG = logging.getLogger(__name__)

# The most tasks of a project that wait in this worker.
MAX_WAITING = 100
# The key of a task that has waited.
_WAITS = "waits"
# How many tasks of a project go back in a second.
_PER_SECOND = 2
# The shortest wait, in seconds.
_SHORTEST = 1


class TooManyWaiting(GlareMuranoError):
    """Too many tasks of a project wait already."""

    def __init__(self, project_id: object) -> None:
        super().__init__(
            f"{MAX_WAITING} tasks of the project {project_id} wait in this worker of the engine "
            f"already, which is the most; start the task again when some of them have ended"
        )


def has_waited(task: Mapping[str, Any]) -> bool:
    """Return whether a task comes from here."""
    return bool(task.get(_WAITS))


class WaitingTasks:
    """The tasks that wait in this process; each has a green thread."""

    def __init__(self) -> None:
        # The number of tasks is limited for each project, and not for all projects together.
        self._threads = eventlet.GreenPool(sys.maxsize)
        self._projects: collections.Counter[object] = collections.Counter()
        self._end = event.Event()

    def __bool__(self) -> bool:
        """Return whether a task waits."""
        return bool(self._threads.running())

    def add(self, task: Mapping[str, Any]) -> None:
        """Let a task wait.

        :param task: the task, as murano-api sends it.
        :raises TooManyWaiting: if too many tasks of its project wait.
        """
        project = task["project_id"]
        if self._projects[project] >= MAX_WAITING:
            raise TooManyWaiting(project)
        self._projects[project] += 1
        seconds = max(_SHORTEST, self._projects[project] / _PER_SECOND)
        self._threads.spawn_n(self._wait, task, seconds)

    def send_back(self) -> None:
        """Send all tasks back to the queue now, and each further task at once: the engine stops."""
        if not self._end.ready():
            self._end.send()

    def _wait(self, task: Mapping[str, Any], seconds: float) -> None:
        with eventlet.Timeout(seconds, False):
            self._end.wait()
        try:
            rpc.engine().handle_task({**task, _WAITS: True})
        except Exception:
            LOG.exception("A task that waited was not sent back to the queue, and is lost")
        finally:
            project = task["project_id"]
            self._projects[project] -= 1
            if not self._projects[project]:
                del self._projects[project]


# The waiting tasks of this process.
waiting = WaitingTasks()
