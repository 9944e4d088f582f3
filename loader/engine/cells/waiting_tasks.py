# SPDX-License-Identifier: Apache-2.0

"""Keep tasks that get no turn for some seconds, and then send them back to the queue.

Other workers take tasks from the queue as well. Here, a task takes no place among those that the
worker handles at once. The tasks of one project go back at a constant rate, so a project with many
waiting tasks sends no more messages than a project with few.

A waiting task is kept as JSON: as Python's objects, a model can take 30 times the memory.
"""

import collections
import json
import logging
import sys
from collections.abc import Mapping
from typing import Any

import eventlet
from eventlet import event, semaphore
from murano.common import rpc

from glare_murano.package import GlareMuranoError

LOG = logging.getLogger(__name__)

# The longest task, in bytes of JSON. A task in a cell saves a model of 4 MiB at most. The rest is
# for the pins, the token, and the arguments of an action.
MAX_TASK = 5 * 1024**2
# The most tasks of a project that wait in this worker.
MAX_WAITING = 100
# The largest size of the tasks of a project that wait in this worker, in bytes of JSON.
MAX_SIZE = 32 * 1024**2
# The same for the tasks of all projects. If they exceed it, each project may still have
# ``MAX_TASK`` bytes, so that some projects do not keep the tasks of others from waiting.
MAX_TOTAL_SIZE = 128 * 1024**2
# The key of a task that has waited.
_WAITS = "waits"
# How many tasks of a project go back in a second.
_PER_SECOND = 2
# The shortest wait, in seconds.
_SHORTEST = 1
# The longest time that a stopping engine takes to leave the queue, in seconds.
_SECONDS_TO_LEAVE = 3


class TaskTooLarge(GlareMuranoError):
    """A task is too large to be run."""

    def __init__(self, size: int) -> None:
        super().__init__(
            f"the task has {size} bytes with the model of its environment, at most {MAX_TASK} are "
            f"allowed; remove applications, or abandon the environment"
        )


class TooManyWaiting(GlareMuranoError):
    """Too many tasks of a project wait already, or their size is too large."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; start the task again when some of them have ended")


def has_waited(task: Mapping[str, Any]) -> bool:
    """Return whether a task comes from here."""
    return bool(task.get(_WAITS))


def to_json(task: Mapping[str, Any]) -> str:
    """Return a task as JSON, in ASCII.

    :raises TaskTooLarge: if it has more than ``MAX_TASK`` bytes when it arrives for the first time.
    """
    text = json.dumps(task)
    if len(text) > MAX_TASK and not has_waited(task):
        raise TaskTooLarge(len(text))
    return text


class WaitingTasks:
    """The tasks that wait in this process; each has a green thread."""

    def __init__(self) -> None:
        # The number of tasks is limited for each project, and not for all projects together.
        self._threads = eventlet.GreenPool(sys.maxsize)
        self._projects: collections.Counter[object] = collections.Counter()
        self._sizes: collections.Counter[object] = collections.Counter()
        self._end = event.Event()
        # Tasks are parsed one after another, even if all of them go back at once.
        self._sending = semaphore.Semaphore()

    def __bool__(self) -> bool:
        """Return whether a task waits."""
        return bool(self._threads.running())

    def add(self, project: object, task: str) -> None:
        """Let a task wait.

        :param project: the id of its project.
        :param task: the task, as ``to_json`` has returned it.
        :raises TooManyWaiting: if too many or too large tasks of the project wait.
        """
        if self._projects[project] >= MAX_WAITING:
            raise TooManyWaiting(
                f"{MAX_WAITING} tasks of the project {project} wait in this worker of the engine "
                f"already, which is the most"
            )
        is_full = self._sizes.total() + len(task) > MAX_TOTAL_SIZE
        limit, size = MAX_TASK if is_full else MAX_SIZE, self._sizes[project] + len(task)
        if size > limit:
            raise TooManyWaiting(
                f"with this task, the tasks of the project {project} that wait in this worker of "
                f"the engine would have {size} bytes, at most {limit} are allowed"
            )
        self._projects[project] += 1
        self._sizes[project] += len(task)
        seconds = max(_SHORTEST, self._projects[project] / _PER_SECOND)
        self._threads.spawn_n(self._wait, project, task, seconds)

    def send_back(self) -> None:
        """Send all tasks back to the queue now, and each further task at once.

        The engine calls this when it stops, as soon as it receives no more tasks.
        """
        if not self._end.ready():
            self._end.send()

    def wait_for_end(self) -> None:
        """Wait until ``send_back`` is called, for some seconds at most."""
        with eventlet.Timeout(_SECONDS_TO_LEAVE, False):
            self._end.wait()

    def _wait(self, project: object, task: str, seconds: float) -> None:
        with eventlet.Timeout(seconds, False):
            self._end.wait()
        try:
            with self._sending:
                rpc.engine().handle_task({**json.loads(task), _WAITS: True})
        except Exception:
            LOG.exception("A task that waited was not sent back to the queue, and is lost")
        finally:
            self._projects[project] -= 1
            self._sizes[project] -= len(task)
            if not self._projects[project]:
                del self._projects[project], self._sizes[project]


# The waiting tasks of this process.
waiting = WaitingTasks()
