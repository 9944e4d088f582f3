# SPDX-License-Identifier: Apache-2.0

"""The time for loading a closure of 30 packages, and the memory for 500 MB.

These figures count wall-clock time: most of it is waiting for services and the
disk, and a loader is there to wait less.
"""

import collections
import concurrent.futures
import contextlib
import functools
import io
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence

import requests

import loader
from benchmarks import closure, server, services
from benchmarks.measure import Figure, ratio, scratch, wall
from benchmarks.package import write_big
from glare_murano import fields
from loader.catalogs.glare import GlareCatalog
from loader.fetcher import DEFAULT_WORKERS
from tests.functional.client import ARCHIVES, ARTIFACTS, Client

_PROJECT = "demo"
_PROCESSES = 16
_SHARING_ROUNDS = 7
_ROUNDS = 15
_ADMINISTRATOR = "admin:admin:admin"
_PYTHON = (sys.executable, "-W", "ignore")


def cold() -> Iterator[Figure]:
    """Compare loading into an empty cache with scripts for downloading and unzipping only."""
    with _published() as (client, ids):

        def ours() -> None:
            assert _load(client, scratch()).downloads == closure.SIZE

        for script, name, goal in (
            (_download, "downloading and unzipping", 1.5),
            (_download_batch, "a batch download and unzipping", 3),
        ):
            value = ratio(
                ours,
                functools.partial(script, client, ids),
                # The next action does not wait for the writes of the last one.
                before=os.sync,
                clock=wall,
            )
            yield Figure(f"closure of 30, cold / {name}", value, "times", goal)


@contextlib.contextmanager
def _published() -> Iterator[tuple[Client, list[str]]]:
    """Run a Glare with the packages, and give a client and the artifacts' ids."""
    with server.running(fields.TYPE_NAME) as running:
        ids = closure.publish(Client(running.url, _ADMINISTRATOR))
        yield running.client(_PROJECT), ids


def _load(client: Client, cache: pathlib.Path) -> loader.Counters:
    """Load the application, and return the cost."""
    catalog = GlareCatalog(client.session(), endpoint=client.url, project_id=_PROJECT)
    with loader.PackageLoader([catalog], loader.Cache(cache)) as package_loader:
        closure.load(package_loader)
        return package_loader.counters


def _download(client: Client, ids: list[str]) -> None:
    """Download as many archives at once as the loader, and unzip each."""
    directory = scratch()
    session = requests.Session()
    session.headers["X-Auth-Token"] = client.token

    def unzip(identifier: str) -> None:
        url = f"{client.url}{ARTIFACTS}/{identifier}/{fields.ARCHIVE}"
        _unzip(session.get(url, timeout=60).content, directory / identifier)

    with concurrent.futures.ThreadPoolExecutor(DEFAULT_WORKERS) as pool:
        list(pool.map(unzip, ids))


def _download_batch(client: Client, ids: list[str]) -> pathlib.Path:
    """Download all archives by a single request, unzip each, and return the directory."""
    directory = scratch()
    response = requests.post(
        client.url + ARCHIVES,
        json={"artifacts": ids},
        headers={"X-Auth-Token": client.token},
        timeout=60,
    )
    with tarfile.open(fileobj=io.BytesIO(response.content)) as batch:
        for member in batch:
            stream = batch.extractfile(member)
            assert stream is not None
            _unzip(stream.read(), directory / member.name)
    return directory


def _unzip(content: bytes, directory: pathlib.Path) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(directory)


def engine() -> Iterator[Figure]:
    """Compare loading in Murano's engine with Murano's own loader."""
    with services.running() as running:
        command = ("-m", "benchmarks.engine_process", running.configuration, running.token)
        found = json.loads(_output(*command, running.project_id, scratch()))
    yield Figure("closure of 30, cold / Murano's own loader", found["cold"], "times", 0.27)
    yield Figure("closure of 30, warm / Murano's own loader", found["warm"], "times", 0.15)


