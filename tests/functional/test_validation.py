# SPDX-License-Identifier: Apache-2.0

"""Malformed requests to the real Glare: refused in plain words, each in one line of the log."""

import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import webob
import webob.exc

from glare_murano.glare.api import validation_filter as checks
from glare_murano.service import request_reading
from tests import packages
from tests.functional.client import ARTIFACTS, DEPENDENCIES, Answer, Client, Wire, message

JSON = "application/json"
PATCH = "application/json-patch+json"
LOCATION = "application/vnd+openstack.glare-custom-location+json"

Refused = Callable[[Any, int, str], None]


@pytest.fixture
def refused(state_dir: pathlib.Path) -> Refused:
    """Check that an answer refuses, in Glare's form, and takes a single line of the log."""
    log = state_dir / "glare.log"

    def check(answer: Any, status: int, words: str) -> None:
        assert answer.status_code == status, answer.content
        assert answer.headers["Content-Type"].startswith(JSON)
        error = answer.json()
        assert (error["code"], bool(error["title"])) == (status, True)
        assert words in error["error"]["message"]
        request_id = answer.headers["x-openstack-request-id"]
        (line,) = [line for line in log.read_text().splitlines() if request_id in line]
        assert " INFO glare_murano.glare.api.refusal_log " in line
        assert f" with {status}: " in line

    return check


def _draft(glare: Client, name: str) -> str:
    artifact_id: str = glare.create(name).json()["id"]
    return artifact_id


DEEP = b"[" * 100_000
BODIES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "the request is not valid JSON"),
    "half": (b'{"name":', "the request is not valid JSON: Expecting value: line 1 column 9"),
    "no UTF-8": (b"\xff", "the request is not valid JSON: 'utf-8' codec can't decode byte 0xff"),
    "UTF-16": ('{"name": "a"}'.encode("utf-16"), "the request is not valid JSON"),
    "no finite number": (b'{"name": NaN}', "'NaN' is not a finite number"),
    "a number too large": (b'{"name": 1e999}', "'1e999' is not a finite number"),
    "a number too long": (b'{"name": %s}' % (b"1" * 5000), "the request is not valid JSON"),
    "deep": (DEEP, "nested deeper than 20 levels"),
    "somewhat deep": (b'{"name": %s}' % (b"[" * 21 + b"]" * 21), "nested deeper than 20 levels"),
    "half a surrogate pair": (b'{"name": "\\ud800"}', "cannot store: '\\ud800'"),
    "half a surrogate pair in a key": (b'{"\\ud800": 1}', "cannot store: '\\ud800'"),
    "four bytes": ('{"name": "\U0001f600"}'.encode(), "cannot store: '\\U0001f600'"),
    "U+0000": (b'{"name": "\\u0000"}', "cannot store: '\\x00'"),
    "a line break in a key": (b'{"a\\nb": 1}', "cannot store: '\\n'"),
}


@pytest.mark.parametrize("body", BODIES)
def test_a_body_that_cannot_be_read_is_refused(
    glare: Client, wire: Wire, name: str, refused: Refused, body: str
) -> None:
    data, words = BODIES[body]
    refused(wire.send("POST", ARTIFACTS, data, {"Content-Type": JSON}), 400, words)
    refused(wire.send("POST", DEPENDENCIES, data, {"Content-Type": JSON}), 400, words)
    path = f"{ARTIFACTS}/{_draft(glare, name)}"
    refused(wire.send("PATCH", path, data, {"Content-Type": PATCH}), 400, words)


@pytest.mark.parametrize(
    "kind", ["multipart/form-data", "multipart/x", "application/x-www-form-urlencoded"]
)
def test_forms_are_refused(wire: Wire, refused: Refused, kind: str) -> None:
    for path in (ARTIFACTS, DEPENDENCIES, "/artifacts/other", "/schemas", "/nothing"):
        refused(
            wire.send("POST", path, b"_method=GET", {"Content-Type": kind}), 415, f"not '{kind}'"
        )


@pytest.mark.parametrize("method", ["DELETE", ""])
def test_a_query_cannot_stand_for_another_method(
    glare: Client, wire: Wire, name: str, refused: Refused, method: str
) -> None:
    path = f"{ARTIFACTS}/{_draft(glare, name)}"

    refused(wire.send("GET", f"{path}?_method={method}"), 400, "_method is not a filter")

    assert wire.send("GET", path).status_code == 200


