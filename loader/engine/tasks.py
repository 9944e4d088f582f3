# SPDX-License-Identifier: Apache-2.0

"""Run tasks in this process, limit their time, and interrupt them.

A task is a deployment, a deletion, an action, a static action or a request for a schema, with all
its green threads. ``patches`` runs Murano's tasks through this module. ``shutdown`` and
``watchdog`` decide when to interrupt them.

An interrupted task may run code of packages again, in ``Finally`` blocks and ``.destroy``. So it is
interrupted repeatedly, with shorter and shorter pauses. The task is reported as failed with the
reason of the first interruption.
"""

import dataclasses
import logging
import math
import time
import types
from collections.abc import Callable
from typing import Any, Self, TypeVar, cast

import eventlet
import greenlet

from glare_murano.package import GlareMuranoError

LOG = logging.getLogger(__name__)

_Result = TypeVar("_Result")
_Function = TypeVar("_Function", bound=Callable[..., Any])

# The seconds from the first interruption of a task to the second. Each further pause is half as
# long, so that a request ends within 4 seconds.
_FIRST_PAUSE = 2.0
_SHORTEST_PAUSE = 0.1
# How many seconds an interrupted task may take to save its model.
_SAVING_SECONDS = 10.0
# How many seconds the other green threads of a task may take to end after its first one has ended.
_ENDING_SECONDS = 10.0
# The size of the stack of ``RunningTasks._run``, in values of 8 bytes. For its frame, CPython maps
# 128 KiB, and 70 KiB of them remain for the frames of calls.
_STACK_SIZE = 7_300


class Interrupted(greenlet.GreenletExit):  # type: ignore[misc]
    """An interruption of a task, raised in its green threads; a package cannot catch it."""


class EngineStopped(Exception):
    """The engine was stopped before the task ended."""

    def __init__(self) -> None:
        super().__init__(
            "the engine was stopped before this task ended, and nothing was rolled back; "
            "start the task again"
        )


class TaskLimitExceeded(GlareMuranoError):
    """A task has exceeded a limit of time or memory.

    The message names the option that sets the limit, and the place in the package's code that was
    running. The place ends with a colon; it is empty if no code of a package was running.
    """

    @classmethod
    def of_blocking(cls, place: str, seconds: float) -> Self:
        """Return the error for a task that has computed too long without a pause.

        :param place: the place in the package's code, see ``error_places.in_frame``.
        :param seconds: the limit.
        """
        return cls(
            f"{place} the task computed for more than {seconds:g} seconds and let no other task "
            f"run ([engine] blocking_seconds), so it was interrupted here".lstrip()
        )

    @classmethod
    def of_memory(cls, place: str, mebibytes: int) -> Self:
        """Return the error for a task that has taken too much memory."""
        return cls(
            f"{place} the task took more than {mebibytes} MiB of memory ([engine] "
            f"max_task_memory), so it was interrupted here".lstrip()
        )

    @classmethod
    def of_time(cls, place: str, limit: "TimeLimit") -> Self:
        """Return the error for a task that has taken too long."""
        return cls(
            f"{place} the {limit.kind} took more than {limit.seconds:g} seconds ([engine] "
            f"{limit.option}), so it was interrupted here".lstrip()
        )


@dataclasses.dataclass(frozen=True)
class TimeLimit:
    """The longest time that a kind of task may take.

    :param kind: the name of this kind of task in messages, such as "static action".
    :param seconds: the longest time, in seconds.
    :param option: the option in the group ``engine`` that sets the limit.
    """

    kind: str
    seconds: float
    option: str


