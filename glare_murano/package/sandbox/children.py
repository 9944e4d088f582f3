# SPDX-License-Identifier: Apache-2.0

"""Request a child for a file, and read the child's answer: the caller's side of the sandbox.

The requests go to a warm process, which forks the children; see ``warm_processes``. Green threads
of eventlet can use this module, since it waits only for a socket.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

from glare_murano.package.json_values import Counts
from glare_murano.package.sandbox import limited_process, scratch, warm_processes
from glare_murano.package.sandbox.child_errors import ChildFailed, LimitReached
from glare_murano.package.sandbox.limited_process import MAX_REQUEST, OUT_OF_MEMORY
from glare_murano.package.sandbox.warm_processes import Function

# The longest answer in bytes. The two logos and the form of a package take 2.7 MiB of it.
MAX_ANSWER = 4 * 1024**2

# How long after the time limit of a child its report may come, in seconds. The warm process may
# still be starting when the request is sent.
_GRACE = 60
# The seconds between two calls of ``meanwhile``.
INTERVAL = 1
_MAX_REPORT = 4096
# The most lists, mappings and values in an answer. Reading more would delay other requests.
_MAX_VALUES = Counts(lists=100_000, commas=500_000)
# The limits that the kernel enforces.
_LIMITS = ("seconds", "memory", "file_size", "files")
# What restricts a child, as far as the kernel can.
_WALLS = (limited_process.LANDLOCK, limited_process.SYSTEM_CALLS)


@dataclasses.dataclass(frozen=True)
class ChildSettings:
    """The limits of a child process, and its Python interpreter.

    :param seconds: the longest processor time of the child, in seconds.
    :param wall_seconds: the longest wall-clock time of the child, in seconds; None for three times
        its processor time.
    :param memory: the largest address space of the child, in bytes.
    :param file_size: the largest file that the child can write, in bytes.
    :param files: the number of files and sockets that the child can have open at once.
    :param python: the path of the Python interpreter; empty for the result of
        ``warm_processes.find_interpreter``.
    :param readable: paths of files and directories that the child can read, besides its file and
        Python's modules.
    :param ports: the TCP ports of any host to which the child can connect.
    """

    seconds: int = 20
    wall_seconds: float | None = None
    memory: int = 512 * 1024**2
    file_size: int = 512 * 1024**2
    files: int = 256
    python: str = ""
    readable: Sequence[str] = ()
    ports: Sequence[int] = ()

    @property
    def patience(self) -> float:
        """The longest wall-clock time of the child, in seconds."""
        # This limit ends a child that waits instead of computing.
        return 3 * self.seconds if self.wall_seconds is None else self.wall_seconds


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer of a child process, which must not be trusted.

    :param content: the answer, as parsed from JSON.
    :param output: the end of what the child has printed, as in ``ChildFailed``.
    """

    content: Any
    output: str


def run(
    function: str,
    file: IO[bytes],
    parameters: Mapping[str, Any],
    settings: ChildSettings,
    meanwhile: Callable[[], object] = lambda: None,
) -> Answer:
    """Call a function on a file, in a child process with limits.

    A supervisor, which is another process, watches the child; see ``fork_server``. If the
    supervisor ends without a report, the function is called once more, in another child. This can
    happen if the host lacks memory, for example.

    :param function: the name of the function, as ``MODULE:NAME``. The function takes the file and
        the parameters, and returns a value for JSON.
    :param file: an open file that has a file descriptor. The function gets the file for reading
        only, but hostile code could open it again for writing.
    :param parameters: the arguments of the function besides the file, as values for JSON.
    :param settings: the limits of the child, and its interpreter.
    :param meanwhile: a function that is called every second. If it raises an error, the child is
        killed, and ``run`` raises the same error.
    :raises LimitReached: if the child reaches a limit, or its answer is too long.
    :raises ChildFailed: if the child or another process of the sandbox fails, the parameters are
        too long, or the answer is not JSON.
    """
    message = request(parameters, settings)
    file.flush()
    # If the first warm process has ended, the second attempt starts another one.
    for _ in range(2):
        # The file is opened again, so that the child cannot write to it, or move its position here.
        with (
            open(f"/proc/self/fd/{file.fileno()}", "rb") as copy,
            requested(Function(function), message, copy, settings) as child,
        ):
            if answer := child.read_answer(meanwhile):
                return answer
    raise child.failure()


