# SPDX-License-Identifier: Apache-2.0

"""Serve the discovery document, which lists the versions of this project's API.

The document has the form that other OpenStack services use. Clients read it before they
authenticate, so no token is required. It also has the operator's choices for the checks of
packages, so that a client knows before an upload what the service refuses.
"""

import functools
from typing import Any

import webob

from glare_murano import wire
from glare_murano.service.routing import find_handler
from glare_murano.service.settings import Settings

ROOT = "/murano"


def show(req: webob.Request, settings: Settings) -> webob.Response | None:
    """Answer a request for the discovery document.

    For the path ``/murano``, the response lists the versions of the API. For ``/murano/v1``, it
    describes this version.

    :returns: the response; None for any other path.
    :raises RefusedRequest: with the status 405, if the method is not GET.
    """
    routes = {
        f"{path}{end}": {"GET": functools.partial(answer, settings=settings)}
        for path, answer in _ANSWERS.items()
        for end in ("", "/")
    }
    handler = find_handler(routes, req)
    return handler(req) if handler else None


def _list_versions(req: webob.Request, settings: Settings) -> webob.Response:
    return webob.Response(json={"versions": [_version(req, settings)]})


def _show_version(req: webob.Request, settings: Settings) -> webob.Response:
    return webob.Response(json={"version": _version(req, settings)})


def _version(req: webob.Request, settings: Settings) -> dict[str, Any]:
    return {
        "id": "v1",
        "status": "CURRENT",
        "min_version": "1.0",
        "max_version": "1.0",
        "links": [{"rel": "self", "href": f"{req.application_url}{wire.VERSION_PATH}/"}],
        "checks": {name: settings[name] for name in wire.CHECKS},
    }


_ANSWERS = {ROOT: _list_versions, wire.VERSION_PATH: _show_version}
