# SPDX-License-Identifier: Apache-2.0

"""The real Glare, in a process of its own, and the processor time that it takes.

Each catalogue needs a process of its own, since a process can hold one Glare
only. The time of that process is measured, and not how long a client waits: in
that is the client's own work, which checks every answer, and the disk, which
takes the same to publish a package of either type.
"""

import contextlib
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from tests.functional.client import Client


class Server:
    """A Glare that answers.

    :ivar database: its SQLite file.
    :ivar url: where it is reached.
    """

    def __init__(self, database: pathlib.Path, url: str, pid: int) -> None:
        self.database = database
        self.url = url
        # Linux: the clock of another process, as clock_getcpuclockid(3) gives it.
        self._clock = ~pid << 3 | 2

    def processor_time(self) -> float:
        """What the process has taken so far, in seconds."""
        return time.clock_gettime(self._clock)

    def client(self, project: str, artifact_type: str = "murano") -> Client:
        """A client of a member of a project."""
        return Client(self.url, f"user:{project}:member", artifact_type)


@contextlib.contextmanager
def running(*types: str, settings: str = "") -> Iterator[Server]:
    """A Glare with these artifact types, and nothing in it yet.

    :param settings: more of its configuration.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        enabled = f"[DEFAULT]\nenabled_artifact_types = {','.join(types)}\n"
        (folder / "local.conf").write_text(enabled + settings)
        command = [sys.executable, "-m", "glare_murano.glare.server"]
        with subprocess.Popen(
            [*command, "--state-dir", name, "--port", "0"], stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stdout is not None
                url = process.stdout.readline().split()[-1]
                yield Server(folder / "glare.sqlite", url, process.pid)
            finally:
                process.terminate()
