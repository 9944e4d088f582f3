# SPDX-License-Identifier: Apache-2.0

"""A Murano API that sends something else than the real one."""

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from keystoneauth1 import session, token_endpoint

from loader import errors
from loader.environments import environment_pins
from loader.environments.environment_pins import EnvironmentPins
from loader.transport.adapter import ServiceAdapter
from tests import web
from tests.unit import faulty


class _Handler(http.server.BaseHTTPRequestHandler):
    server: "_Murano"

    def do_GET(self) -> None:
        self.server.tokens.append(self.headers.get("X-Auth-Token"))
        content = json.dumps(self.server.answers.get(self.path)).encode()
        self.send_response(302 if self.server.target else 200)
        if self.server.target:
            self.send_header("Location", self.server.target + self.path)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET  # noqa: N815 - the name that http.server looks for

    def log_message(self, *_: object) -> None:
        """Nothing."""


class _Murano(http.server.ThreadingHTTPServer):
    """Sends the same answers to every request.

    :ivar target: another site, to which all requests are redirected.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, Any] = {}
        self.tokens: list[str | None] = []
        self.target = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def client(self) -> ServiceAdapter:
        return _client(self.url)


def _client(url: str, **limits: float) -> ServiceAdapter:
    auth = token_endpoint.Token(url, "secret")
    return ServiceAdapter(session.Session(auth), "Murano's API", endpoint_override=url, **limits)  # type: ignore[arg-type]


@pytest.fixture
def start() -> Iterator[Callable[[], _Murano]]:
    running = []

    def run() -> _Murano:
        murano = _Murano()
        thread = threading.Thread(target=murano.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        running.append((murano, thread))
        return murano

    yield run
    for murano, thread in running:
        murano.shutdown()
        thread.join()
        murano.server_close()


def test_the_token_does_not_follow_a_redirection(start: Callable[[], _Murano]) -> None:
    murano, other = start(), start()
    murano.target = other.url
    other.answers["/v1/environments"] = {"environments": []}
    with pytest.raises(errors.CatalogError, match=f"redirects to {other.url}/v1/environments"):
        environment_pins.find(murano.client(), "production")
    assert (murano.tokens, other.tokens) == (["secret"], [])


@pytest.mark.parametrize("model", [None, [], {}, {"?": None}, {"?": "x"}, {"applications": []}])
def test_a_model_without_a_header_is_an_error(start: Callable[[], _Murano], model: object) -> None:
    murano = start()
    murano.answers["/v1/environments/1/model/"] = model
    with pytest.raises(errors.CatalogError, match="a model without a header"):
        EnvironmentPins(murano.client(), "1").read()


@pytest.mark.parametrize("answer", [None, [], {}, {"environments": None}, {"environments": [1]}])
def test_a_list_in_another_form_is_an_error(start: Callable[[], _Murano], answer: object) -> None:
    murano = start()
    murano.answers["/v1/environments"] = answer
    with pytest.raises(errors.CatalogError, match="an unknown form"):
        environment_pins.find(murano.client(), "production")


def test_a_deployment_in_another_form_is_an_error(start: Callable[[], _Murano]) -> None:
    murano = start()
    pins = EnvironmentPins(murano.client(), "1")
    with pytest.raises(errors.CatalogError, match="an unknown form"):
        pins.wait(1)
    with pytest.raises(errors.CatalogError, match="an unknown form"):
        pins.move({"org.a": None})
    murano.answers["/v1/environments/1"] = {"status": "deploy failure"}
    with pytest.raises(errors.CatalogError, match="an unknown form"):
        pins.wait(1)


@pytest.mark.parametrize("action", [EnvironmentPins.read, lambda pins: pins.deploy("1")])
def test_an_answer_that_arrives_too_slowly_is_given_up(
    action: Callable[[EnvironmentPins], object],
) -> None:
    with faulty.serving(b"") as server:
        server.faults = [faulty.trickle_headers]
        pins = EnvironmentPins(_client(server.url, seconds=0.2), "1")
        with pytest.raises(errors.CatalogUnavailable, match=r"not complete within 0\.2 seconds"):
            action(pins)
    assert len(server.seen) == 1


@pytest.mark.usefixtures("waits")
def test_a_deployment_is_not_started_again_after_a_failure() -> None:
    with web.recording(lambda request: web.Answer(503)) as murano:
        pins = EnvironmentPins(_client(murano.url), "1")
        with pytest.raises(errors.CatalogUnavailable, match="with the status 503"):
            pins.deploy("2")
        assert [request.path for request in murano.requests] == [
            "/v1/environments/1/sessions/2/deploy"
        ]
