# SPDX-License-Identifier: Apache-2.0

"""Limit the total time that a request may take.

Even a small request may have a step that takes long, such as matching thousands of versions against
thousands of ranges. So every loop over data from outside checks the time that is left. Nothing
interrupts a step between these checks, since an interrupted step could leave something half done.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from glare_murano.package.errors import Unplannable

# A request pauses for other threads after this time, in seconds.
_PAUSE_INTERVAL = 0.01

_T = TypeVar("_T")


class Budget:
    """The time that a request may take.

    >>> budget = Budget(5, "request fewer packages")
    >>> for row in budget.watch(rows, "reading the versions of packages"):
    ...     read(row)
    """

    def __init__(
        self, seconds: float, remedy: str, error: Callable[[str], Exception] = Unplannable
    ) -> None:
        """Begin to measure the time of a request.

        :param seconds: the longest time for the request, in seconds.
        :param remedy: what the client can request instead, for the message of a refusal.
        :param error: a function that takes a message, and returns the exception that is raised when
            the time is over.
        """
        self._seconds = seconds
        self._remedy = remedy
        self._error = error
        self._end = time.monotonic() + seconds
        # The time of the next call of ``_act``.
        self._due = self._end

    def check(self, step: str, place: object = "") -> None:
        """Check that the time of the request is not over.

        :param step: what the request does next, for the message.
        :param place: what the step works on, such as a package, for the message. This object is
            converted to a string only if the time is over.
        :raises Unplannable: if the time is over. If ``__init__`` got the parameter ``error``, the
            exception from that function is raised instead.
        """
        if time.monotonic() > self._due:
            self._act(step, place)

    def watch(
        self, items: Iterable[_T], step: str, place: Callable[[_T], object] = lambda _: ""
    ) -> Iterator[_T]:
        """Yield items, and check the time before each of them.

        :param step: what the request does with the items, for the message.
        :param place: a function that returns a description of an item, for the message.
        :raises Unplannable: as in ``check``.
        """
        for item in items:
            if time.monotonic() > self._due:
                self._act(step, place(item))
            yield item

    def _act(self, step: str, place: object) -> None:
        if time.monotonic() > self._end:
            where = f" at {place}" if place != "" else ""
            raise self._error(
                f"{step} stopped{where}, after {self._seconds:g} seconds; {self._remedy}, or "
                f"raise the option plan_seconds"
            )


class PausingBudget(Budget):
    """A budget whose checks pause now and then, so that other green threads can run.

    Use this class only for a request that holds no lock.
    """

    def __init__(self, seconds: float, remedy: str) -> None:
        super().__init__(seconds, remedy)
        self._due = 0.0

    def _act(self, step: str, place: object) -> None:
        super()._act(step, place)
        # If the program has green threads, eventlet replaces this function, and lets another one
        # run.
        time.sleep(0)
        self._due = min(self._end, time.monotonic() + _PAUSE_INTERVAL)
