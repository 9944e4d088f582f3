# SPDX-License-Identifier: Apache-2.0

"""Let a few callers work at once, in turns that are fair to their owners.

A turn is the permission to work. Each caller has an owner, such as a project. A free turn goes to
the waiting owner who has the fewest turns. If several owners have equally few turns, the turn goes
to the owner whose last turn began earliest. So an owner without a turn precedes all owners who have
a turn, however many callers they have.
"""

import collections
import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Iterator

from glare_murano.package.errors import GlareMuranoError

# The largest number of waiting callers of one owner. Each caller takes a thread, and a service has
# few threads.
MAX_WAITING = 8
# The seconds between two calls of ``meanwhile``.
_INTERVAL = 1


class Busy(GlareMuranoError):
    """A turn has not become free in time, or too many callers of one owner are already waiting."""


@dataclasses.dataclass(eq=False)
class _Ticket:
    """A caller that waits for a turn.

    :param is_ready: whether the caller can take a turn now; False while ``meanwhile`` is called.
    """

    owner: str | None
    is_ready: bool = False


class Turns:
    """A queue that gives turns to the callers in this process, in threads or in green threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        # The waiting callers, in the order in which they came.
        self._waiting: list[_Ticket] = []
        self._running: collections.Counter[str | None] = collections.Counter()
        # Owner who has a ticket or a turn -> the number of the owner's last turn.
        self._last: dict[str | None, int] = {}
        self._begun = 0

    @contextlib.contextmanager
    def turn(
        self,
        owner: str | None,
        at_once: int,
        at_once_of_owner: int,
        seconds: float,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> Iterator[None]:
        """Wait for a turn, and keep it until the ``with`` statement ends.

        :param owner: the owner of the turn, such as the id of a project.
        :param at_once: the largest number of turns at once.
        :param at_once_of_owner: the largest number of turns that one owner has at once.
        :param seconds: the longest wait, in seconds.
        :param meanwhile: a function that is called every second during the wait. If it raises an
            error, the wait ends with this error.
        :raises Busy: if no turn becomes free in time, or too many callers of the owner are waiting.
        """
        deadline = time.monotonic() + seconds
        with self._queued(owner) as ticket:
            while not self._takes(ticket, at_once, at_once_of_owner, deadline):
                if time.monotonic() >= deadline:
                    raise Busy
                meanwhile()
        try:
            yield
        finally:
            with self._changed:
                self._running[owner] -= 1
                self._forget(owner)
                self._changed.notify_all()

    @contextlib.contextmanager
    def _queued(self, owner: str | None) -> Iterator[_Ticket]:
        ticket = _Ticket(owner)
        with self._changed:
            if sum(each.owner == owner for each in self._waiting) >= MAX_WAITING:
                raise Busy
            self._waiting.append(ticket)
        try:
            yield ticket
        finally:
            with self._changed:
                self._waiting.remove(ticket)
                self._forget(owner)
                # A turn may be free now for another ticket.
                self._changed.notify_all()

    def _takes(self, ticket: _Ticket, at_once: int, of_owner: int, deadline: float) -> bool:
        """Wait for a free turn, and take it.

        The wait ends after ``_INTERVAL`` seconds, or at the deadline if that is earlier. If no turn
        becomes free, ``turn`` calls ``meanwhile``, and then calls this method again.

        :param ticket: the waiting caller.
        :param of_owner: the parameter ``at_once_of_owner`` of ``turn``.
        :param deadline: the time at which the wait of the caller ends.
        :returns: whether the caller has got a turn.
        """

        def is_next() -> bool:
            return self._running.total() < at_once and self._next(of_owner) is ticket

        with self._changed:
            ticket.is_ready = True
            left = max(deadline - time.monotonic(), 0)
            is_taken = self._changed.wait_for(is_next, min(left, _INTERVAL))
            ticket.is_ready = False
            if is_taken:
                self._begun += 1
                self._last[ticket.owner] = self._begun
                self._running[ticket.owner] += 1
            else:
                self._changed.notify_all()
            return is_taken

    def _next(self, at_once_of_owner: int) -> _Ticket | None:
        """Return the waiting caller that gets the next free turn; None if no caller may get it.

        :param at_once_of_owner: as in ``turn``.
        """

        def rank(ticket: _Ticket) -> tuple[int, int]:
            return self._running[ticket.owner], self._last.get(ticket.owner, 0)

        ready = (ticket for ticket in self._waiting if ticket.is_ready)
        allowed = (t for t in ready if self._running[t.owner] < at_once_of_owner)
        return min(allowed, key=rank, default=None)

    def _forget(self, owner: str | None) -> None:
        """Remove the data of an owner, unless the owner has a turn or waits for a turn."""
        if not self._running[owner]:
            del self._running[owner]
            if all(ticket.owner != owner for ticket in self._waiting):
                self._last.pop(owner, None)