def test_a_body_that_is_too_large_is_refused(wire: Wire, refused: Refused) -> None:
    data = b'{"name": "%s"}' % (b"a" * request_reading.MAX_BODY)
    for path in (ARTIFACTS, DEPENDENCIES, "/artifacts/other"):
        answer = wire.send("POST", path, data, {"Content-Type": JSON})
        refused(answer, 413, "larger than 1048576 bytes")
    for path in ("/artifacts/other/id/blob", "/quotas"):
        answer = wire.send("PUT", path, data, {"Content-Type": LOCATION})
        refused(answer, 413, "larger than 1048576 bytes")


def test_other_types_have_large_files_and_glares_own_answers(wire: Wire) -> None:
    data = b"a" * (request_reading.MAX_BODY + 1)
    kind = {"Content-Type": "application/octet-stream"}
    assert wire.send("PUT", "/artifacts/other/id/blob", data, kind).status_code == 404
    assert wire.send("POST", "/nothing", b"{}", {"Content-Type": JSON}).status_code == 404


@pytest.mark.parametrize("body", [b'{"name": "a"}', DEEP])
def test_artifacts_of_all_types_are_only_read(wire: Wire, refused: Refused, body: bytes) -> None:
    answer = wire.send("POST", "/artifacts/all", body, {"Content-Type": JSON})
    refused(answer, 403, "send the request to the path of their type")


@pytest.mark.parametrize("body", [[], 1, None, "text"])
def test_a_package_is_created_from_an_object(wire: Wire, refused: Refused, body: object) -> None:
    answer = wire.send("POST", ARTIFACTS, json.dumps(body).encode(), {"Content-Type": JSON})
    refused(answer, 400, "the request is not a JSON object")


@pytest.mark.parametrize("field", ["nonsense", "is_blob", "_obj_name", "save", ""])
def test_what_is_no_field_is_named(glare: Client, name: str, refused: Refused, field: str) -> None:
    refused(glare.create(name, **{field: "x"}), 400, f"a package has no field {field!r}")
    assert glare.names(name=name) == []


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ({}, "Document is expected to be sequence of operations"),
        ([1], "Operation must be an object"),
        ([{}], "Operation does not contain 'op' member"),
        (["a"], "Document is expected to be sequence of operations"),
        ([{"op": "replace"}], "Operation must have a 'path' member"),
        ([{"op": "replace", "path": 1, "value": 1}], "Invalid 'path'"),
        ([{"op": ["a"], "path": "/a"}], "Operation's op must be a string"),
        ([{"op": "swap", "path": "/a"}], "Unknown operation 'swap'"),
        ([{"op": "replace", "path": "a", "value": 1}], "Location must start with /"),
        ([{"op": "replace", "path": "/a~2", "value": 1}], "Found invalid escape ~2"),
    ],
)
def test_a_body_that_is_no_patch_is_refused(
    glare: Client, wire: Wire, name: str, refused: Refused, patch: object, words: str
) -> None:
    path = f"{ARTIFACTS}/{_draft(glare, name)}"

    answer = wire.send("PATCH", path, json.dumps(patch).encode(), {"Content-Type": PATCH})

    refused(answer, 400, f"the request is not a valid JSON patch: {words}")


