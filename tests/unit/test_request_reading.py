# SPDX-License-Identifier: Apache-2.0

"""What services read of a request, beyond what the servers of the tests can be made to send."""

import cProfile
import io
import pstats
from typing import Any

import pytest
import webob

from glare_murano import wire
from glare_murano.service import request_reading, schemas
from glare_murano.service.refusals import RefusedRequest


@pytest.mark.parametrize("number", [1, 9, 1000])
def test_a_limit_is_a_number_up_to_the_largest(number: int) -> None:
    assert request_reading.read_limit(str(number), 1000) == number


@pytest.mark.parametrize("text", ["0", "1001", "-1", "", "\N{ARABIC-INDIC DIGIT ONE}", "1" * 5000])
def test_another_text_is_not_a_limit(text: str) -> None:
    with pytest.raises(ValueError, match="expected a number from 1 to 1000"):
        request_reading.read_limit(text, 1000)


class _BrokenConnection:
    """The body of a request under uWSGI, whose client has ended."""

    def read(self, _size: int = -1) -> bytes:
        raise OSError("error during read")


def test_a_body_that_ends_early_is_refused() -> None:
    request = webob.Request.blank("/", method="POST", content_length=10)
    request.environ["wsgi.input"] = _BrokenConnection()
    with pytest.raises(RefusedRequest, match="the body of the request is incomplete"):
        request_reading.check_body(request)


def test_only_a_post_is_refused_as_a_form() -> None:
    form = "application/x-www-form-urlencoded"
    for method in ("GET", "PATCH"):
        request_reading.check_content_type(
            webob.Request.blank("/", method=method, content_type=form)
        )
    with pytest.raises(RefusedRequest, match=f"send application/json, not '{form}'"):
        request_reading.check_content_type(
            webob.Request.blank("/", method="POST", content_type=form)
        )


def test_a_body_in_chunks_is_read() -> None:
    request = webob.Request.blank("/", method="POST", headers={"Transfer-Encoding": "chunked"})
    # The server joins the chunks.
    request.environ["wsgi.input"] = io.BytesIO(b"{}")
    request_reading.allow_chunks(request)
    request_reading.check_body(request)
    assert request.body == b"{}"


@pytest.mark.parametrize(("opened", "closed"), [(b"[", b"]"), (b'{"a": ', b"}")])
def test_json_is_nested_up_to_the_limit(opened: bytes, closed: bytes) -> None:
    deepest = opened * request_reading.MAX_DEPTH + b'"a"' + closed * request_reading.MAX_DEPTH
    assert request_reading.parse_json(deepest)
    with pytest.raises(RefusedRequest, match="nested deeper than 20 levels"):
        request_reading.parse_json(b"[%b]" % deepest)


def test_an_error_shows_the_beginning_of_its_place() -> None:
    name = "a" * 300
    request = webob.Request.blank("/", method="POST", json={name: "text"})
    schema = {"properties": {name: {"type": "integer"}}}
    with pytest.raises(RefusedRequest) as refused:
        request_reading.read_body(request, schema)
    assert str(refused.value) == f"{name[:200]}: 'text' is not of type 'integer'"


def _read_query(**values: Any) -> Any:
    request = webob.Request.blank("/", method="POST", json=values)
    return request_reading.read_body(request, schemas.QUERY)


def test_the_schema_takes_no_time_for_each_pinned_version() -> None:
    pins = {f"org.p{n}": ["1.0.0"] * wire.MAX_PINS for n in range(wire.MAX_REQUIREMENTS)}
    profile = cProfile.Profile()

    assert profile.runcall(_read_query, pins=pins) == {"pins": pins}

    stats: Any = pstats.Stats(profile)
    calls = sum(row[0] for (file, *_), row in stats.stats.items() if "jsonschema" in file)
    assert 0 < calls < 100 * len(pins)


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        (["1", 2], "pins/org.p/1: 2 is not of type 'string'"),
        ([None], "pins/org.p/0: None is not of type 'string'"),
        ("1", "pins/org.p: '1' is not of type 'array'"),
        ({"1": 1}, "pins/org.p: {'1': 1} is not of type 'array'"),
    ],
)
def test_an_error_in_pinned_versions_names_its_place(versions: Any, message: str) -> None:
    with pytest.raises(RefusedRequest) as refused:
        _read_query(pins={"org.p": versions})
    assert str(refused.value) == message
