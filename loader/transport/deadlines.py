# SPDX-License-Identifier: Apache-2.0

"""Limit the time of whole requests by deadlines.

The timeout of a socket limits only each wait for bytes, so a server that sends one byte at a time
never exceeds it. Therefore a thread shuts down the request's socket at the deadline. This ends the
request, whether it waits for a proxy, TLS, headers or content. It works in threads and in green
threads.
"""

import contextlib
import contextvars
import functools
import logging
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

import requests
import urllib3

from loader.transport.failures import FAILURES, TooSlow

LOG = logging.getLogger(__name__)

# If a ``with`` block takes longer than these seconds, a warning is logged.
_LOG_AFTER = 5.0

_current: contextvars.ContextVar["Deadline | None"] = contextvars.ContextVar(
    "deadline", default=None
)


class Deadline:
    """A deadline for requests that are sent one after the other, and for the waits between them.

    If the ``with`` block is not complete after five seconds, a warning is logged.

    >>> with Deadline(300, "Glare: GET /artifacts/murano", "not complete in time") as deadline:
    ...     with deadline.applied():
    ...         answer = session.get(url).json()
    """

    def __init__(self, seconds: float, subject: str, failure: str) -> None:
        """Make a deadline; its time begins with the ``with`` statement.

        :param seconds: the time limit.
        :param subject: the request, in the log.
        :param failure: the message of the error when the deadline passes.
        """
        self._seconds = seconds
        self._subject = subject
        self._failure = failure
        self._end = math.inf
        self._has_passed = False
        self._is_done = threading.Event()
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        self._end = time.monotonic() + self._seconds
        threading.Thread(target=self._watch, name="deadline", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_done.set()
        self._release()

    @property
    def left(self) -> float:
        """The seconds until the deadline."""
        return self._end - time.monotonic()

    def extend(self, seconds: float) -> None:
        """Move the deadline by some seconds; after that, at most the whole time limit is left."""
        self._end = min(self._end + seconds, time.monotonic() + self._seconds)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the deadline's clock while the ``with`` block runs."""
        left = self.left
        self._end = math.inf
        yield
        self._end = time.monotonic() + left

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the deadline to all requests and reads in the ``with`` block.

        :raises TooSlow: if the deadline has passed.
        """
        token = _current.set(self)
        try:
            yield
        except FAILURES as error:
            if self._check_passed():
                raise TooSlow(self._failure) from error
            raise
        finally:
            _current.reset(token)
        # A connection that was shut down may look like one that ended normally.
        if self._check_passed():
            raise TooSlow(self._failure)

    def during(self, arriving: Iterator[bytes]) -> Iterator[bytes]:
        """Yield pieces as they arrive, until the deadline.

        :raises TooSlow: if the deadline passes.
        """
        while True:
            with self.applied():
                piece = next(arriving, b"")
            if not piece:
                return
            yield piece

    def _check_passed(self) -> bool:
        # A deadline that has passed stays passed, even if it is extended, since its thread ended.
        self._has_passed = self._has_passed or self.left <= 0
        return self._has_passed

    def _use_socket(self, descriptor: int) -> None:
        """Apply the deadline to a socket, which the next request uses."""
        self._release()
        # The descriptor is duplicated, since TLS replaces the socket object, and since an answer
        # may be read after its connection is closed.
        self._socket = socket.socket(fileno=os.dup(descriptor))
        if self._check_passed():
            self._shut_down()

    def _release(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def _shut_down(self) -> None:
        if self._socket is not None:
            # The connection may have ended, or the socket may have been closed.
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _watch(self) -> None:
        if self._is_done.wait(min(self._seconds, _LOG_AFTER)):
            return
        if self.left > 0:
            LOG.warning(
                "%s: waiting for %g seconds so far; an error if %s",
                self._subject,
                _LOG_AFTER,
                self._failure,
            )
        while not self._check_passed():
            # Wait at most a second, since the deadline may be paused and resumed meanwhile.
            if self._is_done.wait(min(max(self.left, 0), 1)):
                return
        self._shut_down()


def watch(adapter: requests.adapters.HTTPAdapter) -> None:
    """Change an adapter of ``requests``, so that deadlines apply to its future connections."""
    pool_of: Any = adapter.get_connection_with_tls_context
    adapter.get_connection_with_tls_context = functools.partial(  # type: ignore[method-assign]
        _watched_pool, pool_of
    )


def _watched_pool(
    pool_of: Callable[..., urllib3.HTTPConnectionPool], *args: Any, **kwargs: Any
) -> urllib3.HTTPConnectionPool:
    pool = pool_of(*args, **kwargs)
    if not issubclass(pool.ConnectionCls, _Watched):
        pool.ConnectionCls = type("WatchedConnection", (_Watched, pool.ConnectionCls), {})
    return pool


class _Watched(urllib3.connection.HTTPConnection):
    """A connection that applies the current deadline to its socket."""

    def _new_conn(self) -> socket.socket:
        new = super()._new_conn()
        self._apply_deadline(new)
        return new

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is not None:
            self._apply_deadline(self.sock)
        super().request(*args, **kwargs)

    @staticmethod
    def _apply_deadline(sock: socket.socket) -> None:
        if deadline := _current.get():
            deadline._use_socket(sock.fileno())
