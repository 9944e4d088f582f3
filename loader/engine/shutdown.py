# SPDX-License-Identifier: Apache-2.0

"""Run the engine's service in one process or several, and stop it without losing tasks.

Without this module, a stop ends running tasks, and their results are lost. A single process of
oslo.service ends running tasks at SIGINT or a second SIGTERM. Worker processes end them at the
first signal of either kind. Murano's ``EngineService.stop`` does not wait for tasks either. This
module changes what the launchers of oslo.service and Murano's service do.

A package may block the process when a signal arrives. So the signal's handler itself starts the
kernel's alarm, which ends the process in any case. The rest is done by green threads, after the
watchdog has interrupted the package.
"""

import errno
import gc
import logging
import math
import os
import resource
import signal
import time
from types import FrameType
from typing import Any

import eventlet
from murano.common import engine
from oslo_concurrency import processutils
from oslo_config import cfg
from oslo_service import service

from loader.engine import results, tasks, watchdog
from loader.engine.cells import cell_calls, request_cells, task_cells
from loader.engine.cells.waiting_tasks import waiting

LOG = logging.getLogger(__name__)

# How many seconds follow graceful_stop_seconds: first to interrupt and report tasks, then to end
# the process.
_REPORT_SECONDS = 15
_EXIT_SECONDS = 5
# A task may wait again while it ends, for example in a Finally block.
_INTERRUPTION_SECONDS = 3
_POLL_SECONDS = 0.1
# Enough for the cells. Each child closes all numbers below the limit. Some hosts allow a billion,
# and Linux before 5.9 has no call that closes a range of numbers.
_MAX_FILES = 65_536
# The functions that wait for events in eventlet's hub: eventlet's own, and that of oslo.service.
_WAITS = ("do_poll", "do_sleep")


def serve(conf: cfg.ConfigOpts) -> None:
    """Run the service until it is stopped.

    :param conf: the options, which are registered and checked.
    """
    _allow_many_files()
    workers = conf.engine.engine_workers or processutils.get_worker_count()
    if workers > 1:
        # The check of cells has started a process for them. Each worker starts its own.
        cell_calls.end()
    launcher = (_OneProcess if workers == 1 else _Workers)(conf, restart_method="mutate")
    conf.set_override("graceful_shutdown_timeout", longest_stop(conf))
    freeze_startup()
    launcher.launch_service(EngineService(conf), workers=workers)
    launcher.wait()


def _allow_many_files() -> None:
    """Raise the number of files that this process can have open, as far as the host allows it.

    systemd starts services with a limit of 1024, which is less than the cells need.
    """
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    raised = max(limit, min(most, _MAX_FILES))
    resource.setrlimit(resource.RLIMIT_NOFILE, (raised, most))


def freeze_startup() -> None:
    """Exclude all objects that the process has made so far from garbage collections.

    Murano 16 collects garbage in each task, to find objects that nothing uses any more. Python then
    also checks the objects of all modules, which takes 90 ms in each task. Worker processes inherit
    the exclusion.
    """
    gc.collect()
    gc.freeze()


def longest_stop(conf: cfg.ConfigOpts) -> int:
    """Return how many seconds a stop may take. After this time, SIGALRM ends the process."""
    seconds: float = conf.engine.graceful_stop_seconds
    return math.ceil(seconds) + _REPORT_SECONDS + _EXIT_SECONDS


