# SPDX-License-Identifier: Apache-2.0

"""The API's document and the real answers: that neither says what the other does not.

A ``Client`` holds its answers in these tests against the document, for artifacts the first
of each status; here is that this would notice, and that the rest agrees.
"""

from typing import Any

import openapi_core.exceptions
import pytest
import requests
from glare.api.v1 import router
from glare.common import wsgi
from keystoneauth1 import discover, session
from openapi_core.contrib.requests import RequestsOpenAPIRequest, RequestsOpenAPIResponse

from glare_murano import package_order, selection, wire
from glare_murano.glare.api import middleware
from glare_murano.glare.artifact import MuranoPackageArtifact
from glare_murano.service import schemas
from tests import packages
from tests.functional.client import DOCUMENT, Client


def _without_prose(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {k: _without_prose(v) for k, v in schema.items() if k != "description"}
    return schema


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("Batch", schemas.BATCH),
        ("Deletions", schemas.DELETIONS),
        ("Publication", schemas.PUBLICATION),
        ("Query", schemas.QUERY),
        ("Yank", schemas.YANK),
    ],
)
def test_the_document_and_the_server_hold_requests_to_the_same(name: str, schema: Any) -> None:
    documented = DOCUMENT.spec["components"]["schemas"][name].read_value()

    assert _without_prose(documented) == schema


def test_the_document_tells_every_path_and_its_method(application: Any) -> None:
    paths = DOCUMENT.spec["paths"].read_value()
    glare = {
        (route.routepath.replace("{type_name}", "murano").replace("{blob_path:.*?}", "{blob}"), *m)
        for route in router.API(wsgi.APIMapper()).map.matchlist
        if (m := route.conditions and route.conditions["method"])
    }
    ours = {(path, method) for path, of_path in middleware.ROUTES.items() for method in of_path}
    versions = {("/murano", "GET"), ("/murano/v1", "GET")}
    of_glance = {(wire.DELETIONS_PATH, "POST")}

    documented = {
        (path, method.upper())
        for path, item in paths.items()
        for method in set(item) - {"parameters"}
    }
    below = {each for each in glare if each[0].startswith("/artifacts/murano")}
    assert documented == below | ours | versions | of_glance


def test_the_document_tells_every_parameter_of_lists_and_its_values() -> None:
    listed = DOCUMENT.spec["paths"]["/murano/v1/packages"]["get"]["parameters"].read_value()
    choices = {
        each["name"]: tuple(values)
        for each in listed
        if (values := each["schema"].get("items", {}).get("enum"))
    }

    assert {each["name"] for each in listed} == {*selection.PARAMETERS, "sort", "limit", "marker"}
    assert choices == dict(selection.CHOICES)
    (sort,) = (each["description"] for each in listed if each["name"] == "sort")
    assert all(key in sort for key in package_order.KEYS)


def test_the_document_tells_every_field() -> None:
    documented = DOCUMENT.spec["components"]["schemas"]["Artifact"]["properties"].read_value()

    assert set(documented) == set(MuranoPackageArtifact.fields)


@pytest.mark.parametrize("field", ["sha256", "required_by", "visibility"])
def test_an_answer_that_lacks_something_is_noticed(glare: Client, name: str, field: str) -> None:
    glare.publish(name, "1.0.0", packages.package(name))
    answer = glare.resolve(requirements={name: "1"})
    body = answer.json()
    del body["releases"][0][field]
    short = requests.Response()
    short.status_code, short.headers = 200, answer.headers
    short._content = requests.compat.json.dumps(body).encode()

    with pytest.raises(openapi_core.exceptions.OpenAPIError):
        DOCUMENT.validate_response(
            RequestsOpenAPIRequest(answer.request), RequestsOpenAPIResponse(short)
        )


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("PUT", "/artifacts/murano", {}, 405),
        ("GET", "/artifacts/murano", {"X-Auth-Token": ""}, 401),
        ("GET", "/artifacts/murano", {"OpenStack-API-Version": "artifact 9.9"}, 406),
        ("PATCH", "/artifacts/murano/id", {"Content-Type": "text/plain"}, 415),
        ("DELETE", "/artifacts/murano/id/archive", {}, 404),
        ("POST", "/murano", {}, 405),
        ("GET", "/murano/v1/dependencies", {}, 405),
        ("POST", "/murano/v1/subclasses", {}, 405),
        ("POST", "/murano/v1/packages", {}, 405),
        ("POST", "/murano/v1/categories", {}, 405),
        ("GET", "/murano/v1/archives", {}, 405),
        ("GET", "/murano/v1/publications", {}, 405),
        ("GET", "/murano/v1/yanks", {}, 405),
        ("POST", "/murano/v1/archives", {"X-Auth-Token": ""}, 401),
        ("POST", "/murano/v1/dependencies", {"X-Auth-Token": ""}, 401),
        ("GET", "/murano/v1/subclasses?class=a.B", {"X-Auth-Token": ""}, 401),
        ("GET", "/murano/v1/packages", {"X-Auth-Token": ""}, 401),
        ("GET", "/murano/v1/categories", {"X-Auth-Token": ""}, 401),
    ],
)
def test_refusals_are_as_documented(
    glare: Client, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    answer = requests.request(
        method, glare.url + path, headers={"X-Auth-Token": glare.token, **headers}, timeout=60
    )

    assert answer.status_code == status
    # By the method that the path does answer, which is all that is documented.
    answer.request.method = answer.headers.get("Allow", method).split(",")[0]
    DOCUMENT.validate_response(
        RequestsOpenAPIRequest(answer.request), RequestsOpenAPIResponse(answer)
    )


def test_the_versions_are_discovered_without_a_token(glare: Client) -> None:
    found = discover.Discover(session.Session(), f"{glare.url}/murano").data_for("1")

    assert found is not None
    assert (found["url"], found["version"]) == (f"{glare.url}/murano/v1/", (1, 0))
    assert (found["min_microversion"], found["max_microversion"]) == ((1, 0), (1, 0))
    assert requests.get(found["url"], timeout=60).json()["version"]["id"] == "v1"
    assert requests.post(found["url"], timeout=60).status_code == 405
