# SPDX-License-Identifier: Apache-2.0

"""Request a child for a file, and read the child's answer: the caller's side of the sandbox.

The requests go to a warm process, which forks the children; see ``fork_server``. This module starts
a warm process for each function. All threads of this process share the warm processes. After a
fork, the new process starts warm processes of its own. Green threads of eventlet can use this
module, since it waits only for a socket.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

from glare_murano.package.errors import GlareMuranoError
from glare_murano.package.sandbox import limited_process, scratch
from glare_murano.package.sandbox.limited_process import MAX_REQUEST, OUT_OF_MEMORY

# The longest answer in bytes. The two logos and the form of a package take 2.7 MiB of it.
MAX_ANSWER = 4 * 1024**2

_PROGRAM = "glare_murano.package.sandbox.fork_server"
# The limit of a child's wall-clock time, as a multiple of the limit of its processor time. It ends
# a child that waits instead of computing.
_PATIENCE = 3
# How long after the time limit of a child its report may come, in seconds. The warm process may
# still be starting when the request is sent.
_GRACE = 60
# The seconds between two calls of ``meanwhile``.
INTERVAL = 1
_MAX_REPORT = 4096
# The largest number of lists and mappings in an answer. Reading more of them would delay other
# requests.
_MAX_BRACKETS = 100_000
# Whether Landlock restricts what a child can reach, if the kernel has Landlock; see ``walls``.
_HAS_WALLS = True
# The number of bytes that are read from the end of a child's output.
_SHOWN = 20_000


class ChildFailed(GlareMuranoError):
    """A child process has failed, or could not be started.

    :ivar output: the end of what the child has printed. Each line is indented, so that no line
        can imitate a line of a log.
    """

    def __init__(self, reason: str, output: str = "") -> None:
        super().__init__(reason)
        self.output = output


class LimitReached(GlareMuranoError):
    """A child process has reached a limit; the message says which limit."""


@dataclasses.dataclass(frozen=True)
class ChildSettings:
    """The limits of a child process, and its Python interpreter.

    :param seconds: the longest processor time of the child, in seconds. The limit of its wall-clock
        time is three times as long.
    :param memory: the largest address space of the child, in bytes.
    :param file_size: the largest file that the child can write, in bytes.
    :param python: the path of the Python interpreter; empty for the interpreter of this process.
        Under uWSGI, the path is necessary, since ``sys.executable`` is uWSGI itself.
    :param readable: paths of files and directories that the child can read, besides its file and
        Python's modules.
    :param ports: the TCP ports of any host to which the child can connect.
    """

    seconds: int = 20
    memory: int = 512 * 1024**2
    file_size: int = 512 * 1024**2
    python: str = ""
    readable: Sequence[str] = ()
    ports: Sequence[int] = ()


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer of a child process, which must not be trusted.

    :param content: the answer, as parsed from JSON.
    :param output: the end of what the child has printed, as in ``ChildFailed``.
    """

    content: Any
    output: str


