# SPDX-License-Identifier: Apache-2.0

"""The deployment of an application of 20 packages by the engine, with a warm cache.

Keystone, Glare and each engine are processes of their own. Most of a deployment is the
engine's own work, so its share counts processor time; the comparison with Murano's own
loader counts wall-clock time, since ours waits for Keystone and Glare.
"""

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks import application, services
from benchmarks.measure import Figure, scratch
from loader import config
from tests.functional import keystone, proxy
from tests.functional.client import Client

_ROUNDS = 15
_PROFILES = 5
_ALONE = 10
# The time limit of deployments beside hostile ones, in seconds.
_SECONDS = 5
# The goal for the memory that only a waiting cell has, in MiB.
_OWN_MEMORY = 10

_CONF = """\
[DEFAULT]
transport_url = fake://
use_stderr = false

[engine]
package_loader = {loader}
task_cells = {cells}
task_seconds = {seconds}
packages_cache = {directory}/cache-{loader}
load_packages_from = {folder}

[murano_auth]
{middleware}
www_authenticate_uri = {keystone}
"""


class Engine:
    """An engine in a process of its own, see ``deploying_process``."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input = process.stdin
        self._output = process.stdout
        assert self._output.readline() == "ready\n"

    def run(self, command: str) -> Any:
        """Run a command, and return the result."""
        self.start(command)
        return self.result()

    def start(self, command: str) -> None:
        """Start to run a command."""
        print(command, file=self._input, flush=True)

    def result(self) -> Any:
        """Wait for the result of a command."""
        return json.loads(self._output.readline())


def deploying() -> Iterator[Figure]:
    """Compare a deployment with packages from Glare with Murano's own from directories."""
    directory = scratch()
    application.write(directory / "packages")
    with contextlib.ExitStack() as stack:
        identity, watching = stack.enter_context(published(directory))
        with engine(directory, identity, environment=watched(watching), cells=True) as counted:
            requests = requests_of(watching, counted)
        ours, theirs = (
            stack.enter_context(engine(directory, identity, loader))
            for loader in (config.CATALOGS, config.MURANO)
        )
        pairs = [(ours.run("time"), theirs.run("time")) for _ in range(_ROUNDS)]
        profiles = [ours.run("profile") for _ in range(_PROFILES)]
    yield Figure("requests to Keystone and Glare, warm deployment", len(requests), "", 3)
    more = statistics.median(a - b for a, b in pairs)
    yield Figure("deployment of 20, warm - with Murano's folder loader", more * 1000, "ms", -100)
    shares = [profile["ours"] / sum(profile.values()) * 100 for profile in profiles]
    yield Figure("deployment of 20, warm, in our code", statistics.median(shares), "%", 15)


def cells() -> Iterator[Figure]:
    """Compare deployments in cells with those in the engine's process.

    Cells use all processors of the host. An engine without cells uses one for each worker.
    """
    directory = scratch()
    with contextlib.ExitStack() as stack:
        identity, _ = stack.enter_context(published(directory))
        in_cells = stack.enter_context(engine(directory, identity, cells=True))
        one, other = (stack.enter_context(engine(directory, identity)) for _ in range(2))
        single = [(in_cells.run("time"), one.run("time")) for _ in range(_ROUNDS)]
        at_once = [
            (in_cells.run("time_at_once 8"), one.run("time_at_once 8"), _of_both(one, other))
            for _ in range(_PROFILES)
        ]
    longer = statistics.median(a / b for a, b in single)
    yield Figure("deployment of 20, warm, in a cell / without cells", longer, "", 1.1)
    of_one = statistics.median(a / b for a, b, _ in at_once)
    yield Figure("8 deployments, cells / one worker without", of_one, "", 1 / 1.6)
    of_two = statistics.median(a / b for a, _, b in at_once)
    yield Figure("8 deployments, cells / two workers without", of_two, "", 1)


