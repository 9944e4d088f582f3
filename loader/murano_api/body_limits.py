# SPDX-License-Identifier: Apache-2.0

"""Limit the bodies of requests to murano-api, on all paths."""

from typing import Any

import webob
from webob import exc

from glare_murano.package.sandbox import MAX_ANSWER

# The largest body without a file, in bytes. A body is a part of a model, and no cell of the engine
# returns a model that is larger.
MAX_BODY = MAX_ANSWER
# The largest JSON patch, in bytes. If a value in it is not valid, Murano formats it for its log.
MAX_PATCH = 256 * 1024
# The largest number of changes in a request. Murano checks its schema for each of them.
MAX_CHANGES = 200


def check_length(request: webob.Request) -> None:
    """Check that a request says how long its body is.

    :raises HTTPLengthRequired: if it does not.
    """
    if request.content_length is None and request.headers.get("Transfer-Encoding"):
        raise exc.HTTPLengthRequired(explanation="Send the header Content-Length")


def check_size(request: webob.Request, limit: int, remedy: str) -> None:
    """Check that a body is not too large. The body is not read.

    :param limit: the largest size, in bytes.
    :param remedy: what the client can do, for the error.
    :raises HTTPRequestEntityTooLarge: if it is.
    """
    if (request.content_length or 0) > limit:
        raise exc.HTTPRequestEntityTooLarge(
            explanation=f"The body has {request.content_length} bytes, at most {limit} are "
            f"allowed; {remedy}"
        )


def check_changes(changes: Any) -> None:
    """Check the number of changes in a JSON patch; Murano checks everything else.

    :raises HTTPBadRequest: if there are too many.
    """
    if isinstance(changes, list) and len(changes) > MAX_CHANGES:
        raise exc.HTTPBadRequest(explanation=f"A request has at most {MAX_CHANGES} changes")