def request(parameters: Mapping[str, Any], settings: ChildSettings) -> bytes:
    """Return a request for a child, as JSON; ``run`` describes the parameters.

    :raises ChildFailed: if the request is too long.
    """
    limits = {name: getattr(settings, name) for name in _LIMITS}
    message = json.dumps(
        {
            "parameters": parameters,
            "limits": limits,
            "seconds": settings.patience,
            "directory": tempfile.gettempdir(),
            "readable": list(settings.readable),
            "ports": list(settings.ports),
            "walls": _WALLS,
        }
    ).encode()
    if len(message) > MAX_REQUEST:
        raise ChildFailed(f"a request of {len(message)} bytes is too long")
    return message


class RequestedChild:
    """A requested child, which this process can end without the supervisor of the child.

    Usually the supervisor ends the child when the time limit is over; see ``fork_server``. But
    hostile code in the child could stop or kill the supervisor. So before the child calls its
    function, the supervisor sends process descriptors of the child and of itself to this process.
    """

    def __init__(
        self,
        function: Function,
        settings: ChildSettings,
        reports: socket.socket,
        answer: IO[bytes],
        output: IO[bytes],
    ) -> None:
        """Prepare to receive messages from the supervisor of the child.

        :param function: the function that the child calls.
        :param settings: the limits of the child.
        :param reports: the socket from which the messages come.
        :param answer: the file into which the child writes its answer.
        :param output: the file into which the child prints.
        """
        self._function = function
        self._settings = settings
        self._reports = reports
        reports.settimeout(INTERVAL)
        self._answer = answer
        self._output = output
        self._seconds = settings.patience + _GRACE
        self._deadline = time.monotonic() + self._seconds
        self._child = self._supervisor = -1
        self._directory = ""
        # The last message of the supervisor: the report that the child has ended.
        self._report: bytes | None = None

    def starts(self, meanwhile: Callable[[], object]) -> bool:
        """Wait until the child can call its function, and return whether it can.

        :param meanwhile: a function that is called every second, as in ``run``.
        :returns: False if the supervisor has ended before.
        :raises ChildFailed: if the wait takes too long.
        """
        while self._child < 0 and self._report is None:
            self._receive(meanwhile)
        return self._child >= 0

    def read_answer(self, meanwhile: Callable[[], object]) -> Answer | None:
        """Wait until the child has ended, and return its answer.

        :param meanwhile: a function that is called every second, as in ``run``.
        :returns: None if the supervisor of the child has ended without a report.
        :raises LimitReached: as in ``run``.
        :raises ChildFailed: as in ``run``.
        """
        while self._report is None:
            self._receive(meanwhile)
        if not self._report:
            return None
        return _read(json.loads(self._report), self._settings, self._answer, self._output)

    def failure(self) -> ChildFailed:
        """Return the error for a supervisor that has ended without a report."""
        return ChildFailed("its supervisor has ended", warm_processes.errors(self._function.name))

    def check_deadline(self) -> None:
        """Check that the time for the child is not over. If it is, end the warm process as well.

        Usually the supervisor has ended the child before, unless the child has stopped it.

        :raises ChildFailed: if the time is over.
        """
        if time.monotonic() >= self._deadline:
            warm_processes.end(self._function.name)
            raise ChildFailed(f"its supervisor has not reported for {self._seconds:g} seconds")

    def _receive(self, meanwhile: Callable[[], object]) -> None:
        """Receive the next message of the supervisor, or call ``meanwhile`` after a second.

        :raises ChildFailed: if the time for the child is over.
        """
        self.check_deadline()
        try:
            # Green threads can wait for recv, but not for recv_fds.
            self._reports.recv(1, socket.MSG_PEEK)
            message, found, *_ = socket.recv_fds(
                self._reports, _MAX_REPORT, 2, socket.MSG_CMSG_CLOEXEC
            )
        except TimeoutError:
            meanwhile()
            return
        except OSError:
            message, found = b"", []
        if found:
            (self._child, self._supervisor), self._directory = found, message.decode()
        else:
            self._report = message

    def interrupt(self) -> None:
        """Send SIGINT to the child, which ignores it unless its function handles it."""
        # After the end of the child, there is nothing to interrupt.
        if self._child >= 0:
            _send_signal(self._child, signal.SIGINT)

    def end(self) -> None:
        """End the child, unless the supervisor has reported that the child has ended.

        If the supervisor has ended without this report, the child's directory is left to the next
        supervisor, since its removal could take long.
        """
        if self._child < 0:
            return
        if not self._report:
            _send_signal(self._child, signal.SIGKILL)
            # A supervisor that was stopped continues, and removes the directory of the child. An
            # empty report means that it has ended, even if its process still exists.
            if not _send_signal(self._supervisor, signal.SIGCONT) or self._report is not None:
                scratch.abandon(pathlib.Path(self._directory))
        closed = self._child, self._supervisor
        # Another file may get these numbers.
        self._child = self._supervisor = -1
        for descriptor in closed:
            os.close(descriptor)


