# SPDX-License-Identifier: Apache-2.0

"""The connection between the real Glance and MariaDB breaks in the middle of a request."""

import contextlib
import pathlib
import socket
import socketserver
import threading
from collections.abc import Iterator

import pytest
import sqlalchemy

from glare_murano import images as form
from tests import packages, prerequisites, processes
from tests.functional import databases
from tests.functional.glance import service, stored
from tests.functional.glance.image_client import ImageClient

pytestmark = pytest.mark.services

NAME = "org.example.db"


class Relay(socketserver.ThreadingTCPServer):
    """Passes connections on, and breaks the one that sends some words, once.

    :ivar words: the words.
    """

    daemon_threads = True

    def __init__(self, target: tuple[str, int]) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.target = target
        self.words = b""


class _Connection(socketserver.BaseRequestHandler):
    server: Relay

    def handle(self) -> None:
        with socket.create_connection(self.server.target) as other:
            back = threading.Thread(target=self._pump_back, args=(other,))
            back.start()
            while data := self.request.recv(65536):
                if self.server.words and self.server.words in data:
                    self.server.words = b""
                    break
                other.sendall(data)
            for end in (other, self.request):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            back.join()

    def _pump_back(self, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := other.recv(65536):
                self.request.sendall(data)


@pytest.fixture(scope="module")
def relay() -> Iterator[Relay]:
    """A relay to MariaDB."""
    url = prerequisites.mariadb().url
    with Relay((url.host or "127.0.0.1", url.port or 3306)) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture(scope="module")
def glance(tmp_path_factory: pytest.TempPathFactory, relay: Relay) -> Iterator[service.Glance]:
    """A Glance whose connections to its database can break."""

    @contextlib.contextmanager
    def relayed(folder: pathlib.Path) -> Iterator[str]:
        with databases.mariadb(folder) as url:
            host, port = relay.server_address[:2]
            yield str(sqlalchemy.engine.make_url(url).set(host=str(host), port=int(port)))

    with stored.running(tmp_path_factory.mktemp("relayed"), relayed) as running:
        yield running


@pytest.mark.parametrize("words", ["image_properties.image_id = '{second}'", "COMMIT"])
def test_a_publication_is_made_whole_or_not_at_all(
    glance: service.Glance, images: ImageClient, relay: Relay, package_name: str, words: str
) -> None:
    names = [f"{package_name}.{letter}" for letter in "ab"]
    rows = [
        stored.package(
            packages.package(name, Require={"io.murano": "*", required: "1"}),
            images.project,
            properties={form.PUBLISHED: ""},
        )
        for name, required in zip(names, reversed(names), strict=True)
    ]
    stored.store(glance, rows)
    ids = [row.id for row in rows]
    relay.words = words.format(second=ids[1]).encode()

    assert images.publications(*ids).status_code == 500
    assert relay.words == b""
    assert not any(form.is_release(images.show(id_)) for id_ in ids)

    assert images.publications(*ids).status_code == 200
    assert all(form.is_release(images.show(id_)) for id_ in ids)


@pytest.mark.parametrize("words", [b"murano_version", b"'active'", b"importing"])
def test_an_import_can_be_tried_again(images: ImageClient, relay: Relay, words: bytes) -> None:
    image_id = images.create(NAME).json()["id"]
    data = packages.package(NAME)
    assert images.put(image_id, data).status_code == 204
    relay.words = words

    assert images.start_import(image_id).status_code == 202
    processes.wait_until(lambda: not relay.words, "the connection to break")
    processes.wait_until(lambda: images.put(image_id, data).status_code == 204, "another try")

    assert images.start_import(image_id).status_code == 202
    found = images.wait(image_id)
    assert found["status"] == "active", found
    assert found[form.VERSION] == "1.0.0"
    assert form.REFUSAL not in found
    assert images.request("GET", f"/v2/images/{image_id}/file").content == data
