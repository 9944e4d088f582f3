# SPDX-License-Identifier: Apache-2.0

"""Commands in processes of their own, as tests start and end them."""

import contextlib
import os
import pathlib
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]

START_SECONDS = 60

# Below the ports that the kernel gives to clients, and to servers that ask for any.
_PORTS = range(20_000, 30_000)
# A port is reserved by UDP, which no server here uses.
_reservations: list[socket.socket] = []


def wait_until(condition: Callable[[], Any], what: str, seconds: float = START_SECONDS) -> Any:
    """Ask until the answer is true, and return it."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds} seconds"
        time.sleep(0.1)
    return answer


@contextlib.contextmanager
def running(
    command: Sequence[Any],
    output: pathlib.Path,
    environment: Mapping[str, str] | None = None,
    directory: pathlib.Path = ROOT,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command, and leave nothing of it behind.

    :param environment: what to add to that of the tests.
    :param directory: where it runs.
    """
    with output.open("wb") as stream:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=directory,
            env={**os.environ, **(environment or {})},
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def listening(
    command: Sequence[Any],
    port: int,
    output: pathlib.Path,
    environment: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command, once it accepts connections at a port."""
    with running(command, output, environment) as process:

        def accepts() -> bool:
            assert process.poll() is None, f"{command} ended: {output.read_text()}"
            with socket.socket() as client:
                return client.connect_ex(("127.0.0.1", port)) == 0

        wait_until(accepts, f"the start of {command}")
        yield process


def descendants(pid: int) -> set[int]:
    """The processes that a process has started, and those that they have started."""
    parents = _parents()
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def _parents() -> dict[int, int]:
    """The parent of each running process of this host."""
    parents = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        # A process may end meanwhile.
        with contextlib.suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(path.parent.name)] = int(parent)
    return parents


def readers(pid: int) -> set[int]:
    """The children of a service that read archives; one waits for the next archive."""
    # Another service that this one has started has such children as well.
    warm = {each for each, parent in _parents().items() if parent == pid and _is_warm(each)}
    # The warm process, its supervisors and the children have the same command.
    below = set().union(*map(descendants, warm))
    return {each for each in below if not descendants(each)}


def _is_warm(pid: int) -> bool:
    with contextlib.suppress(OSError):
        # Loaders in this process have another one, for package types.
        return b"archive_reading:" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def free_port() -> int:
    """Reserve a port of this host at which nothing listens, until this process ends.

    Tests run side by side, and a server may start long after its port was chosen.
    """
    for port in random.sample(_PORTS, len(_PORTS)):
        reservation = socket.socket(type=socket.SOCK_DGRAM)
        try:
            reservation.bind(("127.0.0.1", port))
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            reservation.close()
        else:
            _reservations.append(reservation)
            return port
    raise AssertionError(f"no port is free from {_PORTS.start} to {_PORTS.stop - 1}")
