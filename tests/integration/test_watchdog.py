# SPDX-License-Identifier: Apache-2.0

"""The watchdog and the limits of tasks, with functions of Python in place of packages.

``test_time_limits.py`` runs packages in the engine's command.
"""

import contextlib
import logging
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import eventlet
import pytest
from murano.common import engine
from murano.dsl import executor

from loader.engine import shutdown, tasks, watchdog
from loader.engine.patches import task_execution

pytestmark = pytest.mark.programs

# Of processor time, and more than a tick of the watchdog.
BLOCKING = 0.3
LONG = 60.0
MEBIBYTES = 100


@pytest.fixture(autouse=True)
def watching(monkeypatch: pytest.MonkeyPatch) -> Iterator[watchdog.Watchdog]:
    monkeypatch.setattr(tasks, "_FIRST_PAUSE", 0.4)
    found = watchdog.Watchdog(BLOCKING, MEBIBYTES)
    found.start()
    yield found
    found.stop()


def run(function: Callable[[], Any], seconds: float = LONG) -> Any:
    """Run a function as a task that may take some seconds."""
    task = tasks.Task(tasks.TimeLimit("task", seconds, "task_seconds"))
    return tasks.running.run(task, tasks.running.run_limited, function)


def compute(seconds: float) -> str:
    """Take processor time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return "computed"


@pytest.mark.parametrize(
    "hold",
    [
        lambda: compute(LONG),
        lambda: re.search("^(a+)+$", "a" * 40 + "b"),
        lambda: pow(10, 300_000_000),
    ],
    ids=["loop", "expression", "power"],
)
def test_a_task_that_holds_the_process_is_interrupted(hold: Callable[[], Any]) -> None:
    begun = time.thread_time()
    with pytest.raises(tasks.TaskLimitExceeded, match=r"\[engine\] blocking_seconds"):
        run(hold)

    assert time.thread_time() - begun < LONG / 10
    assert not tasks.running


def test_a_task_that_lets_others_run_goes_on() -> None:
    def share() -> str:
        for _ in range(5):
            compute(BLOCKING / 2)
            eventlet.sleep(0)
        return "done"

    assert run(share) == "done"


def test_a_task_that_takes_memory_is_interrupted() -> None:
    def collect() -> None:
        kept = []
        for _ in range(1000):
            kept.append(b"x" * 1024**2)
            compute(0.01)
            eventlet.sleep(0)

    with pytest.raises(
        tasks.TaskLimitExceeded, match=r"100 MiB of memory \(\[engine\] max_task_mem"
    ):
        run(collect)


def test_memory_counts_for_the_task_that_takes_it() -> None:
    def work() -> str:
        for _ in range(100):
            compute(0.01)
            eventlet.sleep(0)
        return "done"

    def collect() -> None:
        kept = []
        for _ in range(1000):
            kept.append(b"x" * 1024**2)
            eventlet.sleep(0)
            compute(0.005)

    honest = eventlet.spawn(run, work)
    with pytest.raises(tasks.TaskLimitExceeded, match="100 MiB"):
        run(collect)
    assert honest.wait() == "done"


def test_memory_that_is_given_back_does_not_count() -> None:
    def use() -> str:
        for _ in range(40):
            kept = b"x" * (50 * 1024**2)
            compute(0.01)
            del kept
            eventlet.sleep(0)
        return "done"

    assert run(use) == "done"


def test_code_outside_of_tasks_is_not_interrupted() -> None:
    assert compute(BLOCKING * 3) == "computed"


def test_a_task_is_not_interrupted_when_it_has_ended() -> None:
    task = tasks.Task(tasks.TimeLimit("task", LONG, "task_seconds"))

    # While a result is reported, no code of packages runs.
    assert tasks.running.run(task, compute, BLOCKING * 3) == "computed"


def test_a_late_signal_does_not_hit_the_next_task() -> None:
    """No switch comes between the tasks of one green thread."""
    for _ in range(4):
        assert run(lambda: compute(BLOCKING * 0.6)) == "computed"


def test_a_swallowed_interruption_is_repeated() -> None:
    swallowed = []

    def swallow() -> None:
        for _ in range(4):
            try:
                compute(LONG)
            except BaseException as error:
                swallowed.append(error)

    with pytest.raises(tasks.TaskLimitExceeded):
        run(swallow)

    assert [type(error) for error in swallowed] == [tasks.Interrupted] * 4


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_finalizer_is_interrupted() -> None:
    class Finalized:
        def __del__(self) -> None:
            compute(LONG)

    def drop() -> None:
        Finalized()
        compute(LONG)

    begun = time.thread_time()
    with pytest.raises(tasks.TaskLimitExceeded):
        run(drop)

    assert time.thread_time() - begun < LONG / 10


def test_an_interrupted_task_has_less_and_less_time() -> None:
    """Otherwise each of many nested ``Finally`` blocks could hold the process for the limit."""

    def clean_up(depth: int) -> None:
        try:
            eventlet.sleep(LONG)
        finally:
            if depth:
                clean_up(depth - 1)

    begun = time.monotonic()
    with pytest.raises(
        tasks.TaskLimitExceeded, match=r"more than 0\.2 seconds \(\[engine\] task_sec"
    ):
        run(lambda: clean_up(10), seconds=0.2)

    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("saving", [1.0, LONG])
def test_an_interrupted_task_has_time_to_save_its_model(
    monkeypatch: pytest.MonkeyPatch, saving: float
) -> None:
    monkeypatch.setattr(tasks, "_SAVING_SECONDS", 1.5)
    saved = []

    def save() -> None:
        task = tasks.running.current
        assert task is not None
        try:
            eventlet.sleep(LONG)
        finally:
            task.extend_for_saving()
            # More than the first pause.
            eventlet.sleep(saving)
            saved.append(saving)

    with pytest.raises(tasks.TaskLimitExceeded):
        run(save, seconds=0.2)

    assert saved == [1.0] * (saving == 1.0)


def test_no_interruption_leaves_the_lock_of_a_log() -> None:
    left = []

    class Slow(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            compute(BLOCKING * 1.8)
            left.append(record)

    log = logging.Logger("watchdog")
    log.addHandler(Slow())

    def write() -> None:
        log.info("slow")
        compute(LONG)

    with pytest.raises(tasks.TaskLimitExceeded):
        run(write)

    assert len(left) == 1


def test_code_that_stays_in_a_log_is_interrupted_as_well() -> None:
    class Endless(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            compute(LONG)

    log = logging.Logger("watchdog")
    log.addHandler(Endless())

    with pytest.raises(tasks.TaskLimitExceeded):
        run(lambda: log.info("endless"))


def test_a_waiting_task_is_interrupted_after_its_time_and_others_go_on() -> None:
    other = eventlet.spawn(run, lambda: eventlet.sleep(1.5) or "other")

    with pytest.raises(tasks.TaskLimitExceeded, match=r"more than 0\.5 seconds"):
        run(lambda: eventlet.sleep(LONG), seconds=0.5)

    assert other.wait() == "other"


def test_the_time_of_a_task_ends_it_while_it_computes() -> None:
    def share() -> None:
        while True:
            compute(BLOCKING / 3)
            with contextlib.suppress(Exception):
                eventlet.sleep(0)

    with pytest.raises(tasks.TaskLimitExceeded, match=r"more than 0\.5 seconds"):
        run(share, seconds=0.5)


def test_all_green_threads_of_a_task_end_with_it() -> None:
    parts = []

    def spread() -> None:
        task = tasks.running.current
        assert task is not None
        for hold in (lambda: eventlet.sleep(LONG), lambda: compute(LONG)):
            parts.append(eventlet.spawn(tasks.running.run_part, task, 0, hold))
        for part in parts:
            part.wait()

    with pytest.raises(tasks.TaskLimitExceeded, match="blocking_seconds"):
        run(spread)

    assert all(part.dead for part in parts)
    assert not tasks.running


def test_a_part_does_not_begin_after_an_interruption() -> None:
    task = tasks.Task(tasks.TimeLimit("task", LONG, "task_seconds"))
    task.record_interruption(tasks.EngineStopped())

    with pytest.raises(tasks.Interrupted):
        tasks.running.run_part(task, 0, compute, 0)


def test_an_interruption_that_a_task_ignores_is_reported() -> None:
    def ignore() -> str:
        with contextlib.suppress(tasks.Interrupted):
            eventlet.sleep(LONG)
        return "ignored"

    with pytest.raises(tasks.TaskLimitExceeded):
        run(ignore, seconds=0.3)


def _nested(depth: int) -> list[Any]:
    found: list[Any] = ["a"]
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(
    ("root", "reason"),
    [
        (object(), "a value of the type object cannot be saved"),
        # Exceeds Python's stack.
        (_nested(5000), "the engine's log has the reason"),
    ],
    ids=["value", "depth"],
)
@pytest.mark.usefixtures("engine_conf")
def test_what_cannot_be_saved_is_an_error_instead_of_an_empty_model(root: Any, reason: str) -> None:
    dsl_executor = executor.MuranoDslExecutor(None, engine.ContextManager())

    with pytest.raises(
        task_execution.ModelNotSaved, match=f"keeps the model that the task began with; {reason}"
    ):
        dsl_executor.finalize(root)


_LOOP = f"""\
import signal
from murano.common import config
from {shutdown.__name__} import start_alarm_with_signals
signal.signal(signal.SIGTERM, lambda *_: None)
start_alarm_with_signals(1)
print("ready", flush=True)
while True:
    pass
"""


def test_the_alarm_of_a_stop_starts_while_a_package_computes() -> None:
    command = [sys.executable, "-W", "ignore", "-c", _LOOP]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        time.sleep(0.5)
        # A second signal does not move the end.
        process.terminate()

        assert process.wait(1.5) == -signal.SIGALRM
