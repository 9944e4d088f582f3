# SPDX-License-Identifier: Apache-2.0

"""The WSGI filter against malformed requests, and the reading of requests.

The filter stands in Glare's paste pipeline right behind ``faultwrapper``. For paths
of this project only, it refuses unreadable URLs and JSON bodies, and characters
that Glare's database cannot store. Uploads are not read, values not interpreted.

Every refusal on these paths is answered in the form of Glare's errors, and logged
in one line.
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
from oslo_log import log as logging
from webob import dec, exc

from glare_murano import fields
from glare_murano.glare import artifact, field_types, uploads
from glare_murano.package.errors import quoted

LOG = logging.getLogger(__name__)

_ARTIFACTS = f"/artifacts/{fields.TYPE_NAME}"
_PATHS = (_ARTIFACTS, "/murano")

MAX_BODY = 1024 * 1024
# Glare's WSGI server refuses longer URLs.
MAX_QUERY = 8192
MAX_DEPTH = 20
# Glare checks the whole field after each, and its lock lasts for five seconds.
MAX_OPERATIONS = 200

_JSON = "application/json"
_PATCH = "application/json-patch+json"
_LOCATION = "application/vnd+openstack.glare-custom-location+json"
_FORMS = ("application/x-www-form-urlencoded", "multipart/")

# Control characters may begin a new line in a log.
_FORBIDDEN_IN_NAMES = re.compile(f"{field_types.UNSTORABLE.pattern}|[\0-\x1f\x7f-\x9f\u2028\u2029]")


class ValidationFilter(fault.GlareFaultWrapperFilter):  # type: ignore[misc]
    """Refuses malformed requests with errors in Glare's form."""

    @dec.wsgify  # type: ignore[untyped-decorator]
    def __call__(self, req: webob.Request) -> webob.Response:
        """Check a request to a path of this project; pass on any other."""
        # Glare's router ignores a line break at the end.
        path = req.environ["PATH_INFO"].removesuffix("\n")
        if not any(path == ours or path.startswith(f"{ours}/") for ours in _PATHS):
            return req.get_response(self.application)
        try:
            check(req)
            response = req.get_response(self.application)
            if response.status_code < exc.HTTPBadRequest.code or response.content_type == _JSON:
                return response
            return _refuse(req, _error_of(req, response), response.headers)
        except exception.GlareException as refusal:
            error = self._error(refusal)
            if error["code"] >= exc.HTTPInternalServerError.code:
                raise
            return _refuse(req, error, {})


def check(req: webob.Request) -> None:
    """Refuse a malformed request, and leave its body readable.

    :raises glare.common.exception.GlareException: naming the mistake.
    """
    _check_url(req.environ)
    if req.method == "POST" and req.content_type.startswith(_FORMS):
        raise exception.UnsupportedMediaType(f"send {_JSON}, not {quoted(req.content_type)}")
    if req.method == "PUT":
        _check_upload(req)
    elif req.method == "PATCH" and req.content_type == _PATCH:
        _check_patch(_read_json(req))
    elif req.method == "POST" and req.content_type == _JSON and req.path_info == _ARTIFACTS:
        _check_fields(_read_json(req))


def read_body(req: webob.Request, schema: Mapping[str, Any]) -> Any:
    """Return the JSON body of a request.

    :raises glare.common.exception.GlareException: for malformed JSON, and for a
        violation of the schema.
    """
    return _conforming(_read_json(req), schema)


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


def _read_json(req: webob.Request) -> Any:
    data = req.body_file.read(MAX_BODY + 1)
    if len(data) > MAX_BODY:
        raise exception.RequestEntityTooLarge(f"the request is larger than {MAX_BODY} bytes")
    req.body = data
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
        raise exception.Forbidden("a package must be uploaded, since the server reads the package")
    if req.headers.get("Transfer-Encoding", "").lower() == "chunked":
        # Without a length, Glare would read an empty body.
        req.environ["wsgi.input_terminated"] = True
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


def _error_of(req: webob.Request, response: webob.Response) -> dict[str, Any]:
    """Return Glare's form of an error for an HTML response."""
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


def _refuse(
    req: webob.Request, error: dict[str, Any], headers: Mapping[str, str]
) -> webob.Response:
    path = urllib.parse.quote(req.environ["PATH_INFO"], encoding="latin-1")
    LOG.info("Refused %s %s: %d", req.method, path, error["code"])
    response = req.get_response(fault.Fault(error))
    for name, value in headers.items():
        if not name.lower().startswith("content-"):
            response.headers[name] = value
    return response
