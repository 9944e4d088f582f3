# SPDX-License-Identifier: Apache-2.0

"""Requests for schemas that are not answered by Murano's own API."""

import types
from typing import Any

import pytest
import webob
from murano.common import policy, rpc
from webob import exc

from loader.murano_api.object_schemas import SchemaController, is_answered

CONTEXT = types.SimpleNamespace(auth_token="secret", project_id="one")


def _request(query: str, path: str = "org.example.Thing") -> webob.Request:
    request = webob.Request.blank(f"/v1/schemas/{path}?{query}")
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


@pytest.mark.parametrize(
    ("path", "names", "methods"),
    [
        ("org.example.Thing", "", []),
        # An empty list stands for the class.
        ("org.example.Thing/", "", [""]),
        ("org.example.Thing/build", "build", ["build"]),
        ("org.example.Thing/build/", "build", ["build"]),
        ("org.example.Thing/,build", ",build", ["", "build"]),
    ],
)
def test_an_empty_list_of_methods_is_not_a_missing_one(
    calls: list[Any], path: str, names: str, methods: list[str]
) -> None:
    SchemaController().get_schema(_request("", path), "org.example.Thing", names)

    assert calls[0][2]["method_names"] == methods


def test_only_requests_that_murano_does_not_answer_are_answered() -> None:
    assert is_answered(_request("subclasses=false").environ, {})
    assert is_answered(_request("", "org.example.Thing/").environ, {})
    assert not is_answered(_request("classVersion=1").environ, {})
