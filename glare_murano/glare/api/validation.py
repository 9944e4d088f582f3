# SPDX-License-Identifier: Apache-2.0

"""The WSGI filter that refuses what Glare would fail on, before Glare sees it.

It stands in Glare's paste pipeline right behind ``faultwrapper``, and looks at
this project's paths alone: whether the URL and a JSON body can be read, and
hold nothing that Glare's database cannot. What the values mean is left to the
artifact type and to the dependency queries, and an upload is not read here.

Every refusal on these paths, whoever raised it, is answered as Glare answers
errors, and takes one line of the log.
"""

import json
import math
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

import jsonpatch
import jsonpointer
from glare.api.middleware import fault
from glare.common import exception
from oslo_log import log as logging
from webob import dec, exc

from glare_murano import fields
from glare_murano.glare import artifact, field_types
from glare_murano.package.errors import quoted

LOG = logging.getLogger(__name__)

ARTIFACTS = f"/artifacts/{fields.TYPE_NAME}"
QUERIES = "/murano"

MAX_BODY = 1024 * 1024
# The WSGI server that comes with Glare reads no longer URLs.
MAX_QUERY = 8192
MAX_DEPTH = 20
# Glare checks the whole field after each, and its lock lasts for five seconds.
MAX_OPERATIONS = 200

_JSON = "application/json"
_PATCH = "application/json-patch+json"
_LOCATION = "application/vnd+openstack.glare-custom-location+json"
_FORMS = ("application/x-www-form-urlencoded", "multipart/")

# What has no place in a name, and would start a new line in a log.
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")


class RequestsFilter(fault.GlareFaultWrapperFilter):  # type: ignore[misc]
    """Refuses malformed requests, and says so in Glare's form."""

    @dec.wsgify  # type: ignore[untyped-decorator]
    def __call__(self, req: Any) -> Any:
        """Check a request to one of this project's paths; pass on any other."""
        if not _is_ours(req.environ["PATH_INFO"]):
            return req.get_response(self.application)
        try:
            check(req)
            response = req.get_response(self.application)
            if response.status_code < exc.HTTPBadRequest.code or response.content_type == _JSON:
                return response
            return _answer(req, _told(req, response), response.headers)
        except exception.GlareException as refusal:
            error = self._error(refusal)
            if error["code"] >= exc.HTTPInternalServerError.code:
                raise
            return _answer(req, error)


def check(req: Any) -> None:
    """Refuse what is malformed, and leave the rest as it was.

    :raises glare.common.exception.GlareException: telling what is wrong.
    """
    _check_url(req.environ)
    if req.method == "POST" and req.content_type.startswith(_FORMS):
        raise exception.UnsupportedMediaType(
            message=f"send {_JSON}, not {quoted(req.content_type)}"
        )
    if req.method == "PUT":
        _check_upload(req)
    elif req.method == "PATCH" and req.content_type == _PATCH:
        _check_patch(json_body(req))
    elif req.method == "POST" and req.content_type == _JSON and req.path_info == ARTIFACTS:
        _check_fields(json_body(req))


def check_form(validator: Any, body: Any) -> None:
    """Refuse a body that is not as a schema says, by the first thing that is wrong.

    To look for what is worst takes as long as a body has mistakes.

    :param validator: of jsonschema. Of a list it had better know the length
        before the items.
    :raises glare.common.exception.BadRequest: telling what is wrong where.
    """
    error = next(validator.iter_errors(body), None)
    if error is not None:
        place = "/".join(map(str, error.absolute_path)) or "the request"
        raise exception.BadRequest(message=f"{place[:200]}: {error.message[:200]}")


def json_body(req: Any) -> Any:
    """The body of a request, which can be read again afterwards.

    :raises glare.common.exception.GlareException: if it is too large, no JSON,
        or holds characters that Glare cannot keep.
    """
    data = req.body_file.read(MAX_BODY + 1)
    if len(data) > MAX_BODY:
        raise exception.RequestEntityTooLarge(
            message=f"the request is larger than {MAX_BODY} bytes"
        )
    req.body = data
    try:
        body = json.loads(data.decode(), parse_constant=_finite, parse_float=_finite)
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        raise exception.BadRequest(message=f"the request is no JSON: {error}") from error
    for text, is_key in _texts(body):
        check_characters(text, is_key)
    return body


