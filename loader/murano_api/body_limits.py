# SPDX-License-Identifier: Apache-2.0

"""Limit the bodies of requests to murano-api, on all paths."""

import webob
from webob import exc

from glare_murano.package.sandbox import MAX_ANSWER

# The largest body without a file, in bytes. A body is a part of a model, and no cell of the engine
# returns a model that is larger.
MAX_BODY = MAX_ANSWER


def check_length(request: webob.Request) -> None:
    """Check that a request says how long its body is.

    :raises HTTPLengthRequired: if it does not.
    """
    if request.content_length is None and request.headers.get("Transfer-Encoding"):
        raise exc.HTTPLengthRequired(explanation="Send the header Content-Length")


def check_size(request: webob.Request) -> None:
    """Check that a body without a file is not too large. The body is not read.

    :raises HTTPRequestEntityTooLarge: if it is.
    """
    if (request.content_length or 0) > MAX_BODY:
        raise exc.HTTPRequestEntityTooLarge(
            explanation=f"The body has {request.content_length} bytes, at most {MAX_BODY} are "
            f"allowed; send applications in several requests"
        )
