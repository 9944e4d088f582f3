# SPDX-License-Identifier: Apache-2.0

"""The parts of forms, as other clients would write them."""

import os
from typing import Any

import multipart
import pytest
import requests
import webob
from webob import exc

from loader.murano_api import upload_forms

TYPE = 'multipart/form-data; boundary="XX"'


def _read(body: bytes, content_type: str = TYPE) -> list[Any]:
    """Return the parts of a form, with the content of each file in a list."""
    request = webob.Request.blank("/", method="POST", body=body)
    request.headers["Content-Type"] = content_type
    parts = upload_forms.read_form(request)
    return [[part.file.read()] if isinstance(part, upload_forms.File) else part for part in parts]


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
_PART = b"--XX\r\n" + _NAMED + b"\r\n\r\n1\r\n"


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        (b"--XX--", []),
        (b"before\r\n" + _PART + b"--XX--\r\nafter", [1]),
        (b"--XX\r\n" + _NAMED + b"\r\n\r\n\r\n" + _PART + b"--XX--", [b"", 1]),
        (b"--XX\r\n" + _NAMED + b"\r\n\r\n\xff--XX\r\n--XX--", [b"\xff--XX"]),
        (b"--XX\r\n" + _NAMED + b'; filename=""\r\n\r\nPK\r\n--XX--', [b"PK"]),
        (b"--XX\r\n" + _NAMED + b"; filename=b\r\n\r\nPK\r\n--X\r\n--XX--", [[b"PK\r\n--X"]]),
        (b"--XX\r\n" + _NAMED + '; filename="ä"\r\n\r\nPK\r\n--XX--'.encode(), [[b"PK"]]),
        (10 * _PART + b"--XX--", 10 * [1]),
    ],
)
def test_the_parts_of_a_form_are_read(body: bytes, parts: list[Any]) -> None:
    assert _read(body) == parts


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (11 * _PART + b"--XX--", "count exceeded: a form has at most 10 parts"),
        (b"--XX\r\nA: " + 4096 * b"a" + b"\r\n", "length exceeded: .* 8 headers of 4096 bytes"),
        (b"--XX\r\nA: " + 4096 * b"a", "length exceeded"),
        (b"--XX\r\n" + 9 * b"A: a\r\n", "header count exceeded"),
    ],
)
def test_a_form_beyond_a_limit_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(exc.HTTPBadRequest, match=message):
        _read(body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no form",
        b"--XX",
        b"--XXX\r\n" + _NAMED + b"\r\n\r\n1\r\n--XXX--",
        b"--XX\r\n\r\n1\r\n--XX--",
        b"--XX\r\n" + _NAMED,
        _PART,
        _PART.replace(b"\r\n", b"\n") + b"--XX--",
    ],
)
def test_a_malformed_form_is_refused(body: bytes) -> None:
    with pytest.raises(multipart.ParserError):
        _read(body)


@pytest.mark.parametrize("parameter", ["", "; boundary=", "; boundary=ä"])
def test_a_form_without_a_boundary_is_refused(parameter: str) -> None:
    with pytest.raises(multipart.ParserError, match="Empty boundary"):
        _read(_PART + b"--XX--", f"multipart/form-data{parameter}")