def test_a_patch_has_so_many_operations_at_most(
    glare: Client, wire: Wire, name: str, refused: Refused
) -> None:
    path = f"{ARTIFACTS}/{_draft(glare, name)}"
    operations = [{"op": "add", "path": "/categories/-", "value": str(i)} for i in range(201)]

    for count, status in ((200, 200), (201, 400)):
        body = json.dumps(operations[:count]).encode()
        answer = wire.send("PATCH", path, body, {"Content-Type": PATCH})
        assert answer.status_code == status

    refused(answer, 400, "more than 200 operations")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'["url"]', b'{"url": 1}', b'{"url": null, "md5": 1}', DEEP],
)
def test_a_place_elsewhere_is_refused_whatever_it_is(
    glare: Client, wire: Wire, name: str, refused: Refused, body: bytes
) -> None:
    path = f"{ARTIFACTS}/{_draft(glare, name)}/archive"

    answer = wire.send("PUT", path, body, {"Content-Type": LOCATION})

    refused(answer, 403, "must be uploaded")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (f"{ARTIFACTS}?name=%ff", "the URL is not in UTF-8"),
        (f"{ARTIFACTS}?name=%ed%a0%80", "the URL is not in UTF-8"),
        (f"{ARTIFACTS}?%ff=a", "the URL is not in UTF-8"),
        (f"{ARTIFACTS}/%ff", "the URL is not in UTF-8"),
        (f"{ARTIFACTS}?name=%00", "cannot store: '\\x00'"),
        (f"{ARTIFACTS}/%0a", "cannot store: '\\n'"),
        # Glare's router takes it for the path without.
        (f"{ARTIFACTS}%0a", "cannot store: '\\n'"),
        (f"{ARTIFACTS}?a%0aINFO%20forged=1", "cannot store: '\\n'"),
        (f"{ARTIFACTS}?tags=%f0%9f%98%80", "cannot store: '\\U0001f600'"),
        (f"{ARTIFACTS}?name={'a' * 8192}", "longer than 8192 characters"),
        ("/artifacts/all?name=%ff", "the URL is not in UTF-8"),
        (f"/artifacts/all?name={'a' * 8192}", "longer than 8192 characters"),
    ],
)
def test_a_url_that_cannot_be_read_is_refused(
    wire: Wire, refused: Refused, target: str, words: str
) -> None:
    refused(wire.send("GET", target), 400, words)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", f"{ARTIFACTS}/", 404),
        ("GET", f"{ARTIFACTS}/nothing", 404),
        ("POST", f"{ARTIFACTS}/nothing", 405),
        ("BREW", ARTIFACTS, 405),
        ("GET", DEPENDENCIES, 405),
        ("GET", "/murano/nothing", 404),
    ],
)
def test_an_unknown_path_is_answered_in_json(
    wire: Wire, refused: Refused, method: str, path: str, status: int
) -> None:
    answer = wire.send(method, path)

    refused(answer, status, "nothing" if status == 404 and "nothing" in path else "")
    assert ("Allow" in answer.headers) == (status == 405)


@pytest.mark.parametrize("kind", [JSON, PATCH, "text/plain"])
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", f"{ARTIFACTS}/nothing", 405),
        ("PUT", f"{ARTIFACTS}/nothing", 405),
        ("POST", "/murano/nothing", 404),
    ],
)
def test_a_body_that_nothing_takes_is_not_parsed(
    wire: Wire, refused: Refused, kind: str, method: str, path: str, status: int
) -> None:
    refused(wire.send(method, path, DEEP, {"Content-Type": kind}), status, "")


def test_what_an_error_asks_of_the_client_is_kept() -> None:
    """As keystonemiddleware does, which stands behind the filter."""
    headers = {"WWW-Authenticate": 'Keystone uri="http://127.0.0.1:5000"'}
    behind = webob.exc.HTTPUnauthorized(headers=headers)

    answer = webob.Request.blank(ARTIFACTS).get_response(checks.ValidationFilter(behind))

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == headers["WWW-Authenticate"]
    assert answer.content_type == JSON
    assert answer.json["error"]["type"] == "Unauthorized"


def test_other_paths_are_glares_own(wire: Wire) -> None:
    assert wire.send("GET", "/schemas/murano").status_code == 200
    assert wire.send("GET", "/nothing").headers["Content-Type"].startswith("text/")


def test_a_refused_upload_takes_one_line_of_the_log_as_well(
    glare: Client, name: str, refused: Refused
) -> None:
    answer = glare.upload(_draft(glare, name), packages.package("org.another"))

    refused(answer, 400, "[manifest-mismatch]")


def test_an_upload_is_not_read_by_the_check() -> None:
    """So that memory does not grow with the archive."""
    read: list[int] = []

    class Body:
        def read(self, size: int = -1) -> bytes:
            read.append(size)
            return b""

    request = webob.Request.blank(f"{ARTIFACTS}/id/archive", method="PUT")
    request.headers["Content-Type"] = "application/octet-stream"
    request.environ["wsgi.input"] = Body()
    request.content_length = 10_000_000

    checks.check(request)

    assert read == []


def test_an_answer_that_was_refused_does_not_harm_the_next(wire: Wire, name: str) -> None:
    """The rest of a body that was not read is not taken for a request."""
    large = b'{"name": "%s"}' % (b"a" * 3 * request_reading.MAX_BODY)
    first: Answer = wire.send("POST", ARTIFACTS, large, {"Content-Type": JSON})
    small = json.dumps({"name": name, "version": "1.0.0"}).encode()
    second = wire.send("POST", ARTIFACTS, small, {"Content-Type": JSON})

    assert (first.status_code, second.status_code) == (413, 201)
    assert "larger than" in message(first)
