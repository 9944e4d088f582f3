# SPDX-License-Identifier: Apache-2.0

"""The whole of glare-murano in one run: publish, deploy, upgrade.

It starts the embedded Glare, publishes Murano's core library and the example
packages there, and deploys environments in the real Murano engine, which
loads every class from Glare. The engine runs in this process as
``murano-glare-engine`` runs it for each task, without the message queue.
"""

import argparse
import copy
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint
from murano.common import config as murano_config
from murano.common import engine as murano_engine
from oslo_log import log as logging

from examples import publish
from loader import Counters
from loader.engine import adapter, patches

PACKAGES = pathlib.Path(__file__).parent / "packages"
SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
LIBRARY = "org.example.db"
NEWER = PACKAGES / LIBRARY / "1.3.0"

# The embedded Glare takes a token at its word: user, project, roles. The one
# who publishes is an administrator, since the packages are for every project.
PUBLISHER_TOKEN = "admin:admin:admin"

# Who deploys: a project that is not the one that publishes.
PROJECT = "demo"
USER_TOKEN = f"alice:{PROJECT}:member"

MURANO_CONF = """\
[DEFAULT]
log_file = {work}/murano-engine.log
transport_url = fake://
use_stderr = false

[engine]
packages_service = glare
packages_cache = {work}/packages-cache
use_trusts = false

[glare]
url = {url}
"""

APPLICATIONS = {
    "wiki": "org.example.wiki.Wiki",
    "shop": "org.example.shop.Shop",
}


class DemoError(Exception):
    """Something did not go as it must."""


@dataclasses.dataclass
class Environment:
    """An environment, as Murano's API would keep it between two tasks."""

    name: str
    model: dict[str, Any]

    @classmethod
    def new(cls, name: str) -> "Environment":
        """An environment with one of each application, not deployed yet."""
        applications = [
            {
                "?": {"id": f"{name}-{key}", "type": class_name, "classVersion": "1"},
                "name": key.title(),
            }
            for key, class_name in APPLICATIONS.items()
        ]
        header = {"id": name, "type": "io.murano.Environment"}
        return cls(
            name,
            {
                "Objects": {"?": header, "name": name, "applications": applications},
                "SystemData": {},
                "project_id": PROJECT,
                "user_id": "alice",
            },
        )

    def run(self, object_id: str, method: str) -> Any:
        """Let the engine run a method, and keep the model that it returns."""
        task = {
            "id": self.name,
            "action": {"object_id": object_id, "method": method, "args": {}},
            "model": copy.deepcopy(self.model),
            "token": USER_TOKEN,
            "project_id": PROJECT,
            "user_id": "alice",
        }
        answer = murano_engine.TaskExecutor(task).execute()
        if answer["action"]["isException"]:
            raise DemoError(f"{object_id}.{method} failed: {answer['action']['result']['message']}")
        self.model = answer["model"]
        return answer["action"]["result"]

    def deploy(self) -> None:
        """Deploy every application."""
        self.run(self.name, "deploy")

    def library_versions(self) -> dict[str, str]:
        """Ask each application's action which version of the library it uses."""
        return {
            key: self.run(f"{self.name}-{key}", "status")["uses"][LIBRARY] for key in APPLICATIONS
        }

    @property
    def pins(self) -> Mapping[str, list[str]]:
        """The versions that the environment is pinned to."""
        pins: Mapping[str, list[str]] = self.model["SystemData"]["Packages"]
        return pins


@dataclasses.dataclass
class Step:
    """One row of the closing table."""

    name: str
    packages: str
    counters: Counters
    seconds: float

    def row(self) -> list[str]:
        """The cells of the row."""
        return [
            self.name,
            self.packages,
            str(self.counters.requests),
            f"{self.counters.bytes:,}",
            f"{self.seconds:.2f}",
        ]


class Measured:
    """Runs the steps, and remembers what each has cost."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def run(self, name: str, action: Callable[[], str]) -> None:
        """Run a step; the action returns what to say of its packages."""
        before = dataclasses.replace(adapter.totals)
        start = time.monotonic()
        packages = action()
        cost = {
            field.name: getattr(adapter.totals, field.name) - getattr(before, field.name)
            for field in dataclasses.fields(Counters)
        }
        self.steps.append(Step(name, packages, Counters(**cost), time.monotonic() - start))

    def print_table(self) -> None:
        """Print the rows, and their sums."""
        total = Counters()
        for step in self.steps:
            total.add(step.counters)
        everything = Step("all", "", total, sum(step.seconds for step in self.steps))
        print_table(
            ["step", "packages and versions", "loader's requests", "bytes fetched", "seconds"],
            [step.row() for step in [*self.steps, everything]],
        )


def print_table(header: list[str], rows: list[list[str]]) -> None:
    """Print a table whose columns are as wide as they need to be."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, ["-" * width for width in widths], *rows]:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


