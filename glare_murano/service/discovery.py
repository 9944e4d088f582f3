# SPDX-License-Identifier: Apache-2.0

"""The discovery document, which lists the versions of this API as in other OpenStack services.

Clients read the document before they authenticate, so no token is required.
"""

from typing import Any

import webob

from glare_murano.service.routing import Routes, find_handler

ROOT = "/murano"
_V1 = f"{ROOT}/v1"


def show(req: webob.Request) -> webob.Response | None:
    """List the versions, or the version at ``/murano/v1``; return None for any other path.

    :raises RefusedRequest: with 405, for any other method.
    """
    handler = find_handler(_ROUTES, req)
    return handler(req) if handler else None


def _list_versions(req: webob.Request) -> webob.Response:
    return webob.Response(json={"versions": [_version(req)]})


def _show_version(req: webob.Request) -> webob.Response:
    return webob.Response(json={"version": _version(req)})


def _version(req: webob.Request) -> dict[str, Any]:
    return {
        "id": "v1",
        "status": "CURRENT",
        "min_version": "1.0",
        "max_version": "1.0",
        "links": [{"rel": "self", "href": f"{req.application_url}{_V1}/"}],
    }


_ROUTES: Routes = {
    ROOT: {"GET": _list_versions},
    f"{ROOT}/": {"GET": _list_versions},
    _V1: {"GET": _show_version},
    f"{_V1}/": {"GET": _show_version},
}