def sharing() -> Iterator[Figure]:
    """Compare 16 processes with a shared empty cache with other ways to load.

    In each round, the same processes load in four ways: at once and in turn, with a
    shared cache and with a cache each. An engine's process loads packages for many
    deployments, so the start of the processes does not count.
    """
    times: dict[str, list[float]] = collections.defaultdict(list)
    downloads = 0
    with _published() as (client, _), contextlib.ExitStack() as stack:
        processes = [stack.enter_context(_started()) for _ in range(_PROCESSES)]
        for _ in range(_SHARING_ROUNDS):
            for way, run, shared in _WAYS:
                _prepare(processes, client, shared)
                start = wall()
                found = run(processes)
                times[way].append(wall() - start)
                if way == _SHARED_AT_ONCE:
                    downloads = max(downloads, found)
    yield Figure("downloads of 30 archives by 16 processes", downloads, "", closure.SIZE)
    for way, goal in _SHARING_GOALS.items():
        pairs = zip(times[_SHARED_AT_ONCE], times[way], strict=True)
        value = statistics.median(ours / theirs for ours, theirs in pairs)
        yield Figure(f"16 processes, cold, {_SHARED_AT_ONCE} / {way}", value, "times", goal)


class _Process:
    """A process for loading the application, see ``loading_process``."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input = process.stdin
        self._output = process.stdout

    def prepare(self, configuration: pathlib.Path) -> None:
        """Make a loader by a configuration file."""
        print(configuration, file=self._input, flush=True)
        assert self._output.readline() == "ready\n"

    def start(self) -> None:
        """Start loading."""
        print(file=self._input, flush=True)

    def downloads(self) -> int:
        """Wait until all is loaded, and return the number of archives downloaded."""
        return int(self._output.readline())


@contextlib.contextmanager
def _started() -> Iterator[_Process]:
    with subprocess.Popen(
        [*_PYTHON, "-m", "benchmarks.loading_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        # Leaving the context closes the input, which ends the process.
        yield _Process(process)


def _prepare(processes: Sequence[_Process], client: Client, shared: bool) -> None:
    """Give the processes an empty cache, shared or each its own."""
    directory = scratch()
    for number, process in enumerate(processes):
        cache = directory / ("shared" if shared else str(number))
        configuration = directory / f"{number}.conf"
        configuration.write_text(
            _LOADER_CONF.format(cache=cache, url=client.url, token=client.token)
        )
        process.prepare(configuration)
    # Nothing waits for the writes of the last round.
    os.sync()


def _at_once(processes: Sequence[_Process]) -> int:
    for process in processes:
        process.start()
    return sum(process.downloads() for process in processes)


def _in_turn(processes: Sequence[_Process]) -> int:
    downloads = 0
    for process in processes:
        process.start()
        downloads += process.downloads()
    return downloads


_SHARED_AT_ONCE = "shared cache, at once"
_WAYS = (
    (_SHARED_AT_ONCE, _at_once, True),
    ("own caches, at once", _at_once, False),
    ("shared cache, in turn", _in_turn, True),
    ("own caches, in turn", _in_turn, False),
)
_SHARING_GOALS = {
    "own caches, at once": 0.6,
    "shared cache, in turn": 1.4,
    "own caches, in turn": 0.33,
}

_LOADER_CONF = """\
[engine]
packages_cache = {cache}

[glare]
url = {url}
auth_type = admin_token
endpoint = {url}
token = {token}
"""


def fetching() -> Iterator[Figure]:
    """Measure the memory above idle while an archive of 500 MB is fetched into the cache."""
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
        command = (
            "-m",
            "benchmarks.fetching_process",
            client.url,
            client.token,
            _PROJECT,
            "org.big",
        )
        value = float(_output(*command, pathlib.Path(name, "cache")))
    yield Figure("memory above idle, an archive of 500 MB fetched", value, "MB", 2.3)


_ROOMY_CONF = f"""\
[artifact_type:{fields.TYPE_NAME}]
max_archive_size = {1024**3}
max_unpacked_size = {1024**3}
"""


def importing() -> Iterator[Figure]:
    """Compare ``import loader`` with its most expensive imports."""
    value = statistics.median(
        _importing("loader") / _importing("keystoneauth1.session, semantic_version")
        for _ in range(_ROUNDS)
    )
    yield Figure("import loader / keystoneauth1's session, semantic_version", value, "times", 0.9)


def _importing(names: str) -> float:
    code = f"import time; start = time.process_time(); import {names}"
    return float(_output("-c", f"{code}; print(time.process_time() - start)"))


def _output(*arguments: object) -> str:
    """Run a Python process, and return its output."""
    command = [*_PYTHON, *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


BENCHMARKS = (cold, engine, sharing, fetching, importing)
