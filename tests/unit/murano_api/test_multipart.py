# SPDX-License-Identifier: Apache-2.0

"""The parts of forms, as other clients would write them."""

import os
from typing import Any

import pytest
import requests
import webob
from webob import exc

from loader.murano_api import multipart

TYPE = 'multipart/form-data; boundary="XX"'


def _read(body: bytes, content_type: str = TYPE) -> list[Any]:
    """Return the parts of a form, with the content of each file in a list."""
    request = webob.Request.blank("/", method="POST", body=body)
    request.headers["Content-Type"] = content_type
    parts = multipart.read_form(request)
    return [[part.file.read()] if isinstance(part, multipart.File) else part for part in parts]


@pytest.mark.parametrize("content", [b"", b"\r\n", b"PK\r\n--X", b"a\n\n\n", os.urandom(100_000)])
def test_what_a_client_sends_is_read(content: bytes) -> None:
    sent = requests.Request(
        "POST",
        "http://host",
        data={"__metadata__": '{"is_public": false}'},
        files={"file": ("ä.zip", content)},
    ).prepare()
    assert isinstance(sent.body, bytes)

    read = _read(sent.body, sent.headers["Content-Type"])

    assert read == [{"is_public": False}, [content]]


_NAMED = b"Content-Disposition: form-data; name=a"


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        (b"", []),
        (b"--XX", []),
        (b"--XX--", []),
        (b"no form", []),
        (b"--XXX\r\n\r\n1\r\n--XX--", []),
        (b"before\r\n--XX\r\n\r\n1\r\n--XX--\r\nafter", [1]),
        (b"--XX \r\n" + _NAMED + b"\r\n\r\n[1]\r\n--XX--", [[1]]),
        (b"--XX\n" + _NAMED + b"\n\n[1]\n--XX--\n", [[1]]),
        (b"--XX\r\n" + _NAMED + b"\r\n\r\n--XX\r\n\r\n2\r\n--XX--", [b"", 2]),
        (b"--XX\r\n" + _NAMED + b"\r\n\r\n\xff--XX\r\n--XX--", [b"\xff--XX"]),
        (b"--XX\r\n" + _NAMED + b"; filename=\r\n\r\nPK\r\n--XX--", [b"PK"]),
        (b"--XX\r\n" + _NAMED + b"; filename=b\r\n\r\nPK\r\n--X", [[b"PK\r\n--X"]]),
        (b"--XX\r\n" + _NAMED + "; filename=ä\r\n\r\nPK\r\n--XX--".encode(), [[b"PK"]]),
        (10 * b"--XX\r\n\r\n1\r\n" + b"--XX--", 10 * [1]),
    ],
)
def test_the_parts_of_a_form_are_read(body: bytes, parts: list[Any]) -> None:
    assert _read(body) == parts


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (11 * b"--XX\r\n\r\n1\r\n" + b"--XX--", "more than 10 parts"),
        (b"--XX\r\n" + 4096 * b"a", "do not end within 4096 bytes"),
        (b"--XX\r\n" + 2048 * b"a\n", "do not end within 4096 bytes"),
        (b"--XX\r\n" + _NAMED, "do not end within 4096 bytes"),
    ],
)
def test_a_form_beyond_a_limit_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(exc.HTTPBadRequest, match=message):
        _read(body)


@pytest.mark.parametrize(
    "parameter", ["", "; boundary=", "; boundary=ä", f"; boundary={201 * 'X'}"]
)
def test_a_boundary_that_is_not_valid_is_refused(parameter: str) -> None:
    with pytest.raises(ValueError, match="no valid boundary"):
        _read(b"--XX--", f"multipart/form-data{parameter}")
