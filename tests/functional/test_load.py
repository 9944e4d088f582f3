# SPDX-License-Identifier: Apache-2.0

"""Many clients at once, and clients that die: nothing half done stays, or is seen."""

import concurrent.futures
import hashlib
import random
import select
import socket
import threading
import urllib.parse
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests import packages, processes
from tests.functional import sites
from tests.functional.client import Client
from tests.functional.sites import Site

pytestmark = pytest.mark.programs

CLIENTS = 50


site = sites.fixture(sites.shared, ["development", *sites.SHARED_DATABASES])


def _together(work: Callable[[int], Any]) -> list[Any]:
    """Do it in as many threads as there are clients, all at once; the results in order."""
    barrier = threading.Barrier(CLIENTS, timeout=60)

    def started(number: int) -> Any:
        barrier.wait()
        return work(number)

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as executor:
        return list(executor.map(started, range(CLIENTS)))


class _Watch:
    """Looks at a name all the time, as another client of the project would."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.looks = 0
        self.wrong: list[Any] = []

    def __enter__(self) -> "_Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        filters = {"name": self._name, "status": "active"}
        while not self._stop.is_set():
            found = self._client.request("GET", "", params=filters).json()["artifacts"]
            self.looks += 1
            if len(found) > 1:
                self.wrong.append(found)
            for artifact in found:
                archive = self._client.request("GET", f"/{artifact['id']}/archive")
                digest = hashlib.sha256(archive.content).hexdigest()
                if archive.status_code != 200 or digest != artifact["archive"]["sha256"]:
                    self.wrong.append((artifact, archive))


def test_of_many_that_publish_one_version_one_wins(site: Site, name: str) -> None:
    project = name.rpartition(".")[2]

    def publish(number: int) -> int:
        client = site.client(project, number)
        data = packages.package(name, Author=f"Client {number}", Tags=["one", "two"])
        created = client.create(name)
        if created.status_code == 201:
            artifact_id = created.json()["id"]
            assert client.upload(artifact_id, data).status_code == 200
            assert client.set(artifact_id, "status", "active").status_code == 200
        return created.status_code

    with _Watch(site.client(project), name) as watch:
        answers = _together(publish)

    assert Counter(answers) == {201: 1, 409: CLIENTS - 1}
    assert watch.looks
    assert watch.wrong == []
    (found,) = site.client(project, 1).request("GET", "", params={"name": name}).json()["artifacts"]
    assert found["author"] == f"Client {answers.index(201)}"
    assert found["status"] == "active"
    assert site.leftovers() == {}


def test_of_many_projects_that_make_one_version_public_one_wins(site: Site, name: str) -> None:
    projects = [f"{name}.{number}" for number in range(CLIENTS)]
    data = packages.package(name)

    def publish(number: int) -> int:
        client = site.client(projects[number], number, role="admin")
        artifact = client.publish(name, "1.0.0", data)
        return client.set(artifact["id"], "visibility", "public").status_code

    answers = _together(publish)

    assert Counter(answers) == {200: 1, 409: CLIENTS - 1}
    winner = projects[answers.index(200)]
    found = site.client("another").request("GET", "", params={"name": name}).json()["artifacts"]
    assert [artifact["owner"] for artifact in found] == [winner]
    assert site.leftovers() == {}


@pytest.mark.parametrize("framing", ["Content-Length", "Transfer-Encoding"])
def test_an_upload_whose_client_dies_can_be_made_again(site: Site, name: str, framing: str) -> None:
    client = site.client(name.rpartition(".")[2], 1)
    data = packages.package(name, more={"Resources/noise": random.randbytes(4_000_000)})
    artifact_id = client.create(name).json()["id"]

    with _half_sent(
        client, f"/artifacts/murano/{artifact_id}/archive", data, framing
    ) as connection:
        # The server keeps what came so far, or has refused it already.
        processes.wait_until(
            lambda: site.temporary_files() or select.select([connection], [], [], 0)[0],
            "half an upload",
        )
    processes.wait_until(lambda: not site.temporary_files(), "the end of the upload")

    # The file goes before the server ends the upload in the database.
    assert (
        processes.wait_until(
            lambda: (code := client.upload(artifact_id, data).status_code) != 409 and code,
            "another upload",
        )
        == 200
    )
    assert client.request("GET", f"/{artifact_id}/archive").content == data
    assert client.delete(artifact_id).status_code == 204
    assert client.names(name=name) == []
    assert site.leftovers() == {}


def test_an_upload_need_not_tell_its_length(site: Site, name: str) -> None:
    client = site.client(name.rpartition(".")[2])
    data = packages.package(name, more={"Resources/noise": random.randbytes(1_000_000)})
    artifact_id = client.create(name).json()["id"]
    pieces = (data[start : start + 10_000] for start in range(0, len(data), 10_000))

    answer = client.upload(artifact_id, pieces)

    assert answer.status_code == 200, answer.text
    assert client.request("GET", f"/{artifact_id}/archive").content == data


def _half_sent(client: Client, path: str, data: bytes, framing: str) -> socket.socket:
    """A connection on which half of an upload was sent."""
    address = urllib.parse.urlsplit(client.url)
    half = data[: len(data) // 2]
    if framing == "Content-Length":
        length, body = str(len(data)), half
    else:
        length, body = "chunked", b"%x\r\n%b\r\n" % (len(half), half)
    lines = [
        f"PUT {path} HTTP/1.1",
        f"Host: {address.netloc}",
        f"X-Auth-Token: {client.token}",
        "Content-Type: application/octet-stream",
        f"{framing}: {length}",
    ]
    connection = socket.create_connection((address.hostname, address.port))
    connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
    return connection