def _send_signal(process: int, number: int) -> bool:
    """Send a signal to a process, and return whether the process still exists.

    :param process: a descriptor of the process.
    :param number: the number of the signal.
    """
    try:
        signal.pidfd_send_signal(process, number)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def requested(
    function: Function, message: bytes, file: IO[bytes] | socket.socket, settings: ChildSettings
) -> Iterator[RequestedChild]:
    """Request a child, and end it when the ``with`` statement ends, if it still runs.

    :param function: the function that the child calls.
    :param message: the result of ``request``.
    :param file: the file or the socket for the child. This function closes it.
    :param settings: the limits of the child, and its interpreter.
    :raises ChildFailed: if the warm process cannot be started.
    """
    reports, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with (
        tempfile.TemporaryFile() as answer,
        tempfile.TemporaryFile() as output,
        reports,
    ):
        with file, other:
            descriptors = [each.fileno() for each in (file, output, answer, other)]
            warm_processes.send(function, settings.python, message, descriptors)
        child = RequestedChild(function, settings, reports, answer, output)
        try:
            yield child
        finally:
            child.end()


def _read(
    report: Mapping[str, Any], settings: ChildSettings, answer: IO[bytes], output: IO[bytes]
) -> Answer:
    """Return the answer of a child that has ended.

    :param report: the report of the child's supervisor.
    :param answer: the file into which the child has written the answer.
    :param output: the file into which the child has printed.
    :raises LimitReached: if the child has reached a limit, or its answer is too long.
    :raises ChildFailed: if the child has failed, or its answer is not JSON.
    """
    code = report["code"]
    is_over = code == -signal.SIGXCPU or (code and report["seconds"] >= settings.seconds)
    if report["is_late"] or is_over:
        raise LimitReached(
            f"took more than {settings.seconds} seconds of processor time, or more than "
            f"{settings.patience:g} seconds in all"
        )
    if code == OUT_OF_MEMORY:
        raise LimitReached(f"took more than {settings.memory} bytes of memory")
    printed = warm_processes.end_of(output)
    if code:
        raise ChildFailed(f"its exit status was {code}", printed)
    data = os.pread(answer.fileno(), MAX_ANSWER + 1, 0)
    if len(data) > MAX_ANSWER:
        raise LimitReached(f"has a result of more than {MAX_ANSWER} bytes")
    if excess := _MAX_VALUES.find_excess(data):
        raise ChildFailed(f"its answer has {excess}")
    try:
        return Answer(json.loads(data), printed)
    except (ValueError, RecursionError) as error:
        raise ChildFailed(f"its answer is not JSON: {error}", printed) from error
