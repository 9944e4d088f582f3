# SPDX-License-Identifier: Apache-2.0

"""Run the warm process, which forks a supervisor for each file. The supervisor forks the child.

Four processes work together. The sender is the process that uses ``children``.

* The warm process has imported the function that children call, and never reads a file. It always
  keeps one supervisor with one child ready.
* The child waits for a request, and calls the function on the file of the request. As soon as the
  child has a request, the warm process forks the next supervisor, which forks the next child.
* The supervisor forks the child. Before the child reads the file, the supervisor sends process
  descriptors of the child and of itself to the sender. With them, the sender can end the child even
  if hostile code has stopped or killed the supervisor. After the child has begun to read the file,
  the supervisor reads nothing that the child writes. The supervisor ends the child at its time
  limit, or when the sender ends. Then it reports the end of the child to the sender.

Requests come from a socket, which is the descriptor 0. Only the sender has the other end of the
socket. When the sender ends, the other processes end as well. They ignore the signals that a
service manager sends to every process of a service, so that the sender decides when they end.

The names from ``select``, ``socket`` and ``time`` are imported one by one, since the preparation of
a function may patch these modules, as eventlet does. But these processes run no green threads.
"""

import contextlib
import gc
import json
import os
import pathlib
import pkgutil
import signal
import sys
import tempfile
import traceback
from _socket import socketpair
from collections.abc import Callable
from select import POLLIN, poll
from socket import recv_fds, send_fds, socket
from time import sleep
from typing import Any, NoReturn

from glare_murano.package.manifest import (
    FUNCTION_NAMESPACE,
    PLUGIN_NAMESPACE,
    registered_formats,
)
from glare_murano.package.sandbox import limited_process, scratch, walls
from glare_murano.package.sandbox.limited_process import MAX_REQUEST

# The seconds before the next supervisor is forked, if a supervisor ends without a request.
_PAUSE = 0.05
# See proc_pid_oom_score_adj(5).
_FIRST = "1000"
# The seconds for which a child's directory is removed with the usual priority.
_PROMPT_REMOVAL = 1
_LOWEST_PRIORITY = 19
_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def main() -> None:
    """Serve requests to call a function, until the sender of the requests ends.

    The command has two arguments: the name of the function, as ``MODULE:NAME``, and the descriptor
    of a socket for values to preload. The first request is the preparation of the function; see
    ``Function`` and ``preload`` in ``warm_processes``.
    """
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    # With this setting, the kernel removes supervisors that have ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _end_first()
    limited_process.hide_memory()
    requests = socket(fileno=0)
    # In a sender that eventlet has patched, the sockets were made non-blocking.
    requests.setblocking(True)
    preparation = json.loads(requests.recv(MAX_REQUEST))
    function = pkgutil.resolve_name(sys.argv[1])
    if preparation is not None:
        function = function(preparation)
    for group in (PLUGIN_NAMESPACE, FUNCTION_NAMESPACE):
        # The entry points are read here, once for all children. Reading them takes longer than
        # reading a small package.
        registered_formats(group)
    walls.prepare()
    values = socket(fileno=int(sys.argv[2]))
    with requests, values:
        while not _has_ended(requests):
            # Without this call, garbage collection in a child would copy the memory pages that it
            # shares with this process.
            gc.freeze()
            _serve_one(requests, values, function)
    # The process that started this one made it the leader of a process group. The group also
    # contains the supervisor and the child that wait for a request. They may have been stopped, so
    # they are killed.
    os.killpg(0, signal.SIGKILL)


def _end_first() -> None:
    """Let the kernel end this process and its children before the service, if memory runs out.

    This comes before ``hide_memory``, after which only root may write the file.
    """
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/oom_score_adj").write_text(_FIRST)


def _has_ended(requests: socket) -> bool:
    """Return whether the sender of requests, at the other end of the socket, has ended."""
    events = poll()
    # No event is requested, so poll returns only if the connection has ended.
    events.register(requests, 0)
    return bool(events.poll(0))


def _serve_one(requests: socket, values: socket, function: Callable[..., Any]) -> None:
    """Fork a supervisor, which forks a child, and wait until the child has received a request.

    Meanwhile, let the function preload values. The waiting child does not have them, but the next
    one. The wait also ends when the supervisor or the sender of requests ends.
    """
    taken, take = os.pipe()
    if not os.fork():
        os.close(taken)
        values.close()
        _end(lambda: _supervise(requests, take, function))
    os.close(take)
    with open(taken, "rb") as pipe:
        events = poll()
        events.register(pipe, POLLIN)
        events.register(requests, 0)
        events.register(values, POLLIN)
        while [number for number, _ in events.poll()] == [values.fileno()]:
            if value := values.recv(MAX_REQUEST):
                function.preload(json.loads(value))  # type: ignore[attr-defined]
        if not _has_ended(requests) and not pipe.read(1):
            # The supervisor has ended without a request; it may have been killed.
            sleep(_PAUSE)


