# SPDX-License-Identifier: Apache-2.0

"""A tour of glare-murano: publish, deploy, upgrade.

The demo starts the development server, and publishes Murano's core library and
the example packages there. Then it deploys environments in the Murano engine,
which loads every class from Glare. The engine runs in this process as
``murano-glare-engine`` runs it for each task, without the message queue.
``examples.demo_glance`` is the same tour with packages in Glance.
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
from typing import Any, Protocol

from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint
from murano.common import config as murano_config
from murano.common import engine as murano_engine
from oslo_log import log as logging

from glare_murano.package import GlareMuranoError
from loader import Counters
from loader.authoring import local_packages
from loader.catalogs.glare import GlareRepository
from loader.catalogs.repository import Repository
from loader.engine import adapter, patches
from loader.publishing import publication
from loader.publishing.target import Target
from loader.site import rendering, sources

# The directory "build" is for what "make clean" removes.
PAGES = pathlib.Path(__file__).parents[1] / "build" / "catalogue"
PACKAGES = pathlib.Path(__file__).parent / "packages"
SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
LIBRARY = "org.example.db"
NEWER = PACKAGES / LIBRARY / "1.3.0"

# The development server trusts any token of the form user:project:roles. Packages
# for every project need an administrator.
PUBLISHER_TOKEN = "admin:admin:admin"

# A project other than the publisher's deploys.
PROJECT = "demo"
USER_TOKEN = f"alice:{PROJECT}:member"
USER = {"token": USER_TOKEN, "project_id": PROJECT, "user_id": "alice"}

MURANO_CONF = """\
[DEFAULT]
log_file = {work}/murano-engine.log
transport_url = fake://
use_stderr = false

[engine]
packages_cache = {work}/packages-cache
use_trusts = false

