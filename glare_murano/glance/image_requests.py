# SPDX-License-Identifier: Apache-2.0

"""The filter to check requirements when Glance's own API changes a package.

The filter stands behind ``context`` in Glance's pipeline. The checked requests delete, deactivate,
reactivate, rename, give away or publicize a package, or withdraw a package from the public.
Requests for other images, and requests refused by Glance anyway, pass unchanged.
"""

import json
import re
from http import HTTPStatus
from typing import Any

import webob
from oslo_log import log as logging
from webob import dec

from glare_murano import images, wire
from glare_murano.glance import callers, image_publications, internals
from glare_murano.glance.image_rows import ImageRow
from glare_murano.glance.queries import GlanceDatabase
from glare_murano.package.errors import shown
from glare_murano.service import http_requests
from glare_murano.service.refusals import RefusedRequest

LOG = logging.getLogger(__name__)

_PATH = re.compile(r"/v2(?:\.[0-9]+)?/images/([^/]+)(?:/actions/(deactivate|reactivate))?/?\Z")
_IMAGE = re.compile(r"/v2(?:\.[0-9]+)?/images/([^/]+)")
# The ids of packages, as ``images.image_id`` writes them.
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Attributes by which a package is found.
_IDENTITY = {"name", "owner"}
_PATCH = "application/openstack-images-v2."


class ImageRequestFilter:
    """Checks requirements before Glance changes a package."""

    def __init__(self, application: Any) -> None:
        self._application = application

    @classmethod
    def factory(cls, _: Any, **options: str) -> type["ImageRequestFilter"]:
        """Return the filter, for paste.deploy."""
        return cls

    @dec.wsgify  # type: ignore[untyped-decorator]
    def __call__(self, req: webob.Request) -> webob.Response:
        """Check a request, and pass it on."""
        found, image = _PATH.match(req.path_info), _IMAGE.match(req.path_info)
        try:
            if image:
                _check_spelling(image[1])
            if found and (changes := _changes(req, found[2])):
                _check(req, found[1], changes)
        except RefusedRequest as refusal:
            LOG.info("Refused %s %s: %s", req.method, req.path, shown(str(refusal)))
            return _answer(refusal)
        return req.get_response(self._application)


def _check_spelling(image_id: str) -> None:
    """Check the letter case of a package's id in a request.

    MariaDB ignores case in ids, but the names of stored files do not.

    :raises RefusedRequest: if the case differs.
    """
    if _ID.fullmatch(image_id):
        return
    image = internals.find_image(image_id)
    if image and image.container_format == images.CONTAINER_FORMAT and image.id != image_id:
        raise RefusedRequest(HTTPStatus.NOT_FOUND, f"No image found with ID {image_id}")


def _answer(refusal: RefusedRequest) -> webob.Response:
    """Return a refusal as JSON for both python-glanceclient and keystoneauth."""
    error = {"code": refusal.status, "message": str(refusal)}
    return webob.Response(status=refusal.status, json={"error": error})


def _changes(req: webob.Request, action: str | None) -> set[str]:
    """Return the changes of a request.

    :returns: ``remove``, ``reactivate``, ``publicize`` or ``withdraw`` (from the public).
    """
    if req.method == "DELETE" and not action:
        return {"remove"}
    if req.method == "POST" and action:
        return {"remove" if action == "deactivate" else "reactivate"}
    if req.method != "PATCH" or action or not req.content_type.startswith(_PATCH):
        return set()
    http_requests.allow_chunks(req)
    http_requests.check_body(req)
    return set(filter(None, map(_change_of, _operations(req.body))))


def _operations(body: bytes) -> list[dict[str, Any]]:
    """Return the operations of a patch; none for a malformed patch."""
    try:
        operations = json.loads(body)
    except (ValueError, RecursionError):
        return []
    if not isinstance(operations, list):
        return []
    return [each for each in operations if isinstance(each, dict)]


def _change_of(operation: dict[str, Any]) -> str:
    # The first version of patches has {"replace": "/name"}.
    paths = (operation.get(key) for key in ("path", "replace", "add", "remove"))
    names = {path.strip("/") for path in paths if isinstance(path, str)}
    if "visibility" in names:
        return "publicize" if operation.get("value") == "public" else "withdraw"
    return "remove" if names & _IDENTITY else ""


def _check(req: webob.Request, image_id: str, changes: set[str]) -> None:
    """Check a change of a package.

    :raises RefusedRequest: if the change is refused.
    """
    if req.headers.get(wire.OVERRIDE_HEADER, "").lower() == "true":
        callers.override(req)
    caller = callers.of(req)
    row = caller.find_changeable(image_id)
    if row is None or not (row.is_published and row.is_valid):
        return
    if "publicize" in changes and not caller.may(row, "publicize_image"):
        return
    with internals.reading() as connection:
        _check_row(caller, GlanceDatabase(connection, caller.viewer), row, changes)


def _check_row(
    caller: callers.Caller, database: GlanceDatabase, row: ImageRow, changes: set[str]
) -> None:
    checks = caller.checks(database)
    if "remove" in changes and row.is_release:
        checks.check_removal(row)
    if "reactivate" in changes and not row.is_release:
        checks.check_activation([row])
    is_public = row.visibility == "public"
    if "withdraw" in changes and is_public and row.is_release:
        checks.check_withdrawal(row)
    if ("publicize" in changes and not is_public) or ("reactivate" in changes and is_public):
        checks.check_publication([row])
        image_publications.check_unique(database, row)