class Task:
    """A task, which may be interrupted.

    :ivar reason: the reason of the first interruption; None if there was none.
    :ivar interruptions: how many times the task was interrupted.
    :ivar deadline: when the task is interrupted next, in seconds of ``time.monotonic``; infinite
        while no code of packages runs.
    :ivar memory: by how many bytes the process has grown while the task ran.
    :ivar interrupt_cell: a function that interrupts the cell in which the task runs; None if the
        task runs in this process.
    """

    def __init__(self, limit: TimeLimit) -> None:
        self.limit = limit
        self.memory = 0
        self.reason: Exception | None = None
        self.interruptions = 0
        self.deadline = math.inf
        self.interrupt_cell: Callable[[], object] | None = None
        self._pause = _FIRST_PAUSE
        # When a cell that was interrupted is killed, in seconds of ``time.monotonic``.
        self._killed_at = math.inf

    @property
    def is_interruptible(self) -> bool:
        """Whether code of packages runs in the task; this code may be interrupted anywhere."""
        return self.deadline != math.inf

    @property
    def is_expired(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() > self.deadline

    def run_limited(self, function: Callable[..., _Result], *args: Any) -> _Result:
        """Start the time limit of the task, and call a function that runs code of packages.

        :returns: the result of the function.
        :raises Exception: the reason of the first interruption, if the task was interrupted.
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
        """Give the task more time to save its model, if it was interrupted."""
        if self.reason is not None and self.is_interruptible:
            self._pause = _FIRST_PAUSE
            self.deadline = time.monotonic() + _SAVING_SECONDS

    def leaves_end_to_cell(self) -> bool:
        """Interrupt the cell of the task, if it has one, and return whether it has time to end."""
        if self.interrupt_cell is None:
            return False
        self._killed_at = min(self._killed_at, time.monotonic() + _SAVING_SECONDS)
        if time.monotonic() >= self._killed_at:
            return False
        self.interrupt_cell()
        return True

    def record_interruption(self, reason: Exception) -> Interrupted:
        """Record why the task is interrupted, and set the time of the next interruption.

        :returns: the exception that interrupts the task; the caller raises it.
        """
        if self.reason is None:
            LOG.warning("A %s is interrupted: %s", self.limit.kind, reason)
            self.reason = reason
        self.interruptions += 1
        if self.is_interruptible:
            self.deadline = time.monotonic() + self._pause
            self._pause = max(self._pause / 2, _SHORTEST_PAUSE)
        return Interrupted()


def _with_room_for_calls(function: _Function) -> _Function:
    """Let a function and the functions that it calls share a large piece of memory for frames.

    CPython keeps the frames of a green thread in pieces of 16 KiB, and unmaps a piece when its last
    frame ends. At the border of two pieces, each call maps memory again: 14,000 times in a
    deployment of 20 packages, a fifth of its time. A large frame gets a larger piece, and the rest
    of the piece remains for the next frames.
    """
    plain = cast(types.FunctionType, function)
    plain.__code__ = plain.__code__.replace(co_stacksize=_STACK_SIZE)
    return function


class RunningTasks:
    """All tasks that run in this process, with their green threads.

    A green thread is recorded while it runs for a task. Its record is removed at its end, even if
    the green thread is interrupted. So methods of this class call the given function, and are not
    context managers: ``watchdog`` never raises an exception in a function of this module itself,
    but it may raise one in a function of ``contextlib``.

    :ivar is_stopping: whether the process is stopping; then new tasks go back to the queue.
    """

    def __init__(self) -> None:
        self.is_stopping = False
        self._tasks: dict[Any, Task] = {}

    def __bool__(self) -> bool:
        """Return whether any task runs."""
        return bool(self._tasks)

    @property
    def current(self) -> Task | None:
        """The task of the current green thread; None if the green thread belongs to no task."""
        return self.of(eventlet.getcurrent())

    def of(self, thread: Any) -> Task | None:
        """Return the task of a green thread; None if it belongs to no task."""
        return self._tasks.get(thread)

    def run(self, task: Task, function: Callable[..., _Result], *args: Any) -> _Result:
        """Run a task in the current green thread, and then end the task's other green threads.

        :param function: the function that does the work of the task.
        :returns: the result of the function.
        :raises Exception: the reason of the first interruption, if the task was interrupted.
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
        """Call a function that runs code of packages, with the time limit of the current task.

        If the current green thread belongs to no task, there is no limit.

        :raises Exception: the reason of the first interruption, if the task was interrupted.
        """
        task = self.current
        return function(*args) if task is None else task.run_limited(function, *args)

    def run_request(
        self, limit: TimeLimit, function: Callable[..., _Result], *args: Any
    ) -> _Result:
        """Run a function as a task of its own, which has nothing but the limited function.

        :returns: the result of the function.
        :raises Exception: the reason of the first interruption, if the task was interrupted.
        """
        result: _Result = self.run(Task(limit), self.run_limited, function, *args)
        return result

    def run_part(
        self, task: Task, interruptions: int, function: Callable[..., _Result], *args: Any
    ) -> _Result:
        """Call a function for a task, in another green thread than the task's first one.

        :param interruptions: how often the task had been interrupted when this green thread was
            made.
        :raises Interrupted: if the task is interrupted, or was interrupted since this green thread
            was made.
        """
        if task.interruptions != interruptions:
            raise Interrupted
        return self._run(task, function, *args)

    def interrupt(self, reason: Exception) -> None:
        """Interrupt all tasks.

        The green thread of the caller must not belong to a task. All tasks wait while this method
        runs. After an interruption, a task may wait again before it ends. Then it can be
        interrupted again.
        """
        for task in set(self._tasks.values()):
            self._interrupt(task, reason)

    def interrupt_expired(self, place: Callable[[Any], str]) -> None:
        """Interrupt the tasks whose deadlines have passed.

        :param place: a function that takes a Python frame, and returns which line of a package runs
            in the frame, for the message.
        """
        for task in set(self._tasks.values()):
            if task.is_expired:
                # The first green thread waits for those that it has created, so their places
                # are preferred.
                places = (place(thread.gr_frame) for thread in reversed(self._threads(task)))
                found = next(filter(None, places), "")
                self._interrupt(task, TaskLimitExceeded.of_time(found, task.limit))

    @_with_room_for_calls
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
        if task.leaves_end_to_cell():
            return
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
