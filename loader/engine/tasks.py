# SPDX-License-Identifier: Apache-2.0

"""The running tasks of this process, their limits and their interruption.

A task is a deployment, a deletion, an action, a static action or a request for a schema, with
all its green threads. ``shutdown`` and ``watchdog`` decide when tasks are interrupted;
``patches`` registers them here.

An interrupted task may run code of packages again: ``Finally`` blocks, ``.destroy``. So
interruptions repeat, with shorter and shorter pauses. The first reason is reported.
"""

import dataclasses
import logging
import math
import time
from collections.abc import Callable
from typing import Any, Self, TypeVar

import eventlet
import greenlet

from glare_murano.package import GlareMuranoError

LOG = logging.getLogger(__name__)

_Result = TypeVar("_Result")

# The seconds from the first interruption of a task to the second. Each further pause is half as
# long, so that a request ends within 4 seconds.
_FIRST_PAUSE = 2.0
_SHORTEST_PAUSE = 0.1
# How long an interrupted task may save its model.
_SAVING_SECONDS = 10.0
# How long the other green threads of a task may take to end, after the first one has ended.
_ENDING_SECONDS = 10.0


class Interrupted(greenlet.GreenletExit):  # type: ignore[misc]
    """A task is interrupted; a package cannot stop the interruption with ``Catch``."""


class EngineStopped(Exception):
    """The engine was stopped before a task ended."""

    def __init__(self) -> None:
        super().__init__(
            "the engine was stopped before this task ended, and nothing was rolled back; "
            "start the task again"
        )


class TaskLimitExceeded(GlareMuranoError):
    """A task has exceeded a limit of time or memory.

    The message names the option that sets the limit, and the place in the package's code. The
    place ends with a colon. It is empty if no code of a package was running.
    """

    @classmethod
    def of_blocking(cls, place: str, seconds: float) -> Self:
        """Return the error of a task that has blocked the process."""
        return cls(
            f"{place} the task computed for more than {seconds:g} seconds and let no other task "
            f"run ([engine] blocking_seconds), so it was interrupted here".lstrip()
        )

    @classmethod
    def of_memory(cls, place: str, mebibytes: int) -> Self:
        """Return the error of a task that has taken too much memory."""
        return cls(
            f"{place} the task took more than {mebibytes} MiB of memory ([engine] "
            f"max_task_memory), so it was interrupted here".lstrip()
        )

    @classmethod
    def of_time(cls, place: str, limit: "TimeLimit") -> Self:
        """Return the error of a task that has taken too long."""
        return cls(
            f"{place} the {limit.kind} took more than {limit.seconds:g} seconds ([engine] "
            f"{limit.option}), so it was interrupted here".lstrip()
        )


@dataclasses.dataclass(frozen=True)
class TimeLimit:
    """The longest time that a kind of task may take.

    :param kind: such as "deployment", for messages.
    :param option: the name of the option in the group ``engine``.
    """

    kind: str
    seconds: float
    option: str


