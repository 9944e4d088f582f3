# SPDX-License-Identifier: Apache-2.0

"""The WSGI filter against malformed requests, and functions to read requests.

The filter stands in Glare's paste pipeline directly after ``faultwrapper``. On paths of
this project only, it refuses malformed URLs and JSON bodies, and characters that Glare's
database cannot store. It does not read uploads.

Every refusal on these paths is answered in the form of Glare's errors, and logged
in one line. The filter also answers the discovery document, which needs no token.
"""

import json
import math
import re
import urllib.parse
from collections.abc import Mapping
from typing import Any

import jsonpatch
import jsonpointer
import jsonschema
import webob
from glare.api.middleware import fault
from glare.common import exception
from webob import dec, exc

from glare_murano import fields, wire
from glare_murano.glare import artifact, field_types, uploads
from glare_murano.glare.api import discovery, lists, refusal_log
from glare_murano.package.errors import quoted

_BLOB = re.compile(f"{lists.PATH}/[^/]*/.*")
_PATHS = (lists.PATH, "/murano")
# Paths that take a JSON body, and read it themselves.
_QUERIES = (wire.ARCHIVES_PATH, wire.DEPENDENCIES_PATH, wire.PUBLICATIONS_PATH)

MAX_BODY = 1024 * 1024
# Glare's WSGI server refuses longer URLs.
MAX_QUERY = 8192
MAX_DEPTH = 20
# Glare checks the whole field after each operation, and its lock expires after five seconds.
MAX_OPERATIONS = 200

# Glare's message for a name and version that another artifact has, and ours.
_TAKEN = "Artifact with this name and version is already exists for this scope."
_TAKEN_BY = {
    "POST": "the project has a private package of this name and version already; find it by "
    "the filters name and version, and continue with it, or delete it",
    "PATCH": "another package of this name and version is public already; publish another version",
}

# The mark that the filter leaves in a request.
_CHECKED = "glare_murano.checked"

ARTIFACT_ID = {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}

_JSON = "application/json"
PATCH = "application/json-patch+json"
_LOCATION = "application/vnd+openstack.glare-custom-location+json"
_FORMS = ("application/x-www-form-urlencoded", "multipart/")

_FORBIDDEN_IN_NAMES = re.compile(f"{field_types.UNSTORABLE.pattern}|{fields.CONTROL_CHARACTERS}")


