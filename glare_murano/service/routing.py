# SPDX-License-Identifier: Apache-2.0

"""Find the function that handles a request, in a table: path -> HTTP method -> function."""

from collections.abc import Callable, Mapping
from http import HTTPStatus

import webob

from glare_murano.service.refusals import RefusedRequest, wrong_method

Handler = Callable[[webob.Request], webob.Response]
Routes = Mapping[str, Mapping[str, Handler]]


def find_handler(routes: Routes, req: webob.Request) -> Handler | None:
    """Return the function that handles a request; None if the table does not have the path.

    :raises RefusedRequest: if the table has the path, but not the method. The response has the
        status 405 and the header ``Allow``.
    """
    methods = routes.get(req.path_info)
    if methods is None:
        return None
    if req.method not in methods:
        allowed = ", ".join(sorted(methods))
        message = wrong_method(req, allowed)
        raise RefusedRequest(HTTPStatus.METHOD_NOT_ALLOWED, message, {"Allow": allowed})
    return methods[req.method]
