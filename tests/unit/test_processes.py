# SPDX-License-Identifier: Apache-2.0

"""How tests reserve ports."""

import socket
import subprocess
import sys

import pytest

from tests import processes


def test_a_port_is_reserved_for_one_process() -> None:
    port = processes.free_port()
    script = (
        "from tests import processes\n"
        f"processes._PORTS = range({port}, {port + 1})\n"
        "processes.free_port()"
    )
    other = subprocess.run(
        [sys.executable, "-c", script], cwd=processes.ROOT, stderr=subprocess.PIPE, text=True
    )
    assert f"no port is free from {port} to {port}" in other.stderr


def test_a_port_at_which_somebody_listens_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    port = processes.free_port()
    processes._reservations.pop().close()
    monkeypatch.setattr(processes, "_PORTS", range(port, port + 1))
    with socket.create_server(("127.0.0.1", port)), pytest.raises(AssertionError):
        processes.free_port()
