# SPDX-License-Identifier: Apache-2.0

"""Read the URLs, JSON bodies and parameters of requests, within limits."""

import json
import math
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

import jsonschema
import webob

from glare_murano import fields, wire
from glare_murano.package.errors import quoted
from glare_murano.service.refusals import RefusedRequest, bad_request

MAX_BODY = 1024 * 1024
# The longest query of a URL, in characters; some WSGI servers refuse longer URLs.
MAX_QUERY = 8192
MAX_DEPTH = 20

_FORBIDDEN_IN_NAMES = re.compile(f"{fields.UNSTORABLE.pattern}|{fields.CONTROL_CHARACTERS}")

JSON = "application/json"
_FORMS = ("application/x-www-form-urlencoded", "multipart/")


def read_body(req: webob.Request, schema: Mapping[str, Any]) -> Any:
    """Read the JSON body of a request, and check it against a schema.

    :param schema: the JSON schema of the body.
    :raises RefusedRequest: if the body is malformed, or does not conform to the schema.
    """
    return _conforming(parse_json(req.body), schema)


def read_parameters(req: webob.Request, schema: Mapping[str, Any]) -> Any:
    """Read the parameters in the URL of a request. The value of a repeated parameter is a list.

    :param schema: the JSON schema of the parameters.
    :raises RefusedRequest: if the parameters do not conform to the schema.
    """
    parameters = req.GET.mixed()
    _check_strings(parameters)
    return _conforming(parameters, schema)


def read_limit(text: str, largest: int) -> int:
    """Read the number of results that a client wants in a page.

    :param largest: the largest number that is allowed.
    :raises ValueError: if the text is not a number from 1 to ``largest``.
    """
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 0
    if not 1 <= number <= largest:
        raise ValueError(f"expected a number from 1 to {largest}, found {quoted(text)}")
    return number


def check_url(environ: dict[str, Any]) -> None:
    """Check the URL of a request.

    :param environ: the WSGI environment of the request.
    :raises RefusedRequest: if the URL is too long, is malformed, or has forbidden characters. These
        are control characters, and characters that the database cannot store.
    """
    query = environ.get("QUERY_STRING", "")
    if len(query) > MAX_QUERY:
        raise bad_request(f"the query is longer than {MAX_QUERY} characters")
    if not query.isascii():
        raise bad_request("the query has characters that are not percent-encoded")
    try:
        path = environ["PATH_INFO"].encode("latin-1").decode()
        parameters = urllib.parse.unquote(query, errors="strict")
    except UnicodeError as error:
        raise bad_request("the URL is not in UTF-8") from error
    _check_characters(path + parameters, _FORBIDDEN_IN_NAMES)


def check_nul(environ: Mapping[str, Any]) -> None:
    """Check that the URL of a request does not contain the character NUL.

    PostgreSQL's driver raises an error if it looks up an id or a marker with NUL.

    :raises RefusedRequest: if the URL contains NUL.
    """
    query = urllib.parse.unquote(environ.get("QUERY_STRING", ""))
    if "\0" in environ["PATH_INFO"] + query:
        raise bad_request("the URL contains the character NUL (%00)")


def allow_chunks(req: webob.Request) -> None:
    """Let webob read a body that is sent in chunks, without a header for its length.

    By default, webob treats such a body as empty.
    """
    if req.headers.get("Transfer-Encoding", "").lower() == "chunked":
        req.environ["wsgi.input_terminated"] = True


def overrides_checks(req: webob.Request) -> bool:
    """Return whether a request has the header that overrides the checks of requirements."""
    is_set: bool = req.headers.get(wire.OVERRIDE_HEADER, "").lower() == "true"
    return is_set


def check_content_type(req: webob.Request) -> None:
    """Check that a POST request does not send an HTML form. Other requests pass the check.

    The services' routers parse each form, to look for another method in ``_method``. The time
    grows with the square of the number of parts, and with the square of the size of their headers.

    :raises RefusedRequest: if the body of a POST request is an HTML form.
    """
    if req.method == "POST" and req.content_type.startswith(_FORMS):
        raise RefusedRequest(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send {JSON}, not {quoted(req.content_type)}"
        )


def check_body(req: webob.Request) -> None:
    """Read and check the body of a request. After this call, the body can be read again.

    :raises RefusedRequest: if the body is incomplete or too large, or the method takes no body.
    """
    try:
        data = req.body_file.read(MAX_BODY + 1)
    except (OSError, ValueError) as error:
        raise bad_request(f"the body of the request is incomplete: {error}") from error
    if data and req.method in ("GET", "HEAD", "DELETE"):
        raise bad_request(f"{req.method} takes no body; send the request without one")
    if len(data) > MAX_BODY:
        raise RefusedRequest(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the request is larger than {MAX_BODY} bytes"
        )
    req.body = data


def parse_json(data: bytes) -> Any:
    """Parse the JSON body of a request.

    :raises RefusedRequest: if the body is not valid JSON, is nested too deep, or has characters
        that the database cannot store.
    """
    try:
        body = json.loads(data.decode(), parse_constant=_finite, parse_float=_finite)
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        raise bad_request(f"the request is not valid JSON: {error}") from error
    _check_strings(body)
    return body


def link(path: str, query: list[tuple[str, str]]) -> str:
    """Return a relative link: a path with parameters.

    :param path: the path.
    :param query: the parameters, each as name and value.
    """
    return f"{path}?{urllib.parse.urlencode(query)}"


def _conforming(value: Any, schema: Mapping[str, Any]) -> Any:
    # Only the first error is reported, since the search for the most relevant error takes long.
    error = next(_Validator(schema).iter_errors(value), None)
    if error is not None:
        place = "/".join(map(str, error.absolute_path)) or "the request"
        raise bad_request(f"{place[:200]}: {error.message[:200]}")
    return value


def _find_errors_in_items(
    validator: Any, items: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[Any]:
    """Find the errors in the elements of a list, as jsonschema does, but faster if there are none.

    jsonschema needs some microseconds for each string, and lets no other green thread run. A query
    may have 200,000 pinned versions.
    """
    is_list = isinstance(instance, list)
    if is_list and items == _STRING and all(isinstance(item, str) for item in instance):
        return
    yield from _ITEMS(validator, items, instance, schema)


_STRING = {"type": "string"}
_ITEMS = jsonschema.Draft202012Validator.VALIDATORS["items"]
_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator, {"items": _find_errors_in_items}
)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{quoted(text)} is not a finite number")
    return number


def _check_strings(value: Any, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise _too_deep()
    if isinstance(value, str):
        _check_characters(value, fields.UNSTORABLE)
    elif isinstance(value, list):
        for item in value:
            _check_strings(item, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_characters(key, _FORBIDDEN_IN_NAMES)
            _check_strings(item, depth + 1)


def _too_deep() -> RefusedRequest:
    return bad_request(f"the request is nested deeper than {MAX_DEPTH} levels")


def _check_characters(text: str, forbidden: re.Pattern[str]) -> None:
    if found := forbidden.search(text):
        raise bad_request(
            f"the request has a character that the service cannot store: {found[0]!a}"
        )