class _WarmProcess:
    """A process that runs ``fork_server``, and forks the children that call one function.

    :ivar started_by: the arguments of the constructor.
    """

    def __init__(self, command: Sequence[str], path: str, preparation: bytes) -> None:
        """Start the warm process, and hide the memory and the open files of the calling process.

        The open files contain archives and the answers of children. Once they are hidden, no other
        process of the same user can read them. So a child cannot read another child's answer.

        :param command: the command that starts the process.
        :param path: the value of ``PYTHONPATH`` for the process.
        :param preparation: the first message to the process, as JSON; see ``Function``.
        :raises OSError: if the process cannot be started.
        """
        self.started_by = (command, path, preparation)
        limited_process.hide_memory()
        self._kept: set[bytes] = set()
        # These sockets send a message completely or not at all, and never wait.
        self._requests, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._requests.setblocking(False)
        self._values, of_process = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._values.setblocking(False)
        # This file is in memory, and not in the directory for temporary files.
        self._output = os.fdopen(os.memfd_create("output"), "rb")
        try:
            with other, of_process:
                self._process = subprocess.Popen(  # noqa: S603 - with arguments of ours alone
                    [*command, str(of_process.fileno())],
                    stdin=other.fileno(),
                    pass_fds=[of_process.fileno()],
                    stdout=self._output.fileno(),
                    stderr=self._output.fileno(),
                    cwd="/",
                    env={"PYTHONPATH": path},
                    start_new_session=True,
                )
            self.send(preparation, ())
        except OSError:
            self._close()
            raise

    def send(self, request: bytes, descriptors: Sequence[int]) -> None:
        """Send a request to the process.

        :param request: the request, as JSON.
        :param descriptors: the descriptors that the child gets; see ``limited_process``.
        :raises OSError: if the process has ended, or cannot take the request at once.
        """
        socket.send_fds(self._requests, [request], list(descriptors))

    def keep(self, value: bytes) -> None:
        """Send a value to the process, unless it already has the value; see ``keep``.

        :raises OSError: if the process has ended, or cannot take the value at once.
        """
        if value not in self._kept:
            self._values.send(value)
            self._kept.add(value)

    def errors(self) -> str:
        """Return the last lines that the process has printed; empty unless the process fails."""
        return _end_of(self._output)

    def end(self) -> None:
        """End the process, and the children and supervisors that wait for a request."""
        self._close()
        # The signal is needed for processes that were stopped: they would not notice the end of the
        # warm process.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def forget(self) -> None:
        """Close the descriptors of the warm process, but let the process run.

        A process that was just forked calls this, since the warm process belongs to its parent.
        """
        self._close()
        # With an exit status, Python does not warn that the warm process still runs.
        self._process.returncode = 0

    def _close(self) -> None:
        self._requests.close()
        self._values.close()
        self._output.close()


# Function -> the warm process that has imported it.
_processes: dict[str, _WarmProcess] = {}
_lock = threading.Lock()


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


@dataclasses.dataclass(frozen=True)
class Function:
    """A function that children call.

    :param name: the name of the function, as ``MODULE:NAME``.
    :param preparation: a value for JSON; None if the function needs no preparation. With a value,
        ``name`` is the name of another function, which takes this value and returns the function
        for the children. The warm process calls the other function once.
    """

    name: str
    preparation: Any = None


