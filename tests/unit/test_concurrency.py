# SPDX-License-Identifier: Apache-2.0

"""Several calls at once: failures, and Ctrl-C while a service does not answer."""

import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from loader import concurrency

# In seconds.
LIMIT = 10


class _Calls:
    """Calls that last until the end of a test, or until a limit."""

    def __init__(self) -> None:
        self.end = threading.Event()
        self.ended: list[int] = []

    def last(self, number: int) -> None:
        self.end.wait(LIMIT)
        self.ended.append(number)

    def get_signal(self, number: int) -> None:
        """Take the signal of Ctrl-C once the main thread waits, as any thread may."""
        time.sleep(0.5)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        self.last(number)

    def fail(self, number: int) -> None:
        raise ValueError(number)


@pytest.fixture
def calls() -> Iterator[_Calls]:
    made = _Calls()
    yield made
    made.end.set()


def _run(*functions: Callable[[int], None], workers: int = concurrency.WORKERS) -> None:
    items = range(len(functions))
    list(concurrency.results(lambda number: functions[number](number), items, workers))


def test_ctrl_c_ends_the_wait_for_a_result(calls: _Calls) -> None:
    with pytest.raises(KeyboardInterrupt):
        _run(calls.get_signal)
    assert calls.ended == []


def test_ctrl_c_ends_the_wait_for_running_calls_after_a_failure(calls: _Calls) -> None:
    with pytest.raises(KeyboardInterrupt):
        _run(calls.fail, calls.get_signal)
    assert calls.ended == []


def test_no_call_begins_after_ctrl_c(calls: _Calls) -> None:
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        _run(calls.get_signal, calls.last, calls.last, workers=2)
    workers = set(threading.enumerate()) - before
    assert len(workers) == 2
    calls.end.set()
    for thread in workers:
        thread.join(LIMIT)
    assert sorted(calls.ended) == [0, 1]


def test_running_calls_are_waited_for_after_a_failure(calls: _Calls) -> None:
    threading.Timer(0.5, calls.end.set).start()
    with pytest.raises(ValueError, match="0"):
        _run(calls.fail, calls.last)
    assert calls.ended == [1]
