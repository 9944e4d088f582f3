# SPDX-License-Identifier: Apache-2.0

"""The discovery document, which lists the versions of this API as in other OpenStack services.

Clients read the document before they authenticate, so no token is required.
"""

from http import HTTPStatus

import webob

_ROOT = "/murano"
_V1 = f"{_ROOT}/v1"


def show(req: webob.Request) -> webob.Response | None:
    """List the versions, or the version at ``/murano/v1``; return None for any other path."""
    path = req.path_info.removesuffix("/")
    if path not in (_ROOT, _V1):
        return None
    if req.method != "GET":
        return webob.Response(status=HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "GET"})
    version = {
        "id": "v1",
        "status": "CURRENT",
        "min_version": "1.0",
        "max_version": "1.0",
        "links": [{"rel": "self", "href": f"{req.application_url}{_V1}/"}],
    }
    return webob.Response(json={"versions": [version]} if path == _ROOT else {"version": version})