class EmbeddedGlare:
    """``glare-murano-server`` in a process of its own; enter it for its URL."""

    def __init__(self, work: pathlib.Path) -> None:
        self._command = [sys.executable, "-W", "ignore", "-m", "glare_murano.glare.server"]
        self._command += ["--port", "0", "--state-dir", str(work / "glare")]
        self._server: subprocess.Popen[str] | None = None

    def __enter__(self) -> str:
        self._server = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        line = self._server.stdout.readline() if self._server.stdout else ""
        found = re.search(r"http://\S+", line)
        if found is None:
            self.stop()
            raise DemoError("the embedded Glare did not start")
        return found[0]

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the server, if it was started."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait(timeout=30)


def configure_engine(work: pathlib.Path, url: str) -> None:
    """Configure the engine as an operator does, by a file."""
    file = work / "murano.conf"
    file.write_text(MURANO_CONF.format(work=work, url=url))
    murano_config.parse_args(args=["--config-file", str(file)])
    logging.setup(murano_config.CONF, "murano")
    patches.install()


def publish_all(glare: Any, folders: Iterable[pathlib.Path]) -> str:
    """Publish folders for every project."""
    artifacts = publish.publish(glare, folders, public=True)
    for artifact in artifacts:
        print(f"    {artifact['name']} {artifact['version']}")
    return f"{len(artifacts)} published"


def main() -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("core_library", type=pathlib.Path, help="the folder 'meta' of Murano")
    arguments = parser.parse_args()
    start = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="demo-") as folder:
            work = pathlib.Path(folder)
            glare = EmbeddedGlare(work)
            end_on_signals(glare, work)
            with glare as url:
                demonstrate(arguments.core_library, work, url)
    except (DemoError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    print(f"\nThe demo took {time.monotonic() - start:.1f} seconds.")
    return 0


def end_on_signals(glare: EmbeddedGlare, work: pathlib.Path) -> None:
    """Clean up and end at once when interrupted.

    No exception is raised for it: the engine collects garbage all the time,
    and Python drops what is raised in a finalizer.
    """

    def end(number: int, _: object) -> None:
        for other in SIGNALS:
            signal.signal(other, signal.SIG_IGN)
        glare.stop()
        shutil.rmtree(work, ignore_errors=True)
        os._exit(128 + number)

    for number in SIGNALS:
        signal.signal(number, end)


def demonstrate(core_library: pathlib.Path, work: pathlib.Path, url: str) -> None:
    """Publish, deploy, publish a newer version, deploy again."""
    print(f"The embedded Glare listens on {url}.")
    configure_engine(work, url)
    auth = token_endpoint.Token(url, PUBLISHER_TOKEN)
    glare = publish.client(ksa_session.Session(auth=auth), url)
    measured = Measured()
    first, second = Environment.new("first"), Environment.new("second")

    print("\nPublishing the core library and the examples:")
    core = sorted(core_library.glob("io.murano*"))
    if not core:
        raise DemoError(f"there is no core library in {core_library}; 'make demo' fetches it")
    folders = [folder for folder in [*core, *sorted(PACKAGES.glob("*/*/"))] if folder != NEWER]
    measured.run("publish", lambda: publish_all(glare, folders))

    print("\nDeploying the environment 'first', a wiki and a shop, every class from Glare.")
    measured.run("deploy first", lambda: _deploy(first))
    before = first.library_versions()
    status = first.run("first-wiki", "status")
    print(f"    the wiki's action 'status' answers {json.dumps(status)}")
    print(f"    side by side: the wiki uses {LIBRARY} {before['wiki']}, the shop {before['shop']}")

    print(f"\nPublishing a newer version of the library, {LIBRARY} {NEWER.name}:")
    measured.run("publish newer", lambda: publish_all(glare, [NEWER]))

    print("\nDeploying 'first' once more, and a new environment 'second'.")
    measured.run("deploy first again", lambda: _deploy(first))
    measured.run("deploy second", lambda: _deploy(second))
    after, fresh = first.library_versions(), second.library_versions()
    print(f"    first keeps its pins: the wiki uses {LIBRARY} {after['wiki']} as before")
    print(f"    second takes the new version: the wiki uses {LIBRARY} {fresh['wiki']}")
    _check(before, after, fresh)

    print()
    measured.print_table()


def _deploy(environment: Environment) -> str:
    environment.deploy()
    pins = sorted(environment.pins.items())
    print(f"    {environment.name} is pinned to:")
    for fqn, versions in pins:
        print(f"        {fqn} {' and '.join(versions)}")
    return ", ".join(f"{fqn.rpartition('.')[2]} {' and '.join(v)}" for fqn, v in pins)


def _check(before: Mapping[str, str], after: Mapping[str, str], fresh: Mapping[str, str]) -> None:
    if after != before:
        raise DemoError(f"the first environment lost its pins: {before} became {after}")
    if fresh["wiki"] != NEWER.name:
        raise DemoError(f"the second environment did not take {NEWER.name}: {fresh}")
    if before["wiki"] == before["shop"]:
        raise DemoError(f"there are no two versions side by side: {before}")


if __name__ == "__main__":
    sys.exit(main())