def request(parameters: Mapping[str, Any], settings: ChildSettings) -> bytes:
    """Return a request for a child, as JSON; ``run`` describes the parameters.

    :raises ChildFailed: if the request is too long.
    """
    limits = {name: getattr(settings, name) for name in ("seconds", "memory", "file_size")}
    message = json.dumps(
        {
            "parameters": parameters,
            "limits": limits,
            "seconds": _PATIENCE * settings.seconds,
            "directory": tempfile.gettempdir(),
            "readable": list(settings.readable),
            "ports": list(settings.ports),
            "has_walls": _HAS_WALLS,
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
        self._seconds = _PATIENCE * settings.seconds + _GRACE
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
        return ChildFailed("its supervisor has ended", _errors(self._function.name))

    def check_deadline(self) -> None:
        """Check that the time for the child is not over. If it is, end the warm process as well.

        Usually the supervisor has ended the child before, unless the child has stopped it.

        :raises ChildFailed: if the time is over.
        """
        if time.monotonic() >= self._deadline:
            _end_warm_process(self._function.name)
            raise ChildFailed(f"its supervisor has not reported for {self._seconds} seconds")

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

    def end(self) -> None:
        """End the child, unless the supervisor has reported that the child has ended.

        If the supervisor has ended without this report, also remove the child's directory for
        temporary files.
        """
        if self._child < 0:
            return
        if not self._report:
            _send_signal(self._child, signal.SIGKILL)
            # A supervisor that was stopped continues, and removes the directory of the child. If it
            # has ended, the directory is removed here. An empty report means that it has ended,
            # even if its process still exists.
            if not _send_signal(self._supervisor, signal.SIGCONT) or self._report is not None:
                scratch.remove(pathlib.Path(self._directory))
        os.close(self._child)
        os.close(self._supervisor)


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
            _send(function, settings.python, message, descriptors)
        child = RequestedChild(function, settings, reports, answer, output)
        try:
            yield child
        finally:
            child.end()


def start(function: Function, python: str = "") -> None:
    """Start the warm process for a function, so that the first child need not wait for it.

    :param function: the function that children will call.
    :param python: as in ``ChildSettings``.
    :raises ChildFailed: if the warm process cannot be started.
    """
    _send(function, python, None, ())


def keep(name: str, value: Any) -> None:
    """Let the warm process of a function keep a value, from which all later children are forked.

    The process calls the method ``keep`` of the prepared function with this value, once. Nothing is
    done if the process does not run, or is busy.

    :param name: the name of a function that has a preparation; see ``Function``.
    :param value: a value for JSON, with at most ``MAX_REQUEST`` bytes.
    """
    with _lock:
        if running := _processes.get(name):
            with contextlib.suppress(OSError):
                running.keep(json.dumps(value).encode())


def _send(
    function: Function, python: str, message: bytes | None, descriptors: Sequence[int]
) -> None:
    """Send a request to the warm process for a function. If necessary, start this process first.

    :param function: the function that the child calls.
    :param python: as in ``ChildSettings``.
    :param message: the request, as JSON; None to send no request.
    :param descriptors: the descriptors of the file, the output and the answer, and of the socket
        for the report.
    :raises ChildFailed: if the warm process cannot be started.
    """
    command = (python or sys.executable, "-s", "-P", "-m", _PROGRAM, function.name)
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    preparation = json.dumps(function.preparation).encode()
    with _lock:
        running = _processes.get(function.name)
        if running and running.started_by == (command, path, preparation):
            with contextlib.suppress(OSError):
                if message is not None:
                    running.send(message, descriptors)
                return
        if running:
            _processes.pop(function.name).end()
        try:
            started = _processes[function.name] = _WarmProcess(command, path, preparation)
            if message is not None:
                started.send(message, descriptors)
        except OSError as error:
            raise ChildFailed(f"the warm process cannot be started: {error}") from error


def _end_warm_process(function: str) -> None:
    """End the warm process for a function, so that the next request starts another one."""
    with _lock:
        if running := _processes.pop(function, None):
            running.end()


def _errors(function: str) -> str:
    """Return what the warm process for a function has printed; empty without such a process."""
    with _lock:
        running = _processes.get(function)
        return running.errors() if running else ""


def _forget_all() -> None:
    """Close the descriptors of all warm processes, in a process that was just forked.

    The warm processes belong to the parent process.
    """
    global _lock
    # Another thread of the parent may have held the lock during the fork.
    _lock = threading.Lock()
    for each in _processes.values():
        each.forget()
    _processes.clear()


os.register_at_fork(after_in_child=_forget_all)


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
            f"{_PATIENCE * settings.seconds} seconds in all"
        )
    if code == OUT_OF_MEMORY:
        raise LimitReached(f"took more than {settings.memory} bytes of memory")
    printed = _end_of(output)
    if code:
        raise ChildFailed(f"its exit status was {code}", printed)
    data = os.pread(answer.fileno(), MAX_ANSWER + 1, 0)
    if len(data) > MAX_ANSWER:
        raise LimitReached(f"has a result of more than {MAX_ANSWER} bytes")
    if data.count(b"[") + data.count(b"{") > _MAX_BRACKETS:
        raise ChildFailed("its answer has too many lists and mappings")
    try:
        return Answer(json.loads(data), printed)
    except (ValueError, RecursionError) as error:
        raise ChildFailed(f"its answer is not JSON: {error}", printed) from error


def _end_of(file: IO[bytes]) -> str:
    """Return the last lines that a process has printed into a file.

    Each line is indented, and a line with unprintable characters is escaped.
    """
    size = os.fstat(file.fileno()).st_size
    data = os.pread(file.fileno(), _SHOWN, max(size - _SHOWN, 0))
    lines = data.decode(errors="replace").splitlines()
    return "".join(f"\n    {line if line.isprintable() else ascii(line)}" for line in lines)