def _end(run: Callable[[], int]) -> NoReturn:
    """Call a function, and end this process with the result of the function as its exit status."""
    status = 1
    try:
        status = run()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        # sys.exit would run the exit functions of the parent process, and would wait for threads.
        os._exit(status)


def _supervise(requests: socket, take: int, function: Callable[..., Any]) -> int:
    """Fork a child, wait until it has a request, and report to the sender how the child ended.

    :param requests: the socket from which the request comes.
    :param take: the writing end of a pipe. A byte in it says that the child has a request.
    :param function: the function that the child calls.
    :returns: the exit status of this process, which is the supervisor.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # The function of the same name in ``socket`` makes sockets of the patched class.
    received, send = (socket(fileno=end.detach()) for end in socketpair())
    parent = os.getpid()
    child = os.fork()
    if not child:
        limited_process.end_with(parent)
        _end(lambda: limited_process.serve(requests, send, function))
    send.close()
    # Only the warm process and the next child may keep this socket open.
    requests.close()
    message, reports, *_ = recv_fds(received, MAX_REQUEST, 1)
    if not message:
        return 0
    # With a process group of its own, this process continues if the group of the warm process is
    # killed.
    os.setpgid(0, 0)
    # This byte lets the warm process fork the next child. The warm process may have been killed.
    with contextlib.suppress(BrokenPipeError), open(take, "wb") as pipe:
        pipe.write(b"1")
    request = json.loads(message)
    # The supervisor makes the directory, and removes it, since it outlives the child and the
    # sender.
    directory = pathlib.Path(tempfile.mkdtemp(prefix=scratch.PREFIX, dir=request["directory"]))
    with received, socket(fileno=reports[0]) as sender:
        # The sender may have closed the socket.
        with contextlib.suppress(OSError):
            _introduce(child, directory, sender)
            received.send(str(directory).encode())
        outcome = _see_to_end(child, sender, request["seconds"])
        _remove(directory)
        with contextlib.suppress(OSError):
            sender.sendall(json.dumps(outcome).encode())
    scratch.remove_abandoned(directory.parent)
    return 0


def _remove(directory: pathlib.Path) -> None:
    """Remove the directory of a child, with the lowest priority if it takes more than a second.

    To remove directories takes several times as long as to make them. Nobody counts this time: the
    sender may have given up, and sent further requests.
    """
    signal.signal(signal.SIGALRM, lambda *_: os.nice(_LOWEST_PRIORITY))
    signal.setitimer(signal.ITIMER_REAL, _PROMPT_REMOVAL)
    scratch.remove(directory)
    signal.setitimer(signal.ITIMER_REAL, 0)


def _introduce(child: int, directory: pathlib.Path, sender: socket) -> None:
    """Send process descriptors of a child and of this process, for ``children.RequestedChild``.

    :param child: the id of the child.
    :param directory: the child's directory for temporary files. Its path is sent as well.
    :param sender: the socket to the sender.
    """
    processes = [os.pidfd_open(child), os.pidfd_open(os.getpid())]
    try:
        send_fds(sender, [str(directory).encode()], processes)
    finally:
        for each in processes:
            os.close(each)


def _see_to_end(child: int, sender: socket, seconds: float) -> dict[str, Any]:
    """Wait until a child ends, and return the report for the sender.

    The child is killed at the time limit, or when the sender ends. The processes that the child has
    started are killed in any case.

    :param child: the id of the child.
    :param sender: the socket to the sender.
    :param seconds: the time limit, in seconds.
    :returns: the exit status of the child, whether the time limit was reached, and the processor
        time of the child in seconds.
    """
    is_late = not _wait(child, sender, seconds)
    _kill(child)
    _, status, used = os.wait4(child, 0)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "is_late": is_late,
        "seconds": used.ru_utime + used.ru_stime,
    }


def _wait(child: int, sender: socket, seconds: float) -> bool:
    """Wait until a child or the sender ends, for a limited time.

    :param child: the id of the child.
    :param sender: the socket to the sender.
    :param seconds: the longest time to wait, in seconds.
    :returns: True if the child or the sender has ended in this time.
    """
    descriptor = os.pidfd_open(child)
    try:
        events = poll()
        events.register(descriptor, POLLIN)
        events.register(sender, 0)
        return bool(events.poll(seconds * 1000))
    finally:
        os.close(descriptor)


def _kill(child: int) -> None:
    """Kill a child, and all processes that it has started.

    The exit status of the child must not have been read yet.
    """
    for kill in (os.killpg, os.kill):
        # The child may not lead its group yet.
        with contextlib.suppress(ProcessLookupError):
            kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main()
