# SPDX-License-Identifier: Apache-2.0

"""Turns: how many run at once, whose is next, and who waits too long."""

import contextlib
import itertools
import threading
import time

import pytest

from glare_murano.package.sandbox import Busy, Turns
from glare_murano.package.sandbox.turns import MAX_WAITING
from tests import processes


class Crowd:
    """Threads that want turns, and hold them until they are told to end."""

    def __init__(self, at_once, of_owner):
        self._limits = (at_once, of_owner)
        self._turns = Turns()
        self._ends = {}
        self.running = []
        self._threads = []

    def come(self, name):
        """Start a thread of the owner that a name begins with; wait until it runs or waits."""
        self._ends[name] = threading.Event()
        thread = threading.Thread(target=self._hold, args=[name], daemon=True)
        before = len(self._turns._waiting) + len(self.running)
        thread.start()
        self._threads.append(thread)
        processes.wait_until(
            lambda: len(self._turns._waiting) + len(self.running) > before, f"{name} to come"
        )

    def _hold(self, name):
        with self._turns.turn(name[0], *self._limits, 60):
            self.running.append(name)
            self._ends[name].wait()
            self.running.remove(name)

    def end(self, name, following=None):
        """End a turn, and wait until another has begun."""
        before = [*self.running]
        self._ends[name].set()
        expected = sorted({*before, *filter(None, [following])} - {name})
        processes.wait_until(lambda: sorted(self.running) == expected, f"{expected} to run")

    def try_once(self, owner, seconds=0):
        with self._turns.turn(owner, *self._limits, seconds):
            pass

    def close(self):
        for end in self._ends.values():
            end.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def crowd():
    with contextlib.ExitStack() as stack:

        def make(at_once, of_owner):
            made = Crowd(at_once, of_owner)
            stack.callback(made.close)
            return made

        yield make


def test_only_so_many_run_at_once(crowd):
    three = crowd(3, 3)
    for name in ("a1", "b1", "c1"):
        three.come(name)
    with pytest.raises(Busy):
        three.try_once("d")
    three.end("b1")
    three.try_once("d")


def test_only_so_many_of_an_owner_run_at_once(crowd):
    three = crowd(3, 2)
    three.come("a1")
    three.come("a2")
    with pytest.raises(Busy):
        three.try_once("a")
    three.try_once("b")
    three.end("a1")
    three.try_once("a")


def test_the_owner_with_the_fewest_turns_is_next(crowd):
    two = crowd(2, 2)
    for name in ("a1", "a2", "a3", "b1", "b2", "c1"):
        two.come(name)
    assert sorted(two.running) == ["a1", "a2"]
    # The owner a has another turn, and so have the others after that.
    two.end("a1", "b1")
    two.end("b1", "c1")
    two.end("c1", "b2")
    two.end("b2", "a3")


def test_the_owner_whose_last_turn_is_older_is_next_among_equal_ones(crowd):
    one = crowd(1, 1)
    for name in ("a1", "a2", "a3", "a4", "b1", "b2", "c1"):
        one.come(name)
    for former, following in itertools.pairwise(["a1", "b1", "c1", "a2", "b2", "a3", "a4"]):
        one.end(former, following)


def test_an_owner_without_a_project_is_one_owner():
    turns = Turns()
    with turns.turn(None, 2, 1, 0), pytest.raises(Busy), turns.turn(None, 2, 1, 0):
        pass


def test_a_wait_ends_in_time_and_leaves_nothing():
    turns = Turns()
    with turns.turn("a", 1, 1, 0):
        start = time.monotonic()
        with pytest.raises(Busy), turns.turn("b", 1, 1, 0.3):
            pass
        assert 0.25 < time.monotonic() - start < 5
    assert (turns._waiting, dict(turns._running), turns._last) == ([], {}, {})
    with turns.turn("b", 1, 1, 0):
        pass


def test_only_so_many_of_an_owner_wait(crowd):
    one = crowd(1, 1)
    for number in range(MAX_WAITING + 1):
        one.come(f"a{number}")
    start = time.monotonic()
    with pytest.raises(Busy):
        one.try_once("a", 30)
    assert time.monotonic() - start < 5
    one.come("b1")


def test_something_is_done_every_second_of_a_wait_and_can_end_it():
    turns = Turns()
    calls = []

    def count():
        # Others must not have to wait meanwhile.
        with turns.turn("c", 2, 1, 0):
            calls.append(1)
        if len(calls) == 2:
            raise KeyError("cancelled")

    with turns.turn("a", 2, 1, 0), pytest.raises(KeyError), turns.turn("a", 2, 1, 60, count):
        pass
    assert (len(calls), turns._waiting) == (2, [])


def test_a_caller_that_does_something_else_keeps_no_turn_from_others():
    turns = Turns()
    with turns.turn("a", 1, 1, 0):
        ended, begun = threading.Event(), threading.Event()

        def wait():
            begun.set()
            ended.wait()

        def hold():
            with turns.turn("b", 1, 1, 60, wait):
                pass

        thread = threading.Thread(target=hold)
        thread.start()
        begun.wait()
    # A turn is free, and b came first.
    with turns.turn("c", 1, 1, 5):
        pass
    ended.set()
    thread.join()


def test_an_error_ends_a_turn():
    turns = Turns()
    with pytest.raises(KeyError), turns.turn("a", 1, 1, 0):
        raise KeyError
    with turns.turn("a", 1, 1, 0):
        pass
