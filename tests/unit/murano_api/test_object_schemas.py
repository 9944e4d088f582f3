# SPDX-License-Identifier: Apache-2.0

"""Requests for schemas with subclasses."""

import types
from typing import Any

import pytest
import webob
from murano.common import policy, rpc
from webob import exc

from loader.murano_api.object_schemas import SchemaController, has_parameter

CONTEXT = types.SimpleNamespace(auth_token="secret", project_id="one")


def _request(query: str) -> webob.Request:
    request = webob.Request.blank(f"/v1/schemas/org.example.Thing?{query}")
    request.context = CONTEXT
    return request


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls of an engine that answers nothing."""
    found: list[Any] = []

    def call(context: Any, method: str, **arguments: Any) -> dict[str, Any]:
        found.append((context, method, arguments))
        return {}

    client = types.SimpleNamespace(call=call)
    monkeypatch.setattr(rpc, "engine", lambda: types.SimpleNamespace(_client=client))
    monkeypatch.setattr(policy, "check", lambda *_: None)
    return found


@pytest.mark.parametrize(
    ("query", "added"),
    [
        ("subclasses=true", {"subclasses": True}),
        # Every engine knows the other arguments.
        ("subclasses=false", {}),
        (
            "subclasses=1&classVersion=>=1&packageName=org.example",
            {"subclasses": True, "class_version": ">=1", "package_name": "org.example"},
        ),
    ],
)
def test_an_engine_is_called(calls: list[Any], query: str, added: dict[str, Any]) -> None:
    assert SchemaController().get_schema(_request(query), "org.example.Thing", ", build") == {}

    credentials = {"token": "secret", "project_id": "one"}
    arguments = {"class_name": "org.example.Thing", "method_names": ["", "build"]}
    arguments |= {"class_version": None, "package_name": None, **added}
    assert calls == [(credentials, "generate_schema", arguments)]


def test_no_engine_is_called_against_the_policy(
    calls: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = []

    def refuse(*arguments: Any) -> None:
        checked.append(arguments)
        raise exc.HTTPForbidden

    monkeypatch.setattr(policy, "check", refuse)

    with pytest.raises(exc.HTTPForbidden):
        SchemaController().get_schema(_request("subclasses=true"), "org.example.Thing")
    assert checked == [("get_schema", CONTEXT, {"class_name": "org.example.Thing"})]
    assert calls == []


def test_only_requests_with_the_parameter_are_answered() -> None:
    assert has_parameter(_request("subclasses=false").environ, {})
    assert not has_parameter(_request("classVersion=1").environ, {})
