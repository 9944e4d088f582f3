# SPDX-License-Identifier: Apache-2.0

"""Call a function in a child process, and answer the queries that it sends.

Each query and each answer is one line of JSON: a list with the number of the query, and the
query or its answer. The child sends one query after another over a socket. Nothing in a
query can be trusted. This module is for the caller; ``Queries`` is for the function in the
child.
"""

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from glare_murano.package.sandbox.child_errors import ChildFailed
from glare_murano.package.sandbox.children import (
    INTERVAL,
    Answer,
    ChildSettings,
    RequestedChild,
    request,
    requested,
)
from glare_murano.package.sandbox.warm_processes import Function

# The longest query in bytes.
MAX_QUERY = 256 * 1024
# How many answers a child leaves unread. The socket has room for them, so the caller never waits.
_MAX_UNREAD = 50
# The seconds before the next piece of a query is read.
_PAUSE = 0.001
# A pause, as a multiple of the processor time that a query took. So a child whose queries take long
# keeps a thread busy for a tenth of the time.
_REST = 9
# A query that takes less time to parse, in seconds, needs no pause.
_SHORT_PARSING = 0.001
# How many answers to a child have no pause after them, and the shortest pause after each further
# answer, in seconds. A deployment of 20 packages sends 70 queries. A child without pauses sends
# some thousands in a second, which keep the thread busy, and so do answers that need much work. In
# the time of an answer, other green threads may run as well, so only later answers are timed.
_MAX_PROMPT = 1000
_LATER_PAUSE = 0.01
# The seconds that a child has to read an answer.
_SECONDS_TO_READ = 10


class Queries:
    """Sends the queries of a child, in the child."""

    def __init__(self, file: IO[bytes]) -> None:
        """Prepare to send.

        :param file: the file that the function gets; it is the child's end of the socket.
        """
        self._file = file
        self._number = self._answered = 0
        # Under eventlet, the caller's sockets do not wait, and this setting is inherited.
        os.set_blocking(file.fileno(), True)

    def send(self, query: Any) -> Any:
        """Send a query, and return the answer.

        :param query: a value for JSON. As JSON, it has at most ``MAX_QUERY`` bytes.
        :raises EOFError: if the caller does not answer any more.
        """
        number = self._write(query)
        # The answers to queries of ``cast``, and of calls that an error has ended, come first.
        while self._answered != number:
            if not (line := self._file.readline()):
                raise EOFError("the query was not answered")
            self._answered, answer = json.loads(line)
        return answer

    def cast(self, query: Any) -> None:
        """Send a query whose answer is not needed, without waiting for the answer.

        Only if ``_MAX_UNREAD`` answers are unread, this method waits for all of them.

        :param query: as in ``send``.
        :raises EOFError: if the caller does not answer any more.
        """
        if self._number - self._answered < _MAX_UNREAD:
            self._write(query)
        else:
            self.send(query)

    def _write(self, query: Any) -> int:
        """Write a query, and return its number."""
        self._number += 1
        with open(os.dup(self._file.fileno()), "wb") as writer:
            writer.write(json.dumps([self._number, query]).encode() + b"\n")
        return self._number


def converse(
    function: Function,
    parameters: Mapping[str, Any],
    answer: Callable[[Any], Any],
    settings: ChildSettings,
    started: Callable[[RequestedChild], object] = lambda _: None,
) -> Answer:
    """Call a function in a child process with limits, and answer its queries.

    Unlike ``run``, this function never calls the child's function twice.

    :param function: the function. It takes a file for ``Queries`` and the parameters, and returns
        a value for JSON.
    :param parameters: the arguments of the function, as values for JSON.
    :param answer: a function that takes a query, and returns the answer as a value for JSON. If
        it raises an error, the child is killed, and ``converse`` raises the same error.
    :param settings: the limits of the child, and its interpreter.
    :param started: a function that is called when the child can begin. It gets the child, which can
        be interrupted until ``converse`` returns.
    :returns: what the function has returned, which must not be trusted.
    :raises LimitReached: if the child reaches a limit, or its result is too long.
    :raises ChildFailed: if the child or another process of the sandbox fails, the parameters or a
        query are too long, or something is not JSON.
    """
    message = request(parameters, settings)
    # If the first warm process has ended, the second attempt starts another one.
    for _ in range(2):
        ours, of_child = socket.socketpair()
        with ours, requested(function, message, of_child, settings) as child:
            if not child.starts(lambda: None):
                continue
            started(child)
            for number, query in _queries(ours, child):
                _send(ours, [number, answer(query)])
            if result := child.read_answer(lambda: None):
                return result
            break
    raise child.failure()


def _queries(connection: socket.socket, child: RequestedChild) -> Iterator[tuple[int, Any]]:
    """Yield the queries of a child, with their numbers, until it closes the connection.

    :raises ChildFailed: if a query is too long, or has another form, or if the time for the
        child is over.
    """
    received = b""
    prompt = _MAX_PROMPT
    while True:
        child.check_deadline()
        connection.settimeout(INTERVAL)
        try:
            data = connection.recv(MAX_QUERY)
        except TimeoutError:
            continue
        except ConnectionResetError:
            # The child has ended without reading an answer.
            return
        if not data:
            return
        lines = (received + data).split(b"\n")
        if max(map(len, lines)) > MAX_QUERY:
            raise ChildFailed(f"a query of more than {MAX_QUERY} bytes is too long")
        *complete, received = lines
        if not complete:
            # A child that sends byte by byte must not keep the processor busy.
            time.sleep(_PAUSE)
        for line in complete:
            begun = time.thread_time()
            query = _parsed(line)
            took = time.thread_time() - begun
            # A child that sends quickly must not keep other green threads waiting.
            time.sleep(_REST * took if took > _SHORT_PARSING else 0)
            begun = time.thread_time()
            yield query
            prompt -= 1
            if prompt < 0:
                time.sleep(max(_REST * (time.thread_time() - begun), _LATER_PAUSE))


def _parsed(line: bytes) -> tuple[int, Any]:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ChildFailed(f"a query is not JSON: {error}") from error
    match content:
        case [int(number), query]:
            return number, query
    raise ChildFailed("a query has no number")


def _send(connection: socket.socket, answer: Any) -> None:
    connection.settimeout(_SECONDS_TO_READ)
    try:
        # The child may have ended meanwhile.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(json.dumps(answer).encode() + b"\n")
    except TimeoutError as error:
        raise ChildFailed(f"it has not read an answer for {_SECONDS_TO_READ} seconds") from error
