# SPDX-License-Identifier: Apache-2.0

"""Call a function in a child process, and answer the questions that it asks.

Each question and each answer is one line of JSON: a list with the number of the question, and the
question or its answer. The child asks one question after another over a socket. Nothing in a
question can be trusted. This module is for the caller; ``Questions`` is for the function in the
child.
"""

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from glare_murano.package.sandbox.children import (
    INTERVAL,
    Answer,
    ChildFailed,
    ChildSettings,
    Function,
    RequestedChild,
    request,
    requested,
)
from glare_murano.package.sandbox.limited_process import MAX_REQUEST

# The longest question in bytes.
MAX_QUESTION = MAX_REQUEST
# The seconds that a child has to read an answer.
_SECONDS_TO_READ = 10


class Questions:
    """Asks the questions of a child, in the child."""

    def __init__(self, file: IO[bytes]) -> None:
        """Prepare to ask.

        :param file: the file that the function gets; it is the child's end of the socket.
        """
        self._file = file
        self._number = 0
        # Under eventlet, the caller's sockets do not wait, and this setting is inherited.
        os.set_blocking(file.fileno(), True)

    def ask(self, question: Any) -> Any:
        """Ask a question, and return the answer.

        :param question: a value for JSON. As JSON, it has at most ``MAX_QUESTION`` bytes.
        :raises EOFError: if the caller does not answer any more.
        """
        number = self._number = self._number + 1
        with open(os.dup(self._file.fileno()), "wb") as writer:
            writer.write(json.dumps([number, question]).encode() + b"\n")
        # If an error has ended an earlier call, the answer to that question comes first.
        answered = 0
        while answered != number:
            if not (line := self._file.readline()):
                raise EOFError("the question was not answered")
            answered, answer = json.loads(line)
        return answer


def converse(
    function: Function,
    parameters: Mapping[str, Any],
    answer: Callable[[Any], Any],
    settings: ChildSettings,
    meanwhile: Callable[[], object] = lambda: None,
) -> Answer:
    """Call a function in a child process with limits, and answer its questions.

    Unlike ``run``, this function never calls the child's function twice.

    :param function: the function. It takes a file for ``Questions`` and the parameters, and returns
        a value for JSON.
    :param parameters: the arguments of the function, as values for JSON.
    :param answer: a function that takes a question, and returns the answer as a value for JSON. If
        it raises an error, the child is killed, and ``converse`` raises the same error.
    :param settings: the limits of the child, and its interpreter.
    :param meanwhile: a function that is called every second while the child computes. Its errors
        have the same effect.
    :returns: what the function has returned, which must not be trusted.
    :raises LimitReached: if the child reaches a limit, or its result is too long.
    :raises ChildFailed: if the child or another process of the sandbox fails, the parameters or a
        question are too long, or something is not JSON.
    """
    message = request(parameters, settings)
    # If the first warm process has ended, the second attempt starts another one.
    for _ in range(2):
        ours, of_child = socket.socketpair()
        with ours, requested(function, message, of_child, settings) as child:
            if not child.starts(meanwhile):
                continue
            for number, question in _questions(ours, child, meanwhile):
                _send(ours, [number, answer(question)])
            if result := child.read_answer(meanwhile):
                return result
            break
    raise child.failure()


def _questions(
    connection: socket.socket, child: RequestedChild, meanwhile: Callable[[], object]
) -> Iterator[tuple[int, Any]]:
    """Yield the questions of a child, with their numbers, until it closes the connection.

    :raises ChildFailed: if a question is too long, or has another form, or if the time for the
        child is over.
    """
    received = b""
    while True:
        child.check_deadline()
        connection.settimeout(INTERVAL)
        try:
            data = connection.recv(MAX_QUESTION)
        except TimeoutError:
            meanwhile()
            continue
        except ConnectionResetError:
            # The child has ended without reading an answer.
            return
        if not data:
            return
        lines = (received + data).split(b"\n")
        if max(map(len, lines)) > MAX_QUESTION:
            raise ChildFailed(f"a question of more than {MAX_QUESTION} bytes is too long")
        *complete, received = lines
        for line in complete:
            # A child that asks quickly must not keep other green threads waiting.
            time.sleep(0)
            yield _parsed(line)


def _parsed(line: bytes) -> tuple[int, Any]:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ChildFailed(f"a question is not JSON: {error}") from error
    match content:
        case [int(number), question]:
            return number, question
    raise ChildFailed("a question has no number")


def _send(connection: socket.socket, answer: Any) -> None:
    connection.settimeout(_SECONDS_TO_READ)
    try:
        # The child may have ended meanwhile.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(json.dumps(answer).encode() + b"\n")
    except TimeoutError as error:
        raise ChildFailed(f"it has not read an answer for {_SECONDS_TO_READ} seconds") from error
