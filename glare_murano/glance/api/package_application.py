# SPDX-License-Identifier: Apache-2.0

"""Serve this project's API beside Glance's own, in a WSGI application with a filter in front of it.

The application and the filter stand in the pipeline of ``glance-api-paste.ini`` that serves
``/murano``. The filter comes first, since the discovery document needs no token. The application
comes after Glance's filters ``authtoken`` and ``context``. See ``doc/openapi.yaml`` for the API.
"""

import urllib.parse
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import webob
from oslo_log import log as logging
from webob import dec

from glare_murano import wire
from glare_murano.glance import image_events, internals, start_checks
from glare_murano.glance.api import (
    callers,
    image_archives,
    image_deletions,
    image_lookups,
    image_publications,
    image_yanks,
)
from glare_murano.glance.options import SETTINGS
from glare_murano.package.errors import shown
from glare_murano.service import discovery, notifications, refusals, request_reading
from glare_murano.service.refusals import RefusedRequest
from glare_murano.service.routing import Routes, find_handler

LOG = logging.getLogger(__name__)

_MOUNT = "/murano"
_FAILED = "the request failed in the service; see the log of the service"


class RequestFilter:
    """A WSGI filter that refuses malformed requests, and serves the discovery document.

    The responses for errors are JSON.
    """

    def __init__(self, application: Any) -> None:
        self._application = application

    @classmethod
    def factory(cls, _: Any, **options: str) -> type["RequestFilter"]:
        """Return the class of the filter, for paste.deploy."""
        return cls

    @dec.wsgify  # type: ignore[untyped-decorator]
    def __call__(self, req: webob.Request) -> webob.Response:
        """Check a request, and pass it on."""
        _unmount(req)
        return _answer(req, lambda: self._respond(req))

    def _respond(self, req: webob.Request) -> webob.Response:
        _check(req)
        return discovery.show(req, SETTINGS) or req.get_response(self._application)


class PackageApplication:
    """The WSGI application that serves ``ROUTES``."""

    def __init__(self) -> None:
        """Make the application.

        :raises RuntimeError: if an option is not valid or missing. Then Glance does not start.
        """
        start_checks.check()
        SETTINGS.check()

    @classmethod
    def factory(cls, _: Any, **options: str) -> "PackageApplication":
        """Return the application, for paste.deploy."""
        return cls()

    @dec.wsgify  # type: ignore[untyped-decorator]
    def __call__(self, req: webob.Request) -> webob.Response:
        """Answer a request.

        Refusals become responses here, so that filters in front of the application, such as an
        audit, see them.
        """
        response = _answer(req, lambda: _handle(req))
        packages = notifications.changed_packages(req)
        if packages is not None and notifications.is_refusal(response):
            message = response.json["error"]["message"]
            image_events.send_refusal(req, response.status_code, message, packages)
        return response


def _handle(req: webob.Request) -> webob.Response:
    handler = find_handler(ROUTES, req)
    if handler is None:
        return webob.Response(status=HTTPStatus.NOT_FOUND)
    callers.of(req).check_list()
    return handler(req)


ROUTES: Routes = {
    wire.ARCHIVES_PATH: {"POST": image_archives.download},
    wire.CATEGORIES_PATH: {"GET": image_lookups.list_categories},
    wire.DELETIONS_PATH: {"POST": image_deletions.find},
    wire.DEPENDENCIES_PATH: {"POST": image_lookups.resolve},
    wire.PACKAGES_PATH: {"GET": image_lookups.list_packages},
    wire.PUBLICATIONS_PATH: {"POST": image_publications.publish},
    wire.SUBCLASSES_PATH: {"GET": image_lookups.list_subclasses},
    wire.YANKS_PATH: {"POST": image_yanks.yank},
}


def _unmount(req: webob.Request) -> None:
    """Restore the path of a request, which Paste has split into two parts."""
    # The WSGI environment is used, since webob cannot read a path that is not UTF-8.
    environ = req.environ
    mounted_at = environ.get("SCRIPT_NAME", "")
    if mounted_at.endswith(_MOUNT):
        environ["SCRIPT_NAME"] = mounted_at.removesuffix(_MOUNT)
        environ["PATH_INFO"] = _MOUNT + environ["PATH_INFO"]


def _check(req: webob.Request) -> None:
    request_reading.check_url(req.environ)
    request_reading.allow_chunks(req)
    request_reading.check_content_type(req)
    if req.is_body_readable:
        request_reading.check_body(req)


def _answer(req: webob.Request, respond: Callable[[], webob.Response]) -> webob.Response:
    """Return the response of a function. Exceptions and error responses become JSON."""
    try:
        response = respond()
    except RefusedRequest as refusal:
        error = refusals.document(refusal.status, str(refusal))
        return _refuse(req, error, refusal.headers)
    except internals.ImagesBusy:
        return _refuse(req, refusals.document(HTTPStatus.CONFLICT, internals.BUSY), {})
    except Exception:
        LOG.exception("%s %s failed", req.method, req.path)
        error = refusals.document(HTTPStatus.INTERNAL_SERVER_ERROR, _FAILED)
        return webob.Response(status=error["code"], json=error)
    is_error = response.status_code >= HTTPStatus.BAD_REQUEST
    if not is_error or response.content_type == request_reading.JSON:
        return response
    kept = {"Allow", "WWW-Authenticate"}
    headers = {name: value for name, value in response.headers.items() if name in kept}
    return _refuse(req, refusals.document_of(req, response), headers)


def _refuse(
    req: webob.Request, error: dict[str, Any], headers: Mapping[str, str]
) -> webob.Response:
    path = urllib.parse.quote(req.environ["PATH_INFO"], encoding="latin-1")
    message = shown(error["error"]["message"].replace("\n", " "))
    LOG.info("Refused %s %s with %d: %s", req.method, path, error["code"], message)
    response = webob.Response(status=error["code"], json=error)
    response.headers.update(headers)
    return response
