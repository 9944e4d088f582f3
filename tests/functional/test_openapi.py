# SPDX-License-Identifier: Apache-2.0

"""The API's document and the real answers: that neither says what the other does not.

Every answer that ``Client.resolve`` and ``Client.query`` get in these tests is held
against the document; here is that this would notice, and that the rest agrees.
"""

from typing import Any

import openapi_core.exceptions
import pytest
import requests
from openapi_core.contrib.requests import RequestsOpenAPIRequest, RequestsOpenAPIResponse

from glare_murano.glare.api import archives, dependencies, middleware
from tests import packages
from tests.functional.client import DOCUMENT, Client


def _without_prose(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {k: _without_prose(v) for k, v in schema.items() if k != "description"}
    return schema


@pytest.mark.parametrize(
    ("name", "schema"), [("Batch", archives.SCHEMA), ("Query", dependencies.SCHEMA)]
)
def test_the_document_and_the_server_hold_requests_to_the_same(name: str, schema: Any) -> None:
    documented = DOCUMENT.spec["components"]["schemas"][name].read_value()

    assert _without_prose(documented) == schema


def test_the_document_tells_every_path_and_its_method() -> None:
    paths = DOCUMENT.spec["paths"].read_value()

    documented = {path: [method.upper() for method in item] for path, item in paths.items()}
    assert documented == {path: [method] for path, (method, _) in middleware.ROUTES.items()}


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
        ("GET", "/murano/v1/dependencies", {}, 405),
        ("POST", "/murano/v1/subclasses", {}, 405),
        ("GET", "/murano/v1/archives", {}, 405),
        ("POST", "/murano/v1/archives", {"X-Auth-Token": ""}, 401),
        ("POST", "/murano/v1/dependencies", {"X-Auth-Token": ""}, 401),
        ("GET", "/murano/v1/subclasses?class=a.B", {"X-Auth-Token": ""}, 401),
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
    answer.request.method = answer.headers.get("Allow", method)
    DOCUMENT.validate_response(
        RequestsOpenAPIRequest(answer.request), RequestsOpenAPIResponse(answer)
    )
