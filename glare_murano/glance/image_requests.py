# SPDX-License-Identifier: Apache-2.0

"""The filter that checks changes of packages by Glance's own API, and sends their notifications.

The filter stands behind ``context`` in Glance's pipeline. The checked requests import, delete,
deactivate, reactivate, rename, give away or publicize a package, or withdraw a package from the
public. Requests for other images, and requests refused by Glance anyway, pass unchanged. A change
of an image's id is refused: Glance would write over another image.
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import webob
from oslo_log import log as logging
from webob import dec

from glare_murano import images
from glare_murano.glance import callers, image_events, image_publications, internals
from glare_murano.glance.glance_database import GlanceDatabase
from glare_murano.glance.image_rows import ImageRow
from glare_murano.package.errors import shown
from glare_murano.service import http_requests, notifications
from glare_murano.service.refusals import RefusedRequest

LOG = logging.getLogger(__name__)

_PATH = re.compile(r"/v2(?:\.[0-9]+)?/images/([^/]+)(?:/actions/(deactivate|reactivate))?/?\Z")
_IMPORT = re.compile(r"/v2(?:\.[0-9]+)?/images/([^/]+)/import/?\Z")
_IMAGE = re.compile(r"/v2(?:\.[0-9]+)?/images/([^/]+)")
# The ids of packages, as ``images.image_id`` writes them.
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DELETED = "deleted"
# Action -> the status of the image afterwards.
_STATUSES = {"deactivate": images.DEACTIVATED, "reactivate": images.ACTIVE}
# The status of the image afterwards -> what happens to the package.
_VERBS = {_DELETED: "delete", images.DEACTIVATED: "deactivate", images.ACTIVE: "reactivate"}
# Attributes that decide whether, and for whom, a package counts.
_CHECKED = ("name", "owner", "visibility")
# An attribute that Glance neither shows nor protects.
_ID_ATTRIBUTE = "image_id"
# The content type of a patch -> the keys of an operation that name an attribute.
_PATH_KEYS = {
    "application/openstack-images-v2.0-json-patch": ("add", "replace", "remove"),
    "application/openstack-images-v2.1-json-patch": ("path",),
}


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
        path = internals.routed_path(req.path_info)
        found, image = _PATH.match(path), _IMAGE.match(path)
        if image is None:
            return req.get_response(self._application)
        try:
            _check_spelling(image[1])
            if (imported := _IMPORT.match(path)) and internals.routed_method(req) == "POST":
                _check_import(req, imported[1])
            if found and (changes := _changes(req, found[2])):
                return self._change(req, found[1], changes)
        except RefusedRequest as refusal:
            LOG.info("Refused %s %s: %s", req.method, req.path, shown(str(refusal)))
            image_events.send_refusal(req, refusal.status, str(refusal), [image[1]])
            return _answer(refusal)
        return req.get_response(self._application)

    def _change(
        self, req: webob.Request, image_id: str, changes: Mapping[str, Any]
    ) -> webob.Response:
        """Pass on a request that changes an image, and send a notification for a package.

        :raises RefusedRequest: if the change is refused.
        """
        caller = callers.of(req)
        row = caller.find_package(image_id)
        if row is None:
            return req.get_response(self._application)
        changed = dataclasses.replace(row, attributes={**row.attributes, **changes})
        _check(caller, row, changed)
        response = req.get_response(self._application)
        if notifications.is_refusal(response):
            status = response.status_code
            image_events.send_refusal(req, status, response.status, [row.id])
        elif verb := _verb(row, changed):
            image_events.send(req.context, verb, changed)
        return response


def _verb(row: ImageRow, changed: ImageRow) -> str | None:
    """Return what a change does to a package; None for a change without a notification."""
    if changed.status != row.status:
        return _VERBS[changed.status]
    if changed.visibility != row.visibility and "public" in (row.visibility, changed.visibility):
        return "publish" if changed.visibility == "public" else "withdraw"
    return None


def _check_spelling(image_id: str) -> None:
    """Check the letter case of a package's id in a request.

    MariaDB finds an image by its id in any case, but a store of files does not.

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


def _changes(req: webob.Request, action: str | None) -> dict[str, Any]:
    """Return the attributes that a request changes, with their new values.

    :raises RefusedRequest: for a change of the id: Glance would write over another image.
    """
    method = internals.routed_method(req)
    if method == "DELETE" and not action:
        return {"status": _DELETED}
    if method == "POST" and action:
        return {"status": _STATUSES[action]}
    if method != "PATCH" or action or req.content_type not in _PATH_KEYS:
        return {}
    http_requests.allow_chunks(req)
    http_requests.check_body(req)
    values: dict[str, Any] = {}
    for operation in _operations(req.body):
        for key in _PATH_KEYS[req.content_type]:
            if isinstance(path := operation.get(key), str):
                # Glance ignores spaces.
                values[path.strip("/").strip()] = operation.get("value")
    if _ID_ATTRIBUTE in values:
        raise RefusedRequest(HTTPStatus.FORBIDDEN, "the id of an image cannot be changed")
    return {name: values[name] for name in _CHECKED if name in values}


def _operations(body: bytes) -> list[dict[str, Any]]:
    """Return the operations of a patch; none for a malformed patch."""
    try:
        operations = json.loads(body)
    except (ValueError, RecursionError):
        return []
    if not isinstance(operations, list):
        return []
    return [each for each in operations if isinstance(each, dict)]


def _check_import(req: webob.Request, image_id: str) -> None:
    """Check the name of a package before its import, which does not know the caller.

    :raises RefusedRequest: if the name belongs to other projects.
    """
    caller = callers.of(req)
    row = caller.find_package(image_id)
    if row is not None and caller.may_change(row):
        caller.check_names(row)


def _check(caller: callers.Caller, row: ImageRow, changed: ImageRow) -> None:
    """Check a change of a package, unless Glance refuses the change anyway.

    :raises RefusedRequest: if the change is refused.
    """
    if not row.is_published or not caller.may_change(row):
        return
    is_public = row.visibility != changed.visibility == "public"
    if is_public and not caller.may(row, "publicize_image"):
        return
    with internals.reading() as connection:
        _check_row(caller, GlanceDatabase(connection, caller.viewer), row, changed)


def _check_row(
    caller: callers.Caller, database: GlanceDatabase, row: ImageRow, changed: ImageRow
) -> None:
    """Check a package before and after a change."""
    checks = caller.checks(database)
    was_public, is_public = (each.visibility == "public" for each in (row, changed))
    if row.is_release and not changed.is_release:
        checks.check_removal(row)
    if row.is_release and changed.is_release and was_public and not is_public:
        checks.check_withdrawal(row)
    is_new = changed.is_release and not row.is_release
    if is_new or (is_public and not was_public):
        caller.check_names(changed)
    if is_new:
        checks.check_activation([changed])
    if is_public and changed.is_valid and (is_new or not was_public):
        checks.check_publication([changed])
        image_publications.check_unique(database, changed)