class EngineService(engine.EngineService):  # type: ignore[misc]
    """Murano's service; when it stops, it waits for its tasks."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__()
        self._seconds: float = conf.engine.graceful_stop_seconds
        self._watchdog = watchdog.Watchdog(
            conf.engine.blocking_seconds, conf.engine.max_task_memory
        )
        self._ending: Any = None

    def start(self) -> None:
        """Receive tasks, and watch them; each worker calls this in its own process."""
        self._watchdog.start()
        if request_cells.are_enabled() or task_cells.are_enabled():
            cell_calls.prepare()
        super().start()

    def stop(self, graceful: bool = False) -> None:
        """Wait for the running tasks to end; interrupt and report those that take too long."""
        # The parent process of workers has no server.
        if self.server is not None:
            if self._ending is None:
                self._ending = eventlet.spawn(self._end)
            self._ending.wait()
        service.Service.stop(self, graceful)

    def hurry(self) -> None:
        """Make the next ``stop`` interrupt the running tasks at once."""
        self._seconds = 0

    def _end(self) -> None:
        tasks.running.is_stopping = True
        LOG.info("Stopping: new tasks go to other engines; running tasks may end first")
        started = time.monotonic()
        served = eventlet.spawn(self._leave_queue)

        def ended() -> bool:
            return served.dead and not tasks.running and not waiting

        while not ended() and time.monotonic() < started + self._seconds:
            eventlet.sleep(_POLL_SECONDS)
        interrupted = time.monotonic()
        while not ended() and time.monotonic() < interrupted + _REPORT_SECONDS:
            if tasks.running:
                LOG.warning("Stopping: the running tasks are interrupted, and reported as failed")
            tasks.running.interrupt(tasks.EngineStopped())
            with eventlet.Timeout(_INTERRUPTION_SECONDS, False):
                while not ended():
                    eventlet.sleep(_POLL_SECONDS)
        results.sender.report_unsent()

    def _leave_queue(self) -> None:
        try:
            self.server.stop()
            # Until the connection is closed, the broker sends tasks to this process, and also those
            # that go back: then some of them are lost.
            self.server.listener.cleanup()
        finally:
            waiting.send_back()
        self.server.wait()


def start_alarm_with_signals(seconds: int) -> None:
    """Let each signal that stops the service also start the kernel's alarm.

    The alarm ends the process in any case. The handlers of oslo.service only create a green thread,
    which does not run while a package blocks the process. But the signal's handler itself runs,
    since Python calls it between two bytecodes of the main thread, whichever green thread runs.

    :param seconds: how long the process may take to end.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _StartAlarm(seconds, signal.getsignal(number)))


class _StartAlarm:
    """A handler of signals that starts the kernel's alarm, and then calls another handler."""

    def __init__(self, seconds: int, handle: Any) -> None:
        self._seconds = seconds
        self._handle = handle

    def __call__(self, number: int, frame: FrameType | None) -> None:
        # A second signal does not start the alarm again.
        if not any(signal.getitimer(signal.ITIMER_REAL)):
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(self._seconds)
        self._handle(number, frame)
        # This error makes eventlet's hub stop waiting. The other handler raises it only if its
        # direct caller is a function that waits, but here, its caller is this method.
        if frame is not None and frame.f_code.co_name in _WAITS:
            raise InterruptedError(errno.EINTR, "a signal to stop arrived")


def _hurry(launcher: Any) -> None:
    for launched in launcher.services.services:
        launched.hurry()
    launcher.stop()


class _OneProcess(service.ServiceLauncher):  # type: ignore[misc]
    def handle_signal(self) -> None:
        super().handle_signal()
        start_alarm_with_signals(longest_stop(self.conf))

    def _graceful_shutdown(self, *_: object) -> None:
        self.stop()

    def _fast_exit(self, *_: object) -> None:
        _hurry(self)


class _Workers(service.ProcessLauncher):  # type: ignore[misc]
    def _handle_term(self, signo: int, _frame: object) -> None:
        self.sigcaught = signo
        self.running = False

    def _fast_exit(self, signo: int, frame: object) -> None:
        for pid in self.children:
            os.kill(pid, signal.SIGINT)
        self._handle_term(signo, frame)

    def wait(self) -> None:
        super().wait()
        # All workers have ended. Python's own end restores the alarm's default action, which would
        # end this process as if the stop had failed.
        signal.alarm(0)

    def _wait_child(self) -> Any:
        ended = super()._wait_child()
        if ended is None and not self.running:
            # Without the pause, the caller would loop all the time, and handle no other signal.
            eventlet.sleep(self.wait_interval)
        return ended

    def _child_process_handle_signal(self) -> None:
        # A worker may get SIGTERM twice: systemd sends it to all processes, and the parent to
        # its workers.
        self.signal_handler.clear()
        self.signal_handler.add_handler("SIGTERM", lambda *_: self.launcher.stop())
        self.signal_handler.add_handler("SIGINT", lambda *_: _hurry(self.launcher))
        self.signal_handler.add_handler("SIGHUP", self._reload_worker)
        start_alarm_with_signals(longest_stop(self.conf))

    def _on_alarm_exit(self, *_: object) -> None:
        # This runs in the parent. A worker has not started its alarm if the signal came in a
        # function that no signal interrupts.
        LOG.warning("Stopping: the workers that do not end are killed")
        for pid in self.children:
            os.kill(pid, signal.SIGKILL)
        os._exit(1)

    def _reload_worker(self, *_: object) -> None:
        raise service.SignalExit(signal.SIGHUP)