class Task:
    """A running task.

    :ivar reason: why it was interrupted first; None before.
    :ivar interruptions: how many times it was interrupted.
    :ivar deadline: when it is interrupted next, in seconds of ``time.monotonic``; infinite
        while no code of packages runs.
    :ivar memory: the bytes by which the process has grown while the task ran.
    """

    def __init__(self, limit: TimeLimit) -> None:
        self.limit = limit
        self.memory = 0
        self.reason: Exception | None = None
        self.interruptions = 0
        self.deadline = math.inf
        self._pause = _FIRST_PAUSE

    @property
    def is_interruptible(self) -> bool:
        """Whether the task runs code of packages, which may be interrupted anywhere."""
        return self.deadline != math.inf

    @property
    def is_expired(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() > self.deadline

    def run_limited(self, function: Callable[..., _Result], *args: Any) -> _Result:
        """Run code of packages until the deadline.

        :raises Exception: the reason, if the task was interrupted.
        """
        self.deadline = time.monotonic() + self.limit.seconds
        try:
            result = function(*args)
        except (Interrupted, Exception) as error:
            if self.reason is None:
                raise
            raise self.reason from error
        finally:
            self.deadline = math.inf
        if self.reason is not None:
            raise self.reason
        return result

    def extend_for_saving(self) -> None:
        """Give an interrupted task the time to save its model."""
        if self.reason is not None and self.is_interruptible:
            self._pause = _FIRST_PAUSE
            self.deadline = time.monotonic() + _SAVING_SECONDS

    def record_interruption(self, reason: Exception) -> Interrupted:
        """Record why the task is interrupted, and return the exception that interrupts it."""
        if self.reason is None:
            LOG.warning("A %s is interrupted: %s", self.limit.kind, reason)
            self.reason = reason
        self.interruptions += 1
        if self.is_interruptible:
            self.deadline = time.monotonic() + self._pause
            self._pause = max(self._pause / 2, _SHORTEST_PAUSE)
        return Interrupted()


class RunningTasks:
    """The green threads of all tasks.

    The methods take functions, and are not context managers. ``watchdog`` never raises an exception
    directly in a function of this module, so each green thread that is added is also removed.

    :ivar is_stopping: whether the process is stopping, and returns new tasks to the queue.
    """

    def __init__(self) -> None:
        self.is_stopping = False
        self._tasks: dict[Any, Task] = {}

    def __bool__(self) -> bool:
        """Return whether any task runs."""
        return bool(self._tasks)

    @property
    def current(self) -> Task | None:
        """The task of the current green thread."""
        return self.of(eventlet.getcurrent())

    def of(self, thread: Any) -> Task | None:
        """Return the task of a green thread."""
        return self._tasks.get(thread)

    def run(self, task: Task, function: Callable[..., _Result], *args: Any) -> _Result:
        """Run a task in the current green thread, and then end its other green threads.

        :raises Exception: the reason, if the task was interrupted.
        """
        try:
            return self._run(task, function, *args)
        except Interrupted as error:
            if task.reason is None:
                raise
            raise task.reason from error
        finally:
            self._end(task)

    def run_limited(self, function: Callable[..., _Result], *args: Any) -> _Result:
        """Run code of packages until the deadline of the current task, if there is a task.

        :raises Exception: the reason, if the task was interrupted.
        """
        task = self.current
        return function(*args) if task is None else task.run_limited(function, *args)

    def run_part(
        self, task: Task, interruptions: int, function: Callable[..., _Result], *args: Any
    ) -> _Result:
        """Run a part of a task in the current green thread.

        :param interruptions: how often the task was interrupted before the green thread was made.
        :raises Interrupted: if the task is interrupted, or was interrupted before the part began.
        """
        if task.interruptions != interruptions:
            raise Interrupted
        return self._run(task, function, *args)

    def interrupt(self, reason: Exception) -> None:
        """Interrupt all tasks while they wait.

        A task may wait again while it ends, and can then be interrupted again.
        """
        for task in set(self._tasks.values()):
            self._interrupt(task, reason)

    def interrupt_expired(self, place: Callable[[Any], str]) -> None:
        """Interrupt the tasks whose deadlines have passed.

        :param place: a function that describes the place of a Python frame, for the message.
        """
        for task in set(self._tasks.values()):
            if task.is_expired:
                # The first green thread waits for the ones that it has created. So their places
                # come first.
                places = (place(thread.gr_frame) for thread in reversed(self._threads(task)))
                found = next(filter(None, places), "")
                self._interrupt(task, TaskLimitExceeded.of_time(found, task.limit))

    def _run(self, task: Task, function: Callable[..., _Result], *args: Any) -> _Result:
        thread = eventlet.getcurrent()
        self._tasks[thread] = task
        try:
            return function(*args)
        finally:
            del self._tasks[thread]

    def _threads(self, task: Task) -> list[Any]:
        return [thread for thread, owner in self._tasks.items() if owner is task]

    def _interrupt(self, task: Task, reason: Exception) -> None:
        task.record_interruption(reason)
        for thread in self._threads(task):
            eventlet.kill(thread, Interrupted())

    def _end(self, task: Task) -> None:
        deadline = time.monotonic() + _ENDING_SECONDS
        while threads := self._threads(task):
            if time.monotonic() > deadline:
                LOG.error("%d green threads of a %s do not end", len(threads), task.limit.kind)
                return
            for thread in threads:
                eventlet.kill(thread, Interrupted())
            eventlet.sleep(_SHORTEST_PAUSE)


# The running tasks of this process.
running = RunningTasks()
