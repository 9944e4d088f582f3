# SPDX-License-Identifier: Apache-2.0

"""Refuse malformed requests in a WSGI filter.

The filter stands in Glare's paste pipeline directly after ``faultwrapper``. On paths of this
project and of Glare's type ``all``, it refuses malformed URLs and JSON bodies, and characters that
Glare's database cannot store. On all paths, it refuses the character NUL in a URL, HTML forms, and
large bodies. It does not read uploaded archives and other uploads.

The filter answers every refusal of its own in the form of Glare's errors, and logs it in one line.
On these paths, it does so for other refusals too. The filter also serves the discovery
document, which needs no token.
"""

import re
import urllib.parse
from typing import Any

import jsonpatch
import jsonpointer
import webob
from glare.common import exception
from oslo_middleware import base as base_middleware
from webob import dec

from glare_murano.glare import artifact, uploads
from glare_murano.glare.api import list_links, refusal_log, responses
from glare_murano.glare.options import SETTINGS
from glare_murano.package.errors import quoted
from glare_murano.service import discovery, request_reading
from glare_murano.service.request_reading import JSON

_BLOB = re.compile(f"{list_links.PATH}/[^/]*/.*")
_PATHS = (list_links.PATH, list_links.PATH_OF_ALL, discovery.ROOT)
# Below this path, Glare stores the body of a PUT request, unless its type is ``_LOCATION``.
_ARTIFACTS = "/artifacts/"

# The largest number of operations in a patch. Glare checks the whole field after each operation,
# and its lock expires after five seconds.
MAX_OPERATIONS = 200

# The key in the WSGI environment by which the filter marks a request as checked.
_CHECKED = "glare_murano.checked"

PATCH = "application/json-patch+json"
_LOCATION = "application/vnd+openstack.glare-custom-location+json"


class ValidationFilter(base_middleware.ConfigurableMiddleware):
    """The WSGI filter that refuses malformed requests with errors in Glare's form."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        refusal_log.install()

    @dec.wsgify  # type: ignore[untyped-decorator]
    def __call__(self, req: webob.Request) -> webob.Response:
        """Check a request, and pass it on to Glare.

        If the path is not one of ``_PATHS``, only ``_check_other`` checks it, and Glare's answer
        stays as it is.
        """
        # A line break at the end is ignored, as in Glare's router.
        path = req.environ["PATH_INFO"].removesuffix("\n")
        is_ours = any(path == ours or path.startswith(f"{ours}/") for ours in _PATHS)
        if not is_ours:
            refused = responses.refused(req, lambda: _check_other(req))
            return refused or req.get_response(self.application)
        with refusal_log.without_repetitions():
            return responses.answer(req, lambda: self._respond(req))

    def _respond(self, req: webob.Request) -> webob.Response:
        check(req)
        req.environ[_CHECKED] = True
        return discovery.show(req, SETTINGS) or req.get_response(self.application)


def has_checked(req: webob.Request) -> bool:
    """Return whether this filter has checked a request completely.

    The filter does so for all requests to ``_PATHS``.
    """
    return _CHECKED in req.environ


def check(req: webob.Request) -> None:
    """Check that a request is well-formed. After this call, its body can be read again.

    :raises glare.common.exception.GlareException: if the request is malformed.
    :raises RefusedRequest: if the request is malformed.
    """
    _check_url(req.environ)
    request_reading.allow_chunks(req)
    if req.method == "PUT" and _BLOB.fullmatch(req.path_info):
        _check_upload(req)
        return
    request_reading.check_content_type(req)
    if req.is_body_readable:
        request_reading.check_body(req)
    if req.method == "PATCH" and req.content_type == PATCH:
        _check_patch(request_reading.parse_json(req.body))
    elif req.method == "POST" and req.content_type == JSON and req.path_info == list_links.PATH:
        _check_fields(request_reading.parse_json(req.body))
    elif req.method == "POST" and req.path_info == list_links.PATH_OF_ALL:
        raise exception.Forbidden(
            "artifacts of the type all are read only; send the request to the path of their type"
        )
    elif req.is_body_readable and not req.path_info.startswith(f"{discovery.ROOT}/"):
        # Glare refuses the request, but parses the body first, and fails on deeply nested JSON. So
        # the body is replaced.
        req.body = b"{}"


def _check_other(req: webob.Request) -> None:
    """Check a request to a path that only Glare answers.

    Glare parses forms and JSON of any size before it looks at the path and the policies, and serves
    no other request meanwhile. A form of 1 MiB can take more than a second.

    :raises RefusedRequest: if the URL has the character NUL, or if the body is a form or too large.
    """
    request_reading.check_nul(req.environ)
    request_reading.check_content_type(req)
    is_below = req.path_info.startswith(_ARTIFACTS)
    is_upload = req.method == "PUT" and is_below and req.content_type != _LOCATION
    if req.is_body_readable and not is_upload:
        request_reading.check_body(req)


def _check_url(environ: dict[str, Any]) -> None:
    request_reading.check_url(environ)
    query = environ.get("QUERY_STRING", "")
    # Glare's router would use the value of ``_method`` as the HTTP method, and would read HTML
    # forms to find it.
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
    # The keys are checked, since Glare would set each of them as an attribute, even the name of a
    # method.
    unknown = sorted(set(body) - set(artifact.MuranoPackageArtifact.fields))
    if unknown:
        raise exception.BadRequest(f"a package has no field {quoted(unknown[0])}")
    if "version" not in body:
        raise exception.BadRequest(
            "version is missing: send the Version of the package's manifest, 0.0.0 if it has none"
        )
