# SPDX-License-Identifier: Apache-2.0

"""Check the bodies of requests that the filter passes on to Murano.

Murano reads a body of any size, and parses it by its content type, on every path. It does so before
it checks a policy.
"""

import webob
from webob import exc

from glare_murano.package.errors import quoted
from loader.murano_api import body_limits

_JSON = "application/json"
_FORMS = ("application/x-www-form-urlencoded", "multipart/")


def check(request: webob.Request) -> None:
    """Check the body of a request. The body is not read.

    :raises HTTPLengthRequired: if the request does not say how long the body is.
    :raises HTTPRequestEntityTooLarge: if the body is too large.
    :raises HTTPUnsupportedMediaType: if the body is an HTML form. Murano's router looks for
        ``_method`` in each form, and webob's parser takes a time that grows with the square of a
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
    body_limits.check_size(request)
