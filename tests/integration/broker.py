# SPDX-License-Identifier: Apache-2.0

"""A RabbitMQ of the tests' own, which they can stop and start."""

import os
import pathlib
import signal
import socket
import subprocess
import uuid
from typing import Self

from tests import prerequisites, processes

# The script that the command for root runs, as another user.
_SERVER = pathlib.Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
_STOP_SECONDS = 30


class Broker:
    """A node of RabbitMQ on loopback, which keeps its files in a folder.

    :ivar url: its transport URL.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        prerequisites.rabbitmq()
        port = processes.free_port()
        self.url = f"rabbit://guest:guest@127.0.0.1:{port}/"
        self._port = port
        self._output = folder / "rabbitmq.out"
        configuration = folder / "rabbitmq.conf"
        configuration.write_text(f"listeners.tcp.1 = 127.0.0.1:{port}\n")
        self._environment = {
            **os.environ,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_FLAGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "HOME": str(folder),
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RABBITMQ_CONFIG_FILE": str(configuration),
            "RABBITMQ_DIST_PORT": str(processes.free_port()),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_NODENAME": f"test-{uuid.uuid4().hex}@localhost",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def start(self) -> None:
        """Start the node, and wait until it accepts connections."""
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                ["/bin/sh", _SERVER],
                env=self._environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

        def accepts() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, self._output.read_text()
            with socket.socket() as client:
                return client.connect_ex(("127.0.0.1", self._port)) == 0

        processes.wait_until(accepts, "the start of RabbitMQ")

    def stop(self) -> None:
        """Stop the node; what is not durable is lost."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait(_STOP_SECONDS)
        self._process = None