{options}
"""

APPLICATIONS = {
    "wiki": "org.example.wiki.Wiki",
    "shop": "org.example.shop.Shop",
}


class DemoError(Exception):
    """A step with another result than expected."""


@dataclasses.dataclass(frozen=True)
class Catalogue:
    """A service with packages.

    :param title: its name.
    :param place: where it is, in a sentence.
    :param repository: the packages there, by an administrator's rights.
    :param options: what the engine's configuration says of it.
    :param user: who deploys: ``token``, ``project_id`` and ``user_id``.
    """

    title: str
    place: str
    repository: Repository
    options: str
    user: Mapping[str, str]


class Server(Protocol):
    """What runs a catalogue; ``with`` gives it."""

    def __enter__(self) -> Catalogue:
        """Start it."""

    def __exit__(self, *_: object) -> None:
        """Stop it."""

    def stop(self) -> None:
        """Stop it at once, from a handler of signals as well."""


@dataclasses.dataclass
class Environment:
    """An environment, as Murano's API keeps it between two tasks."""

    name: str
    model: dict[str, Any]
    user: Mapping[str, str]

    @classmethod
    def new(cls, name: str, user: Mapping[str, str] = USER) -> "Environment":
        """Return an environment of a user with each application, before its deployment."""
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
                "project_id": user["project_id"],
                "user_id": user["user_id"],
            },
            user,
        )

    def run(self, object_id: str, method: str) -> Any:
        """Run a method in the engine, keep the new model, and return the result.

        :raises DemoError: if the method fails.
        """
        task = {
            "id": self.name,
            "action": {"object_id": object_id, "method": method, "args": {}},
            "model": copy.deepcopy(self.model),
            **self.user,
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
        """Return the version of the library for each application, by its action."""
        return {
            key: self.run(f"{self.name}-{key}", "status")["uses"][LIBRARY] for key in APPLICATIONS
        }

    @property
    def pins(self) -> Mapping[str, list[str]]:
        """The pinned versions by package."""
        pins: Mapping[str, list[str]] = self.model["SystemData"]["Packages"]
        return pins


@dataclasses.dataclass
class Step:
    """A row of the table at the end."""

    name: str
    packages: str
    counters: Counters
    seconds: float

    def row(self) -> list[str]:
        """Return the cells of the row."""
        return [
            self.name,
            self.packages,
            str(self.counters.requests),
            f"{self.counters.bytes:,}",
            f"{self.seconds:.2f}",
        ]


class Steps:
    """The steps so far, with the cost of each."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def run(self, name: str, action: Callable[[], str]) -> None:
        """Run a step.

        :param action: returns the text of the column of packages.
        """
        before = dataclasses.replace(adapter.totals)
        start = time.monotonic()
        packages = action()
        cost = {
            field.name: getattr(adapter.totals, field.name) - getattr(before, field.name)
            for field in dataclasses.fields(Counters)
        }
        self.steps.append(Step(name, packages, Counters(**cost), time.monotonic() - start))

    def print_table(self) -> None:
        """Print the steps and their sum."""
        total = Counters()
        for step in self.steps:
            total.add(step.counters)
        all_steps = Step("all", "", total, sum(step.seconds for step in self.steps))
        print_table(
            ["step", "packages and versions", "loader's requests", "bytes fetched", "seconds"],
            [step.row() for step in [*self.steps, all_steps]],
        )


def print_table(header: list[str], rows: list[list[str]]) -> None:
    """Print a table with columns as wide as their cells."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, ["-" * width for width in widths], *rows]:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


class DevelopmentServer:
    """``glare-murano-server`` in a process of its own; ``with`` gives its URL."""

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
            raise DemoError("the development server did not start")
        return found[0]

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the server, if it runs."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait(timeout=30)


class GlareServer:
    """The development server as a catalogue, which trusts each token."""

    def __init__(self, work: pathlib.Path) -> None:
        self._server = DevelopmentServer(work)

    def __enter__(self) -> Catalogue:
        url = self._server.__enter__()
        session = ksa_session.Session(auth=token_endpoint.Token(url, PUBLISHER_TOKEN))
        return Catalogue(
            title="Glare",
            place=f"The development server listens on {url}.",
            repository=GlareRepository(session, endpoint=url),
            options=glare_options(url),
            user=USER,
        )

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop it, if it runs."""
        self._server.stop()


def glare_options(url: str) -> str:
    """Return the engine's options for a Glare without Keystone."""
    return f"[glare]\nurl = {url}"


def configure_engine(work: pathlib.Path, options: str) -> None:
    """Configure the engine by a file, as an operator does."""
    file = work / "murano.conf"
    file.write_text(MURANO_CONF.format(work=work, options=options))
    murano_config.parse_args(args=["--config-file", str(file)])
    logging.setup(murano_config.CONF, "murano")
    patches.install()


def publish_all(
    repository: Repository, directories: Iterable[pathlib.Path], work: pathlib.Path
) -> str:
    """Publish directories for every project, as ``openstack murano package publish`` does."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        packages = local_packages.read_all(directories, pathlib.Path(folder))
        steps = publication.plan(Target(repository), packages, "public")
        # In turn: SQLite, which has both services' databases here, takes one writer at a time.
        uploaded = [done for step in steps for done in publication.upload(repository, [step])]
        publication.publish(repository, uploaded, "public")
    for package in packages:
        print(f"    {package}")
    return f"{len(packages)} published"


def main() -> int:
    """Run the demo with Glare."""
    return run(GlareServer, __doc__.splitlines()[0])


def run(server: Callable[[pathlib.Path], Server], description: str) -> int:
    """Run the demo with a catalogue.

    :param server: makes it, with its files in a directory.
    :returns: the exit code.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("core_library", type=pathlib.Path, help="Murano's directory 'meta'")
    parser.add_argument(
        "--pages",
        type=pathlib.Path,
        default=PAGES,
        help="directory for pages about the packages (default: %(default)s)",
    )
    arguments = parser.parse_args()
    start = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="demo-") as directory:
            work = pathlib.Path(directory)
            # So an interruption also removes the temporary files of the engine.
            tempfile.tempdir = directory
            made = server(work)
            end_on_signals(made, work)
            with made as catalogue:
                demonstrate(arguments.core_library, work, catalogue)
                page = write_pages(arguments.pages, catalogue)
    except (DemoError, GlareMuranoError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    print(f"\nThe demo took {time.monotonic() - start:.1f} seconds.")
    print(f"Open the pages about the packages in a browser:\n    {page.as_uri()}")
    return 0


def end_on_signals(server: Server, work: pathlib.Path) -> None:
    """Clean up and exit on a signal, without an exception.

    The engine collects garbage often, and Python drops exceptions in a finalizer.
    """

    def end(number: int, _: object) -> None:
        for other in SIGNALS:
            signal.signal(other, signal.SIG_IGN)
        server.stop()
        shutil.rmtree(work, ignore_errors=True)
        os._exit(128 + number)

    for number in SIGNALS:
        signal.signal(number, end)


def demonstrate(core_library: pathlib.Path, work: pathlib.Path, catalogue: Catalogue) -> None:
    """Publish, deploy, publish a newer version, deploy again."""
    print(catalogue.place)
    configure_engine(work, catalogue.options)
    repository = catalogue.repository
    steps = Steps()
    first, second = (Environment.new(name, catalogue.user) for name in ("first", "second"))

    print("\nPublishing the core library and the examples:")
    core = sorted(core_library.glob("io.murano*"))
    if not core:
        raise DemoError(f"the core library is not in {core_library}: run 'make core-library'")
    directories = [path for path in [*core, *sorted(PACKAGES.glob("*/*/"))] if path != NEWER]
    steps.run("publish", lambda: publish_all(repository, directories, work))

    print(
        f"\nDeploying the environment 'first', a wiki and a shop, every class from "
        f"{catalogue.title}."
    )
    steps.run("deploy first", lambda: _deploy(first))
    before = first.library_versions()
    status = first.run("first-wiki", "status")
    print(f"    the wiki's action 'status' returns {json.dumps(status)}")
    print(f"    side by side: the wiki uses {LIBRARY} {before['wiki']}, the shop {before['shop']}")

    print(f"\nPublishing a newer version of the library, {LIBRARY} {NEWER.name}:")
    steps.run("publish newer", lambda: publish_all(repository, [NEWER], work))

    print("\nDeploying 'first' once more, and a new environment 'second'.")
    steps.run("deploy first again", lambda: _deploy(first))
    steps.run("deploy second", lambda: _deploy(second))
    after, fresh = first.library_versions(), second.library_versions()
    print(f"    first keeps its pins: the wiki uses {LIBRARY} {after['wiki']} as before")
    print(f"    second takes the new version: the wiki uses {LIBRARY} {fresh['wiki']}")
    _check(before, after, fresh)

    print()
    steps.print_table()


def write_pages(folder: pathlib.Path, catalogue: Catalogue) -> pathlib.Path:
    """Write pages about all packages, and return the path of the first page."""
    repository = catalogue.repository
    title = f"the packages of the demo in {catalogue.title}"
    source = sources.Service(repository, repository.project(), title)
    rendering.render(source, folder)
    return folder / rendering.FIRST_PAGE


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
        raise DemoError(f"both applications use the same version: {before}")


if __name__ == "__main__":
    sys.exit(main())
