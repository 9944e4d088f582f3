# SPDX-License-Identifier: Apache-2.0

"""A Murano API that sends something else than the real one."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

import pytest
from keystoneauth1 import session, token_endpoint

from loader import errors
from loader.environments import environment_pins
from loader.environments.environment_pins import EnvironmentPins
from loader.transport.adapter import ServiceAdapter
from tests import web
from tests.unit import faulty


def _client(url: str, **limits: float) -> ServiceAdapter:
    auth = token_endpoint.Token(url, "secret")
    return ServiceAdapter(session.Session(auth), "Murano's API", endpoint_override=url, **limits)  # type: ignore[arg-type]


def _murano(answers: Mapping[str, object]) -> AbstractContextManager[web.Recorder]:
    """Murano's API with answers by path; any other path gets ``null``."""
    return web.recording(lambda request: web.Answer(200, answers.get(request.path)))


def test_the_token_does_not_follow_a_redirection() -> None:
    with (
        _murano({"/v1/environments": {"environments": []}}) as other,
        web.recording(lambda request: web.Answer(302, None, other.url + request.path)) as murano,
        pytest.raises(errors.CatalogError, match=f"redirects to {other.url}/v1/environments"),
    ):
        environment_pins.find(_client(murano.url), "production")
    assert ([each.token for each in murano.requests], other.requests) == (["secret"], [])


@pytest.mark.parametrize("model", [None, [], {}, {"?": None}, {"?": "x"}, {"applications": []}])
def test_a_model_without_a_header_is_an_error(model: object) -> None:
    with (
        _murano({"/v1/environments/1/model/": model}) as murano,
        pytest.raises(errors.CatalogError, match="a model without a header"),
    ):
        EnvironmentPins(_client(murano.url), "1").read()


@pytest.mark.parametrize("answer", [None, [], {}, {"environments": None}, {"environments": [1]}])
def test_a_list_in_another_form_is_an_error(answer: object) -> None:
    with (
        _murano({"/v1/environments": answer}) as murano,
        pytest.raises(errors.CatalogError, match="an unknown form"),
    ):
        environment_pins.find(_client(murano.url), "production")


def test_a_deployment_in_another_form_is_an_error() -> None:
    answers: dict[str, object] = {}
    with _murano(answers) as murano:
        pins = EnvironmentPins(_client(murano.url), "1")
        with pytest.raises(errors.CatalogError, match="an unknown form"):
            pins.wait(1)
        with pytest.raises(errors.CatalogError, match="an unknown form"):
            pins.move({"org.a": None})
        answers["/v1/environments/1"] = {"status": "deploy failure"}
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
