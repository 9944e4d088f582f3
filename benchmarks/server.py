# SPDX-License-Identifier: Apache-2.0

"""The development server in a process of its own, and its processor time.

A process can run one Glare only, so each catalogue has its own. Only the time of
its process counts. The client's time is left out, since the client validates each
response; the disk's time too, since all types of packages take the same.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping

from benchmarks.measure import scratch
from tests.functional.client import Client


class Server:
    """A running Glare.

    :ivar database: its SQLite file.
    :ivar url: its address.
    """

    def __init__(self, database: pathlib.Path, url: str, pid: int) -> None:
        self.database = database
        self.url = url
        # Linux: the clock of another process, see clock_getcpuclockid(3).
        self._clock = ~pid << 3 | 2

    def processor_time(self) -> float:
        """Return the processor time of the process so far, in seconds."""
        return time.clock_gettime(self._clock)

    def client(self, project: str, artifact_type: str = "murano", role: str = "member") -> Client:
        """Return a client for a user with a role in a project."""
        return Client(self.url, f"user:{project}:{role}", artifact_type)


@contextlib.contextmanager
def running(
    *types: str,
    settings: str = "",
    state: pathlib.Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """Run a Glare with these artifact types.

    :param settings: additional configuration.
    :param state: the state directory of an earlier Glare; by default a new one.
    :param environment: is added to its environment.
    """
    state = state or scratch()
    enabled = f"[DEFAULT]\nenabled_artifact_types = {','.join(types)}\n"
    (state / "local.conf").write_text(enabled + settings)
    command = [sys.executable, "-m", "glare_murano.glare.server"]
    with subprocess.Popen(
        [*command, "--state-dir", str(state), "--port", "0"],
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            yield Server(state / "glare.sqlite", url, process.pid)
        finally:
            process.terminate()
