# SPDX-License-Identifier: Apache-2.0

"""What loading a closure of 30 packages takes, and an archive of 500 MB.

It is the time on the clock that counts here: most of it is waiting for
services and the disk, and to wait less is what a loader is for.
"""

import concurrent.futures
import contextlib
import io
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import uuid
import zipfile
from collections.abc import Iterator
from typing import IO

import requests

import loader
from benchmarks import closure, server, services
from benchmarks.measure import Figure, ratio, scratch, wall
from benchmarks.package import write_big
from glare_murano import fields
from loader.catalogs.glare import GlareCatalog
from loader.fetcher import DEFAULT_WORKERS
from tests.functional.client import Client

_PROJECT = "demo"
_PROCESSES = 16
_ROUNDS = 15
_ADMINISTRATOR = "admin:admin:admin"
_PYTHON = (sys.executable, "-W", "ignore")


def cold() -> Iterator[Figure]:
    """The closure into an empty cache, against a script that only downloads and unzips."""
    with _published() as (client, urls):

        def ours() -> None:
            assert _load(client, scratch()).downloads == closure.SIZE

        def script() -> None:
            _download(client, urls, scratch())

        # What was written before is not this one's to wait for.
        value = ratio(ours, script, before=os.sync, clock=wall)
    yield Figure("closure of 30, cold / downloading and unzipping", value, "times", 1.5)


@contextlib.contextmanager
def _published() -> Iterator[tuple[Client, list[str]]]:
    """A client of a Glare that has the packages, and the URLs of their archives."""
    with server.running(fields.TYPE_NAME) as running:
        urls = closure.publish(Client(running.url, _ADMINISTRATOR))
        yield running.client(_PROJECT), urls


def _load(client: Client, folder: pathlib.Path) -> loader.Counters:
    """Load the application and all that it requires, and tell what it has cost."""
    catalog = GlareCatalog(client.session(), endpoint=client.url, project_id=_PROJECT)
    with loader.PackageLoader([catalog], loader.Cache(folder)) as package_loader:
        closure.load(package_loader)
        return package_loader.counters


def _download(client: Client, urls: list[str], folder: pathlib.Path) -> None:
    session = requests.Session()
    session.headers["X-Auth-Token"] = client.token

    def unzip(number: int) -> None:
        content = session.get(urls[number], timeout=60).content
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            archive.extractall(folder / str(number))

    with concurrent.futures.ThreadPoolExecutor(DEFAULT_WORKERS) as pool:
        list(pool.map(unzip, range(len(urls))))


def engine() -> Iterator[Figure]:
    """The closure in Murano's engine, with empty and full caches, against Murano's own loader."""
    with services.running() as running:
        command = ("-m", "benchmarks.engine", running.configuration, running.token)
        found = json.loads(_output(*command, running.project_id, scratch()))
    yield Figure("closure of 30, cold / Murano's own loader", found["cold"], "times", 0.33)
    yield Figure("closure of 30, warm / Murano's own loader", found["warm"], "times", 0.1)


def together() -> Iterator[Figure]:
    """16 processes on one empty cache, against as many in turn, each with a cache of its own.

    An engine's process loads packages for many deployments: neither its start
    nor its end counts.
    """
    with _published() as (client, _), contextlib.ExitStack() as stack:
        folder = scratch()

        def started(cache: object) -> _Process:
            return stack.enter_context(_started(client, folder, cache))

        shared = [started("shared") for _ in range(_PROCESSES)]
        alone = [started(number) for number in range(_PROCESSES)]
        os.sync()
        start = wall()
        for process in shared:
            process.load()
        downloads = sum(process.downloads() for process in shared)
        at_once = wall() - start

        os.sync()
        start = wall()
        for process in alone:
            process.load()
            assert process.downloads() == closure.SIZE
        in_turn = wall() - start
    yield Figure("downloads of 30 archives by 16 processes", downloads, "", closure.SIZE)
    yield Figure("16 processes, cold, at once / in turn", at_once / in_turn, "times", 0.25)


@contextlib.contextmanager
def _started(client: Client, folder: pathlib.Path, cache: object) -> "Iterator[_Process]":
    conf = folder / f"{uuid.uuid4().hex}.conf"
    conf.write_text(
        _LOADER_CONF.format(folder=folder, cache=cache, url=client.url, token=client.token)
    )
    command = [*_PYTHON, "-m", "benchmarks.start", str(conf)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield _Process(process.stdin, process.stdout)


class _Process:
    """A process that loads the application when it is told to."""

    def __init__(self, orders: IO[str], answers: IO[str]) -> None:
        self._orders = orders
        self._answers = answers

    def load(self) -> None:
        print("load", file=self._orders, flush=True)

    def downloads(self) -> int:
        """How many archives it has downloaded, once it has loaded all."""
        return int(self._answers.readline())


_LOADER_CONF = """\
[engine]
packages_cache = {folder}/{cache}

[glare]
url = {url}
auth_type = admin_token
endpoint = {url}
token = {token}
"""


def fetching() -> Iterator[Figure]:
    """Memory above idle while an archive of 500 MB is fetched into the cache."""
    with (
        server.running(fields.TYPE_NAME, settings=_ROOMY_CONF) as running,
        tempfile.TemporaryDirectory() as name,
    ):
        client = running.client(_PROJECT)
        archive = pathlib.Path(name, "big.zip")
        write_big(archive)
        closure.publish(Client(running.url, _ADMINISTRATOR))
        with archive.open("rb") as stream:
            client.publish("org.big", "0.0.0", stream)
        command = ("-m", "benchmarks.fetch", client.url, client.token, _PROJECT, "org.big")
        value = float(_output(*command, pathlib.Path(name, "cache")))
    yield Figure("memory above idle, an archive of 500 MB fetched", value, "MB", 32)


_ROOMY_CONF = f"""\
[artifact_type:{fields.TYPE_NAME}]
max_archive_size = {1024**3}
max_unpacked_size = {1024**3}
"""


def importing() -> Iterator[Figure]:
    """``import loader``, against what it cannot do without."""
    value = statistics.median(
        _importing("loader") / _importing("keystoneauth1.session, semantic_version")
        for _ in range(_ROUNDS)
    )
    yield Figure("import loader / keystoneauth1's session, semantic_version", value, "times", 1.5)


def _importing(names: str) -> float:
    code = f"import time; start = time.process_time(); import {names}"
    return float(_output("-c", f"{code}; print(time.process_time() - start)"))


def _output(*arguments: object) -> str:
    """What a Python process prints."""
    command = [*_PYTHON, *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


BENCHMARKS = (cold, engine, together, fetching, importing)
