# SPDX-License-Identifier: Apache-2.0

"""API processes that are killed during uploads, and slow ones that are not."""

import concurrent.futures
import contextlib
import random
import threading
import time
from collections.abc import Iterator

import pytest
import requests

from tests import effort, packages, processes
from tests.functional import sites
from tests.functional.client import Client
from tests.functional.sites import Site

pytestmark = pytest.mark.programs

UPLOAD_TIMEOUT = 3

_OPTIONS = f"""
[artifact_type:murano]
upload_timeout = {UPLOAD_TIMEOUT}
"""


# An API process, which is not killed, and whose uploads expire soon.
site = sites.fixture(
    sites.of_database, ["sqlite", *sites.SHARED_DATABASES], number=1, options=_OPTIONS
)


def _package(name: str) -> bytes:
    content = packages.content(name)
    noise = random.randbytes(2_000_000)
    return packages.zipped({**content, "UI/ui.yaml": packages.FORM, "Resources/noise": noise})


def test_an_upload_that_makes_progress_does_not_expire(site: Site, name: str) -> None:
    client = site.client("project")
    artifact_id = client.create(name).json()["id"]
    data = _package(name)
    size = len(data) // (3 * UPLOAD_TIMEOUT)

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(data), size):
            time.sleep(0.5)
            yield data[start : start + size]

    with concurrent.futures.ThreadPoolExecutor() as executor:
        slow = executor.submit(Client(client.url, client.token).upload, artifact_id, pieces())
        while not slow.done():
            time.sleep(0.5)
            assert client.upload(artifact_id, data).status_code in (409, 200)
        answer = slow.result()

    assert answer.status_code == 200, answer.text
    assert client.request("GET", f"/{artifact_id}/archive").content == data
    assert site.leftovers() == {}


@pytest.mark.services
@pytest.mark.parametrize("site", ["mariadb", "postgresql"], indirect=True)
def test_a_sweep_takes_nothing_of_running_uploads(site: Site, name: str) -> None:
    client = site.client("project")
    drafts = _drafts(client, name)
    is_swept = threading.Event()

    def upload(artifact_id: str) -> int:
        number = 0
        while not is_swept.is_set():
            own = Client(client.url, client.token)
            assert own.upload(artifact_id, drafts[artifact_id]).status_code == 200
            number += 1
        return number

    with concurrent.futures.ThreadPoolExecutor() as executor:
        uploads = [executor.submit(upload, artifact_id) for artifact_id in drafts]
        swept = [site.manage("sweep") for _ in range(4)]
        is_swept.set()
        assert min(each.result() for each in uploads) > 1

    assert {(each.returncode, each.stderr) for each in swept} == {(0, "")}
    for artifact_id, data in drafts.items():
        assert client.request("GET", f"/{artifact_id}/archive").content == data
    assert site.leftovers() == {}


@pytest.mark.services
@pytest.mark.timeout(effort.FULL_SECONDS or 300)
@pytest.mark.parametrize("site", ["mariadb", "postgresql"], indirect=True)
def test_killed_processes_leave_nothing_after_a_sweep(site: Site, name: str) -> None:
    client = site.client("project")
    stored: dict[str, bytes] = {}

    for number in range(effort.SERVER_KILLS):
        drafts = _drafts(client, f"{name}.killed{number}")
        with sites.api(site.folder, f"killed{number}") as url:
            _upload_until_killed(Client(url, client.token), drafts)
        stored |= drafts

    killed = time.monotonic()
    unusable = dict(stored)
    while unusable:
        for artifact_id, data in list(unusable.items()):
            if client.upload(artifact_id, data).status_code == 200:
                del unusable[artifact_id]
        assert time.monotonic() < killed + 120
    # A child process that read an archive for a killed process ends by itself, a little later.
    processes.wait_until(lambda: not site.temporary_files(), "the end of child processes")
    left = site.leftovers()
    assert left.keys() <= {"stored, but not named"}
    swept = site.manage("sweep")

    assert (swept.returncode, swept.stderr) == (0, "")
    assert len(swept.stdout.splitlines()) == sum(map(len, left.values()))
    assert site.leftovers() == {}
    for artifact_id, data in stored.items():
        assert client.request("GET", f"/{artifact_id}/archive").content == data


def _drafts(client: Client, name: str) -> dict[str, bytes]:
    """The ids of new artifacts, with a package for each."""
    names = [f"{name}.{letter}" for letter in "abc"]
    return {client.create(each).json()["id"]: _package(each) for each in names}


def _upload_until_killed(client: Client, drafts: dict[str, bytes]) -> None:
    """Begin uploads to drafts, and return while they are at a random place."""

    def upload(artifact_id: str, data: bytes) -> None:
        with contextlib.suppress(requests.RequestException):
            for _ in range(100):
                Client(client.url, client.token).upload(artifact_id, data)

    for artifact_id, data in drafts.items():
        threading.Thread(target=upload, args=(artifact_id, data), daemon=True).start()
    time.sleep(random.uniform(0.1, 1.5))