def beside_attacks() -> Iterator[Figure]:
    """Compare a deployment alone with deployments beside hostile ones of the same engine.

    While a hostile package runs, the application is deployed again and again. Each hostile package
    is stopped at the time limit, or earlier.
    """
    directory = scratch()
    with contextlib.ExitStack() as stack:
        identity, _ = stack.enter_context(published(directory))
        glare = identity.session().get_endpoint(service_type="artifact")
        application.publish_attacks(Client(glare, str(identity.session().get_token())))
        in_cells = stack.enter_context(engine(directory, identity, cells=True, seconds=_SECONDS))
        beside = {
            attack.name: _beside(in_cells, number)
            for number, attack in enumerate(application.attacks())
        }
        memory = in_cells.run("private_memory")
    worst = max(beside, key=lambda name: beside[name])
    yield Figure(f"deployment beside '{worst}' / alone", beside[worst], "", 1.2)
    yield Figure("memory of a cell that waits for its task", memory, "MiB", _OWN_MEMORY)


def _beside(engine: Engine, number: int) -> float:
    """Return the time of a deployment beside a hostile package, relative to the time alone.

    The deployments alone are measured before and after, since the speed of a host changes.
    """
    alone = [engine.run("time") for _ in range(_ALONE // 2)]
    beside: float = engine.run(f"time_beside {number}")
    alone += [engine.run("time") for _ in range(_ALONE // 2)]
    return beside / statistics.median(alone)


def _of_both(*engines: Engine) -> float:
    """Return the time of eight deployments that two engines share, in seconds."""
    for each in engines:
        each.start("time_at_once 4")
    return float(max(each.result() for each in engines))


@contextlib.contextmanager
def published(directory: pathlib.Path) -> Iterator[tuple[keystone.Keystone, proxy.Proxy]]:
    """Run Keystone, Glare with the packages, and a proxy that records Glare's own requests."""
    with (
        proxy.serving() as watching,
        keystone.running(directory) as identity,
        services.glare(identity, watched(watching)) as glare,
    ):
        identity.add_service("glare", "artifact", glare.url)
        application.publish(Client(glare.url, str(identity.session().get_token())))
        yield identity, watching


def requests_of(watching: proxy.Proxy, engine: Engine) -> list[str]:
    """Return all requests of Glare and of a watched engine for a deployment."""
    watching.requests.clear()
    engine.run("time")
    return [*watching.requests]


@contextlib.contextmanager
def engine(
    directory: pathlib.Path,
    identity: keystone.Keystone,
    loader: str = config.CATALOGS,
    environment: Mapping[str, str] | None = None,
    cells: bool = False,
    seconds: int = 3600,
) -> Iterator[Engine]:
    """Run an engine, which has deployed once.

    :param loader: the option ``package_loader``: this project's loader takes packages from Glare,
        and Murano's from directories.
    :param environment: is added to its environment.
    :param cells: whether deployments run in cells.
    :param seconds: the time limit of a deployment.
    """
    configuration = directory / f"{loader}-{cells}-{seconds}.conf"
    configuration.write_text(
        _CONF.format(
            directory=directory,
            loader=loader,
            cells=cells,
            seconds=seconds,
            folder=directory / "packages" if loader == config.MURANO else "",
            keystone=identity.url,
            middleware=identity.middleware,
        )
    )
    session = identity.session()
    user = session.get_token(), session.get_project_id(), session.get_user_id()
    command = (sys.executable, "-W", "ignore", "-m", "benchmarks.deploying_process")
    with subprocess.Popen(
        [*command, str(configuration), *map(str, user)],
        env={**os.environ, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        # Leaving the context closes the input, which ends the process.
        yield Engine(process)


def watched(watching: proxy.Proxy) -> dict[str, str]:
    """Return the environment of a process whose requests a proxy records."""
    return {"http_proxy": watching.url}


BENCHMARKS = (deploying, cells, beside_attacks)
