# SPDX-License-Identifier: Apache-2.0

"""Start the warm processes, which fork the children, and send them requests.

Each function that children call has a warm process of its own; see ``fork_server``. All threads of
this process share the warm processes. After a fork, the new process starts warm processes of its
own.
"""

import atexit
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import IO, Any

from glare_murano.package.sandbox import limited_process
from glare_murano.package.sandbox.child_errors import ChildFailed

_PROGRAM = "glare_murano.package.sandbox.fork_server"
# The number of bytes that are read from the end of a process's output.
_SHOWN = 20_000


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
        self._preloaded: set[bytes] = set()
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
                    env={**_libraries(), "PYTHONPATH": path},
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

    def preload(self, value: bytes) -> None:
        """Send a value to the process, unless it already has the value; see ``preload``.

        :raises OSError: if the process has ended, or cannot take the value at once.
        """
        if value not in self._preloaded:
            self._values.send(value)
            self._preloaded.add(value)

    def errors(self) -> str:
        """Return the last lines that the process has printed; empty unless the process fails."""
        return end_of(self._output)

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


def _libraries() -> dict[str, str]:
    """Return the variable with the directories of shared libraries, if it is set."""
    name = "LD_LIBRARY_PATH"
    return {name: os.environ[name]} if name in os.environ else {}


# Function -> the warm process that has imported it.
_processes: dict[str, _WarmProcess] = {}
_lock = threading.Lock()


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


def start(function: Function, python: str = "") -> None:
    """Start the warm process for a function, so that the first child need not wait for it.

    :param function: the function that children will call.
    :param python: as in ``ChildSettings``.
    :raises ChildFailed: if the warm process cannot be started.
    """
    send(function, python, None, ())


def preload(name: str, value: Any) -> None:
    """Let the warm process of a function prepare a value for all later children.

    The process calls the method ``preload`` of the prepared function with this value, once. Nothing
    is done if the process does not run, or is busy.

    :param name: the name of a function that has a preparation; see ``Function``.
    :param value: a value for JSON, with at most ``MAX_REQUEST`` bytes.
    """
    with _lock:
        if running := _processes.get(name):
            with contextlib.suppress(OSError):
                running.preload(json.dumps(value).encode())


def is_interpreter(path: str) -> bool:
    """Return whether a path is that of a Python interpreter that can be run.

    In uWSGI, ``sys.executable`` is uWSGI, which cannot run the warm process.
    """
    return pathlib.Path(path).name.startswith("python") and os.access(path, os.X_OK)


def find_interpreter() -> str:
    """Return the path of the Python interpreter for warm processes without a configured one.

    :raises ChildFailed: if none is found.
    """
    # In another program than Python, the first one is that program, or missing.
    paths = [*filter(None, [sys.executable]), os.path.join(sys.prefix, "bin", "python3")]
    for path in filter(is_interpreter, paths):
        return path
    raise ChildFailed(
        f"Python is needed, and there is no interpreter among {', '.join(paths)}; install Python "
        f"as the last of them"
    )


def send(
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
    command = (python or find_interpreter(), "-s", "-P", "-m", _PROGRAM, function.name)
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


def end(function: str) -> None:
    """End the warm process for a function, so that the next request starts another one."""
    with _lock:
        if running := _processes.pop(function, None):
            running.end()


def errors(function: str) -> str:
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


def _end_all() -> None:
    """End all warm processes.

    They would end by themselves. But Python's own check of them, at the end of a process that
    eventlet has patched, prints a traceback.
    """
    for each in _processes.values():
        each.end()
    _processes.clear()


atexit.register(_end_all)


def end_of(file: IO[bytes]) -> str:
    """Return the last lines that a process has printed into a file.

    Each line is indented, and a line with unprintable characters is escaped.
    """
    size = os.fstat(file.fileno()).st_size
    data = os.pread(file.fileno(), _SHOWN, max(size - _SHOWN, 0))
    lines = data.decode(errors="replace").splitlines()
    return "".join(f"\n    {line if line.isprintable() else ascii(line)}" for line in lines)