def _is_ours(path: str) -> bool:
    # Glare's router does not see a line break at the end.
    path = path.removesuffix("\n")
    return any(path == ours or path.startswith(f"{ours}/") for ours in (ARTIFACTS, QUERIES))


def _check_url(environ: dict[str, Any]) -> None:
    query = environ.get("QUERY_STRING", "")
    if len(query) > MAX_QUERY:
        raise exception.BadRequest(message=f"the query is longer than {MAX_QUERY} characters")
    try:
        path = environ["PATH_INFO"].encode("latin-1").decode()
        parameters = urllib.parse.unquote(query, errors="strict")
    except UnicodeError as error:
        raise exception.BadRequest(message="the URL is not in UTF-8") from error
    check_characters(path, is_name=True)
    check_characters(parameters, is_name=True)
    # Glare's router would take it for the method, and read forms to find it.
    if "_method" in urllib.parse.parse_qs(query, keep_blank_values=True):
        raise exception.BadRequest(message="_method is no filter; send the method itself")


def _check_upload(req: Any) -> None:
    if req.content_type == _LOCATION:
        raise exception.Forbidden(message="a package must be uploaded: it is read by the server")
    if req.headers.get("Transfer-Encoding", "").lower() == "chunked":
        # Without a length, Glare would take the body for empty.
        req.environ["wsgi.input_terminated"] = True
    limit = artifact.MuranoPackageArtifact.get_max_blob_size(fields.ARCHIVE)
    if (req.content_length or 0) > limit:
        raise artifact.archive_too_large(limit)


def _check_patch(body: Any) -> None:
    try:
        jsonpatch.JsonPatch(body)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
        raise exception.BadRequest(message=f"the request is no JSON patch: {error}") from error
    if len(body) > MAX_OPERATIONS:
        raise exception.BadRequest(
            message=f"the patch has more than {MAX_OPERATIONS} operations; replace whole fields"
        )


def _check_fields(body: Any) -> None:
    if not isinstance(body, dict):
        raise exception.BadRequest(message="the request is no JSON object")
    # Glare sets whatever it is given as an attribute, its own methods included.
    unknown = sorted(set(body) - set(artifact.MuranoPackageArtifact.fields))
    if unknown:
        raise exception.BadRequest(message=f"a package has no field {quoted(unknown[0])}")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{quoted(text)} is no number that can be kept")
    return number


def _texts(value: Any, depth: int = 0) -> Iterator[tuple[str, bool]]:
    """Every text of a JSON document, and whether it is a key."""
    if depth > MAX_DEPTH:
        raise _too_deep()
    if isinstance(value, str):
        yield value, False
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key, True
            yield from _texts(item, depth + 1)


def check_characters(text: str, is_name: bool) -> None:
    """Refuse a text with characters that have no place in it.

    :param is_name: whether it names something, and so has no control characters.
    :raises glare.common.exception.BadRequest: with the first one.
    """
    found = field_types.UNSTORABLE.search(text) or (_CONTROL.search(text) if is_name else None)
    if found:
        raise exception.BadRequest(
            message=f"the request holds a character that Glare cannot keep: {found[0]!a}"
        )


def _too_deep() -> exception.BadRequest:
    return exception.BadRequest(message=f"the request is nested deeper than {MAX_DEPTH} levels")


def _told(req: Any, response: Any) -> dict[str, Any]:
    """An error that Glare tells as HTML, in the form of its other errors."""
    status = exc.status_map[response.status_code]
    return {
        "code": status.code,
        "title": status.title,
        "explanation": status.explanation,
        "error": {
            "message": f"{req.method} {req.path}: {status.explanation or status.title}",
            "type": status.title.replace(" ", ""),
        },
    }


def _answer(req: Any, error: dict[str, Any], headers: Mapping[str, str] | None = None) -> Any:
    path = urllib.parse.quote(req.environ["PATH_INFO"], encoding="latin-1")
    LOG.info("Refused %s %s: %d", req.method, path, error["code"])
    answer = req.get_response(fault.Fault(error))
    for name, value in (headers or {}).items():
        if not name.lower().startswith("content-"):
            answer.headers[name] = value
    return answer
