# SPDX-License-Identifier: Apache-2.0

"""The tour of ``examples.demo`` with packages in Glance.

It starts the real Keystone and the real Glance, both over SQLite and each in one process,
with the files that an operator installs. MariaDB is not needed: one process and a write-ahead
log suffice for one publisher. The publisher and the user who deploys have tokens
of Keystone, and Glance is found in Keystone's catalogue of services.
"""

import concurrent.futures
import contextlib
import os
import pathlib
import signal
import sys

from examples import demo
from loader.catalogs.glance import GlanceRepository
from tests import prerequisites, processes
from tests.functional import databases, keystone
from tests.functional.glance import service

_OPTIONS = """\
[package_loader]
catalogs = glance

[murano_auth]
{middleware}
www_authenticate_uri = {keystone}"""


class GlanceServer:
    """Keystone and Glance as a catalogue."""

    def __init__(self, work: pathlib.Path) -> None:
        self._work = work
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> demo.Catalogue:
        programs = prerequisites.GLANCE
        if not programs.is_dir():
            raise demo.DemoError(f"Glance is not in {programs}: run 'make glance'")
        for name in ("keystone", "glance"):
            (self._work / name).mkdir()
        port = processes.free_port()
        # Glance asks Keystone nothing while it starts, so that both can start at once.
        settings = keystone.Keystone(keystone.url_at(port))
        with concurrent.futures.ThreadPoolExecutor() as pool:
            enter = self._stack.enter_context
            keystone_starts = pool.submit(
                enter, keystone.running(self._work / "keystone", programs, port)
            )
            glance_starts = pool.submit(
                enter, service.running(self._work / "glance", databases.sqlite_with_log, settings)
            )
        identity, glance = keystone_starts.result(), glance_starts.result()
        identity.add_service("glance", "image", glance.url)
        identity.add_project(demo.PROJECT)
        administrator, user = identity.session(), identity.session(demo.PROJECT)
        return demo.Catalogue(
            title="Glance",
            place=f"Keystone listens on {identity.url}, and Glance on {glance.url}.",
            repository=GlanceRepository(administrator),
            options=_OPTIONS.format(middleware=identity.middleware, keystone=identity.url),
            user={
                "token": str(user.get_token()),
                "project_id": str(user.get_project_id()),
                "user_id": str(user.get_user_id()),
            },
        )

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def stop(self) -> None:
        """Kill the services with all their processes, each of which leads a group."""
        for thread in pathlib.Path("/proc/self/task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                with contextlib.suppress(ProcessLookupError):
                    is_leader = os.getpgid(child) == child
                    (os.killpg if is_leader else os.kill)(child, signal.SIGKILL)


def main() -> int:
    """Run the demo with Glance."""
    return demo.run(GlanceServer, __doc__.splitlines()[0])


if __name__ == "__main__":
    sys.exit(main())
