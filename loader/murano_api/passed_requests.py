# SPDX-License-Identifier: Apache-2.0

"""Check the bodies of requests that the filter passes on to Murano.

Murano reads a body of any size, and parses it by its content type, on every path. It does so before
it checks a policy.
"""

import json
from typing import Any

import webob
from webob import exc

from glare_murano.package.errors import quoted
from loader.murano_api import body_limits

_JSON = "application/json"
_PATCH = "application/env-model-json-patch"
_PATCH_OF_PACKAGE = "application/murano-packages-json-patch"
_FORMS = ("application/x-www-form-urlencoded", "multipart/")


def check(request: webob.Request) -> None:
    """Check the body of a request. After this call, the body can be read again.

    Only the patch of a model is read. Murano would check its schema for each of the changes.

    :raises HTTPBadRequest: if a patch is not valid JSON, or has too many changes.
    :raises HTTPLengthRequired: if the request does not say how long the body is.
    :raises HTTPRequestEntityTooLarge: if the body is too large.
    :raises HTTPUnsupportedMediaType: if the body is the patch of a package, or an HTML form. In a
        patch, Murano would compare each element of a list with all others. In a form, its router
        would look for ``_method``, and webob's parser takes a time that grows with the square of a
        header's size. No request of Murano's API is a form, except uploads of packages.
    """
    body_limits.check_length(request)
    if not request.content_length:
        return
    kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind.startswith(_FORMS):
        raise exc.HTTPUnsupportedMediaType(
            detail=f"The request is a form, of the type {quoted(kind)}; send {_JSON}"
        )
    if kind == _PATCH_OF_PACKAGE:
        raise exc.HTTPUnsupportedMediaType(
            detail=f"The request changes no package, but has the type {quoted(kind)}; send {_JSON}"
        )
    if kind == _PATCH:
        body_limits.check_size(request, body_limits.MAX_PATCH, "send fewer changes")
        body_limits.check_changes(_parse(request.body))
    else:
        body_limits.check_size(request, body_limits.MAX_BODY, "send applications separately")


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (RecursionError, ValueError) as error:
        raise exc.HTTPBadRequest(explanation=f"The patch is not valid JSON: {error}") from error
