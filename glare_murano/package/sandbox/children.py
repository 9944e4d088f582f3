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
_INTERVAL = 1
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
    """

    seconds: int = 20
    memory: int = 512 * 1024**2
    file_size: int = 512 * 1024**2
    python: str = ""
    readable: Sequence[str] = ()


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

    :ivar started_by: the command that has started the process, and its ``PYTHONPATH``.
    """

    def __init__(self, command: Sequence[str], path: str) -> None:
        """Start the warm process, and hide the memory and the open files of the calling process.

        The open files contain archives and the answers of children. Once they are hidden, no other
        process of the same user can read them. So a child cannot read another child's answer.

        :param command: the command that starts the process.
        :param path: the value of ``PYTHONPATH`` for the process.
        :raises OSError: if the process cannot be started.
        """
        self.started_by = (command, path)
        limited_process.hide_memory()
        # The socket sends a message completely or not at all, and never waits.
        self._requests, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._requests.setblocking(False)
        # This file is in memory, and not in the directory for temporary files.
        self._output = os.fdopen(os.memfd_create("output"), "rb")
        try:
            with other:
                self._process = subprocess.Popen(  # noqa: S603 - with arguments of ours alone
                    command,
                    stdin=other.fileno(),
                    stdout=self._output.fileno(),
                    stderr=self._output.fileno(),
                    cwd="/",
                    env={"PYTHONPATH": path},
                    start_new_session=True,
                )
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
    seconds = _PATIENCE * settings.seconds
    limits = {name: getattr(settings, name) for name in ("seconds", "memory", "file_size")}
    request = {
        "parameters": parameters,
        "limits": limits,
        "seconds": seconds,
        "directory": tempfile.gettempdir(),
        "readable": list(settings.readable),
        "has_walls": _HAS_WALLS,
    }
    message = json.dumps(request).encode()
    if len(message) > MAX_REQUEST:
        raise ChildFailed(f"a request of {len(message)} bytes is too long")
    file.flush()
    # If the first warm process has ended, the second attempt starts another one.
    for _ in range(2):
        with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as output:
            descriptors = [each.fileno() for each in (file, output, answer)]
            with _requested(function, settings.python, message, descriptors) as child:
                report = child.wait(seconds + _GRACE, meanwhile)
            if report is None:
                _end_warm_process(function)
                raise ChildFailed(f"its supervisor has not reported for {seconds + _GRACE} seconds")
            if report:
                return _read(json.loads(report), settings, answer, output)
    raise ChildFailed("its supervisor has ended", _errors(function))


class _RequestedChild:
    """A requested child, which this process can end without the supervisor of the child.

    Usually the supervisor ends the child when the time limit is over; see ``fork_server``. But
    hostile code in the child could stop or kill the supervisor. So before the child reads the file,
    the supervisor sends process descriptors of the child and of itself to this process.
    """

    def __init__(self, reports: socket.socket) -> None:
        """Prepare to receive messages from the supervisor of the child.

        :param reports: the socket from which the messages come.
        """
        self._reports = reports
        self._child = self._supervisor = -1
        self._directory = ""
        # The result of ``wait``.
        self._report: bytes | None = None

    def wait(self, seconds: float, meanwhile: Callable[[], object]) -> bytes | None:
        """Wait for the report that the child has ended.

        :param seconds: the longest time to wait, in seconds.
        :param meanwhile: a function that is called every second, as in ``run``.
        :returns: the report; empty if the supervisor has ended without a report, and None if the
            report does not come in time.
        """
        self._reports.settimeout(_INTERVAL)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                # Green threads can wait for recv, but not for recv_fds.
                self._reports.recv(1, socket.MSG_PEEK)
                message, found, *_ = socket.recv_fds(
                    self._reports, _MAX_REPORT, 2, socket.MSG_CMSG_CLOEXEC
                )
            except TimeoutError:
                meanwhile()
                continue
            except OSError:
                message, found = b"", []
            if not found:
                self._report = message
                return message
            (self._child, self._supervisor), self._directory = found, message.decode()
        return None

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
def _requested(
    function: str, python: str, message: bytes, descriptors: Sequence[int]
) -> Iterator[_RequestedChild]:
    """Request a child, and end it when the ``with`` statement ends, if it still runs.

    :param function: the name of the function that the child calls.
    :param python: as in ``ChildSettings``.
    :param message: the request, as JSON.
    :param descriptors: the descriptors of the file, the output and the answer.
    :raises ChildFailed: if the warm process cannot be started.
    """
    # The file is opened again, so that the child cannot write to it, or move its position here.
    file = os.open(f"/proc/self/fd/{descriptors[0]}", os.O_RDONLY | os.O_CLOEXEC)
    reports, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with reports:
        try:
            _send(function, python, message, (file, *descriptors[1:], other.fileno()))
        finally:
            os.close(file)
            other.close()
        child = _RequestedChild(reports)
        try:
            yield child
        finally:
            child.end()


def _send(function: str, python: str, message: bytes, descriptors: Sequence[int]) -> None:
    """Send a request to the warm process for a function. If necessary, start this process first.

    The other parameters are those of ``_requested``.

    :param descriptors: the descriptors of the file, the output and the answer, and of the socket
        for the report.
    :raises ChildFailed: if the warm process cannot be started.
    """
    command = (python or sys.executable, "-s", "-P", "-m", _PROGRAM, function)
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    with _lock:
        running = _processes.get(function)
        if running and running.started_by == (command, path):
            with contextlib.suppress(OSError):
                running.send(message, descriptors)
                return
        if running:
            _processes.pop(function).end()
        try:
            started = _processes[function] = _WarmProcess(command, path)
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
