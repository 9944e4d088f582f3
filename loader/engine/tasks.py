# SPDX-License-Identifier: Apache-2.0

"""The running tasks of this process, and their interruption.

A task is a deployment, a deletion, an action or a static action, with all its green threads.
``shutdown`` decides when tasks are interrupted; ``patches`` registers them here.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import eventlet
import greenlet


class Interrupted(greenlet.GreenletExit):  # type: ignore[misc]
    """A waiting task is interrupted; no ``Catch`` of a package stops the interruption."""


class EngineStopped(Exception):
    """The engine was stopped before a task ended."""

    def __init__(self) -> None:
        super().__init__(
            "the engine was stopped before this task ended, and nothing was rolled back; "
            "start the task again"
        )


class RunningTasks:
    """The green threads of all tasks.

    :ivar is_stopping: whether the process is stopping, and returns new tasks to the queue.
    """

    def __init__(self) -> None:
        self.is_stopping = False
        self._threads: set[Any] = set()

    def __bool__(self) -> bool:
        """Return whether any task runs."""
        return bool(self._threads)

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Run a task, or a part of it, in the current green thread.

        :raises Interrupted: if the tasks are interrupted.
        """
        thread = eventlet.getcurrent()
        self._threads.add(thread)
        try:
            yield
        finally:
            self._threads.discard(thread)

    def interrupt(self) -> None:
        """Raise ``Interrupted`` in all green threads, at their current waits.

        A task may wait again while ending, and can then be interrupted again.
        """
        for thread in list(self._threads):
            eventlet.kill(thread, Interrupted())


# Of this process.
running = RunningTasks()
