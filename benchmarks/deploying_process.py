# SPDX-License-Identifier: Apache-2.0

"""Murano's engine, which deploys an application again and again, without the message queue.

Each line of the input is a method of ``_Deployments`` with its arguments, which are numbers; its
result is a line of JSON.
With this project's loader, the process is prepared as by ``murano-glare-engine``. Murano's own
engine only gets the function ``format``, which its core library needs and YAQL 3 does not have.
"""

import collections
import gc
import json
import logging
import os
import pathlib
import re
import signal
import statistics
import sys
import time
from types import FrameType
from typing import Any

import eventlet

# First: it makes the standard library cooperative, as in the engine's service.
from murano.cmd import engine as command  # noqa: F401 # isort: split
from murano.common import config as murano_config
from murano.common import engine as murano_engine

from benchmarks import application
from loader import config
from loader.catalogs import options
from loader.engine import patches, shutdown, watchdog
from loader.engine.patches import yaql_limits
from tests import processes

_OURS = "ours"
_OWNERS = {"loader": _OURS, "glare_murano": _OURS, "murano": "the engine"}
# Seconds of processor time between two samples.
_INTERVAL = 0.001


class _Deployments:
    """Deployments by a user, for whom the first one has made a trust."""

    def __init__(self, token: str, owner: dict[str, str]) -> None:
        self._token = token
        self._owner = owner
        self._system_data: dict[str, Any] = {}
        self._system_data["TrustId"] = self.deploy()["SystemData"].get("TrustId")

    def deploy(self) -> Any:
        """Deploy the application in a new environment, and return the environment's model."""
        model = application.model(self._system_data, self._owner)
        answer = self._execute("bench", model)
        assert not answer["action"]["isException"], answer["action"]
        assert len(answer["model"]["SystemData"]["Packages"]) >= application.SIZE
        return answer["model"]

    def _execute(self, name: str, model: dict[str, Any]) -> Any:
        task = {
            "id": name,
            "action": {"object_id": "environment", "method": "deploy", "args": {}},
            "model": model,
            "token": self._token,
            **self._owner,
        }
        return murano_engine.TaskExecutor(task).execute()

    def time(self) -> float:
        """Return the wall-clock time of a deployment, in seconds."""
        gc.collect()
        start = time.perf_counter()
        self.deploy()
        return time.perf_counter() - start

    def time_at_once(self, number: int) -> float:
        """Return the wall-clock time of some deployments at once, in seconds."""
        gc.collect()
        start = time.perf_counter()
        pool = eventlet.GreenPool(number)
        for deployment in [pool.spawn(self.deploy) for _ in range(number)]:
            deployment.wait()
        return time.perf_counter() - start

    def time_beside(self, number: int) -> float:
        """Run a hostile package, and return the median time of deployments beside it, in seconds.

        :param number: the place of the package in ``application.attacks()``.
        """
        # The hostile package fails, which would be logged with its whole stack.
        logging.disable(logging.CRITICAL)
        model = application.hostile_model(number, self._system_data, self._owner)
        hostile = eventlet.spawn(self._execute, "hostile", model)
        times = []
        while not times or not hostile.dead:
            times.append(self.time())
        hostile.wait()
        return statistics.median(times)

    def private_memory(self) -> float:
        """Return the memory that the waiting cell does not share, in MiB."""
        # The supervisor of the former cell may still be ending.
        processes.wait_until(lambda: len(_last_descendants()) == 1, "the next cell alone", 10)
        (cell,) = _last_descendants()
        text = pathlib.Path(f"/proc/{cell}/smaps_rollup").read_text()
        found = re.findall(r"^Private_\w+: +(\d+) kB$", text, re.MULTILINE)
        return sum(map(int, found)) / 1024

    def expire(self) -> None:
        """Use a token that Keystone refuses from now on."""
        self._token = "expired"

    def profile(self) -> dict[str, float]:
        """Return the processor time of a deployment by owner, in seconds."""
        sampler = _Sampler()
        with sampler:
            self.deploy()
        return sampler.seconds


def _last_descendants() -> list[int]:
    """Return the ids of the descendants of this process that have no children."""
    found = processes.descendants(os.getpid())
    return [pid for pid in found if not processes.descendants(pid)]


class _Sampler:
    """Samples of the stack, each of which counts the processor time since the last one.

    The time of a library belongs to the module of ours or of Murano's that has called it,
    directly or through other libraries: the nearest one on the stack.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = collections.defaultdict(float)

    def __enter__(self) -> None:
        # The watchdog of the engine has the signal otherwise.
        self._former = signal.signal(signal.SIGPROF, self._sample)
        self._last = time.process_time()
        self._timer = signal.setitimer(signal.ITIMER_PROF, _INTERVAL, _INTERVAL)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, *self._timer)
        signal.signal(signal.SIGPROF, self._former)

    def _sample(self, number: int, frame: FrameType | None) -> None:
        now = time.process_time()
        self.seconds[_owner(frame)] += now - self._last
        self._last = now


def _owner(frame: FrameType | None) -> str:
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package in _OWNERS:
            return _OWNERS[package]
        frame = frame.f_back
    return "neither"


def main() -> None:
    """Deploy until the input ends."""
    configuration, token, project_id, user_id = sys.argv[1:]
    murano_config.parse_args(["--config-file", configuration])
    options.register(murano_config.CONF, config.SERVICE_OPTIONS)
    if murano_config.CONF.engine.package_loader == config.CATALOGS:
        patches.install()
        shutdown.freeze_startup()
        limits = murano_config.CONF.engine
        watchdog.Watchdog(limits.blocking_seconds, limits.max_task_memory).start()
    else:
        yaql_limits.provide_format()
    deployments = _Deployments(token, {"project_id": project_id, "user_id": user_id})
    print("ready", flush=True)
    for line in sys.stdin:
        method, *arguments = line.split()
        print(json.dumps(getattr(deployments, method)(*map(int, arguments))), flush=True)


if __name__ == "__main__":
    main()
