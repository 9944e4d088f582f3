# SPDX-License-Identifier: Apache-2.0

"""Interrupt tasks that block the process, or that exceed their time or their memory.

The green threads of a process share one thread. A package that computes in a loop blocks all other
tasks. So a package may compute only for a limited time before another green thread runs.

The kernel counts the processor time of the process (``ITIMER_PROF``), and sends SIGPROF after each
tenth of a second. So an idle process is not woken up, and no package fails because the host is
busy. ``ITIMER_VIRTUAL`` is not used: it does not count the work of the kernel, such as writes to a
log, so the time between two signals could be several times longer. Python calls the signal's
handler between two bytecodes of the main thread, and also within regular expressions and powers.

The watchdog has to know whether another green thread has run since the last signal. greenlet
reports every switch between green threads to the watchdog, which counts them; a deployment of 20
packages has 64 switches. (No hook of eventlet reports all switches.) If a package exceeds the
limit, the handler raises ``Interrupted`` where the package computes.

Some functions that Python implements in C do not check for signals, for example when they repeat a
string or multiply two integers. They are interrupted when they return. Limits on their arguments
(``yaql_guards``) also limit their time.

A task that waits gets no signal. So a green thread interrupts waiting tasks that exceed their time.

If the process grows between two switches, the growth counts as memory of the task that ran between
them. If a task only reuses memory that ended tasks have freed, the process does not grow, so this
memory is not counted.
"""

import atexit
import contextlib
import os
import signal
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

import eventlet
import greenlet

from loader.engine import error_places, tasks

# The seconds of processor time between two signals.
_TICK = 0.1
# The seconds between two checks of the tasks that wait.
_POLL_SECONDS = 0.25
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
# In these modules, an exception at any bytecode could damage a lock or a timer of all tasks.
_UNSAFE = {
    "_thread", "amqp", "eventlet", "kombu", "logging", "oslo_log", "oslo_messaging", "threading"
}  # fmt: skip
_UNSAFE_PARTS = {__name__, tasks.__name__}
# In a cell, an exception in the middle of an answer would lose the rest of the answer.
_CONVERSATION = "glare_murano.package.sandbox.conversation"
# Modules that evaluate packages.
_EVALUATING = {"murano", "yaql"}


class Watchdog:
    """Interrupts tasks that compute too long or take too much memory.

    The main thread has to start it.

    >>> Watchdog(5, 1024).start()

    :param seconds: the processor time that a task may take before another green thread runs.
    :param mebibytes: how much memory a task may take, in MiB.
    """

    def __init__(self, seconds: float, mebibytes: int) -> None:
        self._seconds = seconds
        self._mebibytes = mebibytes
        # The kernel's file about this process, and the memory at the last check, in pages.
        self._statm = -1
        self._pages = 0
        self._switches = 0
        # The number of switches and the task at the previous signal.
        self._seen: tuple[int, tasks.Task | None] = (0, None)
        self._since = 0.0
        self._waits: Any = None

    def start(self) -> None:
        """Start the watchdog in this process; after a fork, the child has to start its own."""
        self._statm = os.open("/proc/self/statm", os.O_RDONLY)
        self._pages = self._resident_pages()
        greenlet.settrace(self._count)
        signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, _TICK, _TICK)
        # When Python exits, it restores the default handler, which would end the process.
        atexit.register(signal.setitimer, signal.ITIMER_PROF, 0)
        self._waits = eventlet.spawn(self._interrupt_waits)

    def stop(self) -> None:
        """Stop the watchdog: no task is interrupted any more."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)
        greenlet.settrace(None)
        os.close(self._statm)
        self._waits.kill()

    def _count(self, _event: str, threads: tuple[Any, Any]) -> None:
        self._switches += 1
        self._charge(tasks.running.of(threads[0]))

    def _charge(self, task: tasks.Task | None) -> None:
        """Add the growth of the process since the last call to the memory of a task.

        :param task: the task that has run since the last call; None if no task has run.
        """
        pages = self._resident_pages()
        grown, self._pages = pages - self._pages, pages
        if task is not None:
            task.memory = max(0, task.memory + grown * _PAGE_SIZE)

    def _resident_pages(self) -> int:
        return int(os.pread(self._statm, 100, 0).split()[1])

    def _look(self, _number: int, frame: FrameType | None) -> None:
        """Handle SIGPROF: interrupt the current task if it exceeds one of its limits."""
        task = tasks.running.current
        self._charge(task)
        now = time.thread_time()
        if self._seen != (self._switches, task):
            self._seen, self._since = (self._switches, task), now
        if task is None or not task.is_interruptible:
            return
        held = now - self._since
        # Code should leave an unsafe module soon. If it does not, a damaged lock is better than a
        # process that is blocked for ever.
        if _is_unsafe(frame) and held < 2 * self._seconds:
            return
        if held > self._seconds:
            # A finalizer, for example, may swallow the interruption. Then it is repeated.
            self._since = now
            place = error_places.in_frame(frame)
            raise task.record_interruption(
                tasks.TaskLimitExceeded.of_blocking(place, self._seconds)
            )
        if task.memory > self._mebibytes * 1024**2:
            # Count from zero again, since the task needs memory to end.
            task.memory = 0
            place = error_places.in_frame(frame)
            raise task.record_interruption(
                tasks.TaskLimitExceeded.of_memory(place, self._mebibytes)
            )
        if task.is_expired:
            raise task.record_interruption(
                tasks.TaskLimitExceeded.of_time(error_places.in_frame(frame), task.limit)
            )

    def _interrupt_waits(self) -> None:
        while True:
            eventlet.sleep(_POLL_SECONDS)
            tasks.running.interrupt_expired(error_places.in_frame)


@contextlib.contextmanager
def watching(seconds: float, mebibytes: int) -> Iterator[None]:
    """Run a watchdog while the block runs; ``Watchdog`` describes the parameters."""
    watchdog = Watchdog(seconds, mebibytes)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()


def _is_unsafe(frame: FrameType | None) -> bool:
    """Return whether an exception in a frame could damage a lock or timer that all tasks share.

    The frame's callers are checked as well, up to the code that evaluates a package.
    """
    if frame is not None and frame.f_globals.get("__name__") in _UNSAFE_PARTS:
        return True
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        root = module.partition(".")[0]
        if module == _CONVERSATION:
            return True
        if root in _EVALUATING or module == tasks.__name__:
            return False
        if root in _UNSAFE:
            return True
        frame = frame.f_back
    return False