class ValidationFilter(fault.GlareFaultWrapperFilter):  # type: ignore[misc]
    """Refuses malformed requests with errors in Glare's form."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        refusal_log.install()

    @dec.wsgify  # type: ignore[untyped-decorator]
    def __call__(self, req: webob.Request) -> webob.Response:
        """Check a request to a path of this project; pass on any other."""
        # Glare's router ignores a line break at the end.
        path = req.environ["PATH_INFO"].removesuffix("\n")
        if not any(path == ours or path.startswith(f"{ours}/") for ours in _PATHS):
            return req.get_response(self.application)
        with refusal_log.without_repetitions():
            return self._answer(req)

    def _answer(self, req: webob.Request) -> webob.Response:
        try:
            check(req)
            req.environ[_CHECKED] = True
            response = discovery.show(req) or req.get_response(self.application)
        except exception.GlareException as refusal:
            error = self._error(refusal)
            if error["error"]["message"] == _TAKEN:
                error["error"]["message"] = _TAKEN_BY[req.method]
            if error["code"] >= exc.HTTPInternalServerError.code:
                raise
            return _refuse(req, error, {}, refusal)
        if response.status_code < exc.HTTPBadRequest.code or response.content_type == _JSON:
            return response
        return _refuse(req, _error_of(req, response), response.headers)


def has_checked(req: webob.Request) -> bool:
    """Return whether a request to a path of this project has passed the filter."""
    return _CHECKED in req.environ


def check(req: webob.Request) -> None:
    """Refuse a malformed request, and leave its body readable.

    :raises glare.common.exception.GlareException: naming the mistake.
    """
    _check_url(req.environ)
    if req.headers.get("Transfer-Encoding", "").lower() == "chunked":
        # Without a length, webob would read an empty body.
        req.environ["wsgi.input_terminated"] = True
    if req.method == "PUT" and _BLOB.fullmatch(req.path_info):
        _check_upload(req)
        return
    if req.method == "POST" and req.content_type.startswith(_FORMS):
        raise exception.UnsupportedMediaType(f"send {_JSON}, not {quoted(req.content_type)}")
    if req.is_body_readable:
        _check_body(req)
    if req.method == "PATCH" and req.content_type == PATCH:
        _check_patch(_parse_json(req.body))
    elif req.method == "POST" and req.content_type == _JSON and req.path_info == lists.PATH:
        _check_fields(_parse_json(req.body))
    elif req.is_body_readable and req.path_info not in _QUERIES:
        # Glare refuses the request, but parses the body first, and fails if it is too deep.
        req.body = b"{}"


def read_body(req: webob.Request, schema: Mapping[str, Any]) -> Any:
    """Return the JSON body of a request.

    :raises glare.common.exception.GlareException: for malformed JSON, and for a
        violation of the schema.
    """
    return _conforming(_parse_json(req.body), schema)


def read_parameters(req: webob.Request, schema: Mapping[str, Any]) -> Any:
    """Return the parameters of a request's URL, with lists for repeated names.

    :raises glare.common.exception.BadRequest: if they violate the schema.
    """
    parameters = req.GET.mixed()
    _check_strings(parameters)
    return _conforming(parameters, schema)


def _conforming(value: Any, schema: Mapping[str, Any]) -> Any:
    # The first error is enough: finding the most relevant one takes time for each error.
    error = next(jsonschema.Draft202012Validator(schema).iter_errors(value), None)
    if error is not None:
        place = "/".join(map(str, error.absolute_path)) or "the request"
        raise exception.BadRequest(f"{place[:200]}: {error.message[:200]}")
    return value


def _check_body(req: webob.Request) -> None:
    try:
        data = req.body_file.read(MAX_BODY + 1)
    except (OSError, ValueError) as error:
        raise exception.BadRequest(f"the body of the request is incomplete: {error}") from error
    if data and req.method in ("GET", "HEAD", "DELETE"):
        raise exception.BadRequest(f"{req.method} takes no body; send the request without one")
    if len(data) > MAX_BODY:
        raise exception.RequestEntityTooLarge(f"the request is larger than {MAX_BODY} bytes")
    req.body = data


def _parse_json(data: bytes) -> Any:
    try:
        body = json.loads(data.decode(), parse_constant=_finite, parse_float=_finite)
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        raise exception.BadRequest(f"the request is not valid JSON: {error}") from error
    _check_strings(body)
    return body


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{quoted(text)} is not a finite number")
    return number


def _check_strings(value: Any, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise _too_deep()
    if isinstance(value, str):
        _check_characters(value, field_types.UNSTORABLE)
    elif isinstance(value, list):
        for item in value:
            _check_strings(item, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_characters(key, _FORBIDDEN_IN_NAMES)
            _check_strings(item, depth + 1)


def _too_deep() -> exception.BadRequest:
    return exception.BadRequest(f"the request is nested deeper than {MAX_DEPTH} levels")


def _check_characters(text: str, forbidden: re.Pattern[str]) -> None:
    if found := forbidden.search(text):
        raise exception.BadRequest(
            f"the request has a character that Glare cannot store: {found[0]!a}"
        )


def _check_url(environ: dict[str, Any]) -> None:
    query = environ.get("QUERY_STRING", "")
    if len(query) > MAX_QUERY:
        raise exception.BadRequest(f"the query is longer than {MAX_QUERY} characters")
    try:
        path = environ["PATH_INFO"].encode("latin-1").decode()
        parameters = urllib.parse.unquote(query, errors="strict")
    except UnicodeError as error:
        raise exception.BadRequest("the URL is not in UTF-8") from error
    _check_characters(path + parameters, _FORBIDDEN_IN_NAMES)
    # Glare's router would read it as the method, and read forms to find it.
    if "_method" in urllib.parse.parse_qs(query, keep_blank_values=True):
        raise exception.BadRequest("_method is not a filter; send the method itself")


def _check_upload(req: webob.Request) -> None:
    if req.content_type == _LOCATION:
        # An archive on another server could change at any time.
        raise exception.Forbidden("a package must be uploaded, since the server reads the package")
    uploads.check_size(req.content_length or 0)


def _check_patch(body: Any) -> None:
    try:
        jsonpatch.JsonPatch(body)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
        raise exception.BadRequest(f"the request is not a valid JSON patch: {error}") from error
    if len(body) > MAX_OPERATIONS:
        raise exception.BadRequest(
            f"the patch has more than {MAX_OPERATIONS} operations; replace whole fields"
        )


def _check_fields(body: Any) -> None:
    if not isinstance(body, dict):
        raise exception.BadRequest("the request is not a JSON object")
    # Glare sets every key as an attribute, even one that names a method.
    unknown = sorted(set(body) - set(artifact.MuranoPackageArtifact.fields))
    if unknown:
        raise exception.BadRequest(f"a package has no field {quoted(unknown[0])}")
    if "version" not in body:
        raise exception.BadRequest(
            "version is missing: send the Version of the package's manifest, 0.0.0 if it has none"
        )


def _error_of(req: webob.Request, response: webob.Response) -> dict[str, Any]:
    """Return Glare's form of an error for an HTML response."""
    status = exc.status_map[response.status_code]
    reason = status.explanation or status.title
    if allowed := response.headers.get("Allow"):
        reason = f"the method is not allowed; use {allowed}"
    return {
        "code": status.code,
        "title": status.title,
        "explanation": status.explanation,
        "error": {
            "message": f"{req.method} {req.path}: {reason}",
            "type": status.title.replace(" ", ""),
        },
    }


def _refuse(
    req: webob.Request,
    error: dict[str, Any],
    headers: Mapping[str, str],
    cause: BaseException | None = None,
) -> webob.Response:
    refusal_log.write(req, error["code"], error["error"]["message"], cause)
    response = req.get_response(fault.Fault(error))
    for name, value in headers.items():
        if not name.lower().startswith("content-"):
            response.headers[name] = value
    return response
