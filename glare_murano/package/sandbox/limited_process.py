# SPDX-License-Identifier: Apache-2.0

"""Serve one request in a child process: set limits, call a function on a file, write the result.

The file may be hostile. When the function is called, the child has only these descriptors: 0 is the
file, which is read-only; 1 and 2 are the output; 3 is the answer. Other files, ports and processes
are restricted; see ``walls`` and ``system_calls``.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from socket import recv_fds, send_fds, socket
from typing import Any

from glare_murano.package.sandbox import system_calls, walls

# The largest request in bytes.
MAX_REQUEST = 64 * 1024
# The number of descriptors that come with a request: the file, the output, the answer, and the
# socket for the report.
DESCRIPTORS = 4
# The exit status of a child that has run out of memory.
OUT_OF_MEMORY = 3

# What restricts a child, besides its limits; see the modules ``walls`` and ``system_calls``.
LANDLOCK, SYSTEM_CALLS = "landlock", "system calls"

_ANSWER = 3
# See prctl(2); Python has no function for it.
_SET_PARENT_DEATH_SIGNAL, _SET_DUMPABLE, _SET_NO_NEW_PRIVILEGES = 1, 4, 38
_library = ctypes.CDLL(None, use_errno=True)


def hide_memory() -> None:
    """Forbid other processes of the same user to trace this process, or to read its memory.

    Children that this process forks are protected in the same way.
    """
    _set(_SET_DUMPABLE, 0)


def end_with(parent: int) -> None:
    """Make the kernel kill this process when its parent ends.

    :param parent: the id of the parent process.
    """
    _set(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        # The parent has ended before this call.
        os._exit(1)


def serve(requests: socket, supervisor: socket, function: Callable[..., Any]) -> int:
    """Wait for a request, call the function, and write the answer.

    The caller has to end this process afterwards.

    :param requests: the socket from which the request comes, with its descriptors.
    :param supervisor: a socket to the supervisor. This process sends the time limit, the socket for
        the report, and the path of a directory. In this directory, the supervisor makes another
        directory for temporary files, and sends the path of the new directory back.
    :param function: a function that takes a file and the parameters, and returns a value for JSON.
    :returns: the exit status for this process.
    """
    message, descriptors, *_ = recv_fds(requests, MAX_REQUEST, DESCRIPTORS)
    if not message:
        return 0
    request = json.loads(message)
    known = {"directory": request["directory"], "seconds": request["seconds"]}
    send_fds(supervisor, [json.dumps(known).encode()], descriptors[3:])
    directory = supervisor.recv(MAX_REQUEST).decode()
    if not directory:
        return 1
    _detach(descriptors[:3], directory)
    try:
        _limit(**request["limits"])
        if LANDLOCK in request["walls"]:
            walls.restrict(directory, request["readable"], request["ports"])
        if SYSTEM_CALLS in request["walls"]:
            system_calls.restrict(_library)
        _answer(function, request["parameters"])
    except MemoryError:
        # Nothing else works reliably after memory has run out.
        os._exit(OUT_OF_MEMORY)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
    return 0


def _detach(descriptors: list[int], directory: str) -> None:
    """Separate this process from its parent: start a new session, and close other descriptors.

    :param descriptors: the file, the output and the answer, which stay open.
    :param directory: the directory for temporary files.
    """
    # This process leads a process group, so that processes that it starts can be ended with it.
    os.setsid()
    _set(_SET_NO_NEW_PRIVILEGES, 1)
    file, output, answer = descriptors
    for source, target in ((file, 0), (output, 1), (output, 2), (answer, _ANSWER)):
        os.dup2(source, target)
    os.closerange(_ANSWER + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    os.chdir(directory)
    os.environ.update(HOME=directory, TMPDIR=directory)
    # Each line is written at once, so that it comes before a later traceback.
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115 - until the end


def _limit(seconds: int, memory: int, file_size: int, files: int) -> None:
    for kind, soft, hard in (
        # At the soft limit, the process gets a signal, which it could catch. At the hard limit, it
        # is killed.
        (resource.RLIMIT_CPU, seconds, seconds + 1),
        (resource.RLIMIT_AS, memory, memory),
        (resource.RLIMIT_FSIZE, file_size, file_size),
        (resource.RLIMIT_NOFILE, files, files),
        (resource.RLIMIT_NPROC, 0, 0),
        # All processes of a user share the room for waiting real-time signals.
        (resource.RLIMIT_SIGPENDING, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        # The service may have lower limits, which only root can raise.
        _, largest = resource.getrlimit(kind)
        if largest != resource.RLIM_INFINITY:
            soft, hard = min(soft, largest), min(hard, largest)
        resource.setrlimit(kind, (soft, hard))


def _answer(function: Callable[..., Any], parameters: Mapping[str, Any]) -> None:
    with open(0, "rb", closefd=False) as file:
        content = json.dumps(function(file, **parameters)).encode()
    with open(_ANSWER, "wb") as answer:
        answer.write(content)


def _set(option: int, value: int) -> None:
    if _library.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value})")
