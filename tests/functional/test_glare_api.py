# SPDX-License-Identifier: Apache-2.0

"""Requests to Glare's own server ``glare-api``, and to the development server."""

import concurrent.futures
import json
import pathlib
import socket
import time
import urllib.parse
from collections.abc import Iterable, Iterator
from http import client as http
from typing import Any

import pytest
import requests

from benchmarks import catalogue
from tests.functional import databases, sites, stores
from tests.functional.client import ARTIFACTS, DEPENDENCIES, SUBCLASSES, Answer, Client, message

JSON = "application/json"
PATCH = "application/json-patch+json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("glare-api")


@pytest.fixture(scope="module")
def glare_api_url(folder: pathlib.Path) -> Iterator[str]:
    with (
        databases.sqlite(folder) as connection,
        stores.files(folder) as store,
        sites.of_processes(folder, connection, store, number=1) as site,
    ):
        yield site.urls[0]
        assert "Traceback" not in (folder / "glare.log").read_text()


@pytest.fixture(params=["glare_api_url", "glare_url"])
def client(request: pytest.FixtureRequest, project: str) -> Client:
    """A client of each server."""
    return Client(request.getfixturevalue(request.param), f"user:{project}:member")


def _send(
    client: Client,
    method: str,
    path: str,
    content_type: str,
    body: bytes | Iterable[bytes],
    missing: int = 0,
) -> Answer:
    """Send a body, in chunks if it is an iterable, and close behind it if bytes are missing."""
    connection = http.HTTPConnection(urllib.parse.urlsplit(client.url).netloc, timeout=60)
    headers = {"X-Auth-Token": client.token, "Content-Type": content_type}
    if isinstance(body, bytes):
        headers["Content-Length"] = str(len(body) + missing)
    else:
        headers["Transfer-Encoding"] = "chunked"
    try:
        connection.request(method, path, body, headers, encode_chunked=True)
        if missing:
            connection.sock.shutdown(socket.SHUT_WR)
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read())
    finally:
        connection.close()


def _draft(client: Client, name: str) -> str:
    return f"{ARTIFACTS}/{client.create(name).json()['id']}"


@pytest.mark.parametrize(
    ("method", "content_type", "body"),
    [("POST", JSON, b'{"name": "org.short"}'), ("PATCH", PATCH, b"[]"), ("PUT", "image/png", b"")],
)
def test_a_body_shorter_than_its_length_is_the_clients_mistake(
    glare_api_url: str, name: str, method: str, content_type: str, body: bytes
) -> None:
    """The development server hangs up, and answers nobody."""
    client = Client(glare_api_url, "user:short:member")
    paths = {"POST": ARTIFACTS, "PATCH": _draft(client, name)}
    path = paths.get(method) or f"{paths['PATCH']}/archive"

    answer = _send(client, method, path, content_type, body, missing=400)

    assert (answer.status_code, "400 more bytes were expected" in message(answer)) == (400, True)


@pytest.mark.parametrize(
    "body", [b'{"a": 1}', b"[1]", b"nothing", [b'{"a": 1}']], ids=["{}", "[]", "text", "chunks"]
)
def test_delete_takes_no_body(client: Client, name: str, body: bytes | Iterable[bytes]) -> None:
    draft = _draft(client, name)

    for path in (draft, f"{draft}/archive"):
        answer = _send(client, "DELETE", path, JSON, body)
        assert (answer.status_code, "takes no body" in message(answer)) == (400, True)

    assert client.request("DELETE", f"{draft.removeprefix(ARTIFACTS)}/archive").status_code == 404
    assert client.request("DELETE", draft.removeprefix(ARTIFACTS)).status_code == 204


def test_json_in_chunks_is_read_like_any_other(client: Client, name: str) -> None:
    def chunks(value: Any) -> Iterator[bytes]:
        text = json.dumps(value).encode()
        yield text[:5]
        yield text[5:]

    fields = {"name": name, "version": "1.2.0"}
    created = _send(client, "POST", ARTIFACTS, JSON, chunks(fields))
    assert (created.status_code, created.json()["version"]) == (201, "1.2.0")

    patch = [{"op": "replace", "path": "/categories", "value": ["Web"]}]
    path = f"{ARTIFACTS}/{created.json()['id']}"
    changed = _send(client, "PATCH", path, PATCH, chunks(patch))
    assert (changed.status_code, changed.json()["categories"]) == (200, ["Web"])

    query = {"requirements": {name: "1"}}
    resolved = _send(client, "POST", DEPENDENCIES, JSON, chunks(query))
    assert (resolved.status_code, resolved.json()["unsatisfied"][0]["name"]) == (200, name)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", ARTIFACTS, "GET, POST"),
        ("POST", f"{ARTIFACTS}/id", "GET, PATCH, DELETE"),
        ("PATCH", f"{ARTIFACTS}/id/archive", "GET, PUT, DELETE"),
        ("GET", DEPENDENCIES, "POST"),
        ("POST", SUBCLASSES, "GET"),
    ],
)
def test_the_allowed_method_is_in_the_body_of_a_refusal(
    client: Client, method: str, path: str, allowed: str
) -> None:
    answer = _send(client, method, path, JSON, b"")

    assert (answer.status_code, answer.headers["Allow"]) == (405, allowed)
    assert message(answer) == f"{method} {path}: the method is not allowed; use {allowed}"


def test_others_are_answered_while_a_long_closure_is_planned(
    glare_api_url: str, folder: pathlib.Path, project: str
) -> None:
    length = 3000
    chain = (
        catalogue.Artifact(
            catalogue.contents(f"org.p{number}", "1.0.0", {f"org.p{number + 1}": "1"}),
            project,
            "private",
        )
        for number in range(length)
    )
    catalogue.load(folder / "glare.sqlite", chain)
    headers = {"X-Auth-Token": f"user:{project}:member"}
    query = {"requirements": {"org.p0": "1"}}
    waits = []
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        start = time.monotonic()
        url = glare_api_url + DEPENDENCIES
        planning = pool.submit(requests.post, url, json=query, headers=headers, timeout=60)
        while not planning.done():
            asked = time.monotonic()
            assert requests.get(f"{glare_api_url}/healthcheck", timeout=60).status_code == 200
            waits.append(time.monotonic() - asked)
        took = time.monotonic() - start

    # On a slow machine, the plan may exceed its time.
    assert planning.result().status_code in (200, 400)
    # Measured: 30 ms, and twice 150 ms.
    assert len(waits) > 10
    assert max(waits) < took / 2
