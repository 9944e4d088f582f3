# SPDX-License-Identifier: Apache-2.0

"""The filter that checks changes of packages through Glance's own API, and sends notifications.

The filter stands behind ``context`` in Glance's pipeline. The checked requests delete,
deactivate, reactivate or publicize a package, or hide a package from projects that can see it;
``image_staging`` checks those that stage or import its data. Requests for other images, and
requests that Glance itself refuses, pass unchanged. A request to change an image's id is refused,
since Glance would write over another image.

New images are checked below Glance's API, so that no request and no task avoids the check. The
id of a package belongs to one project, name and version: no other image can have it.

All refusals are answered in one form, also those below Glance's API.
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import webob
from oslo_log import log as logging
from webob import dec

from glare_murano import images
from glare_murano.glance import image_events, image_policies, internals, start_checks
from glare_murano.glance.api import callers, image_publications, image_staging
from glare_murano.glance.db import image_rows
from glare_murano.glance.db.glance_database import GlanceDatabase
from glare_murano.glance.db.image_queries import SHARED
from glare_murano.glance.db.image_rows import ImageRow
from glare_murano.package.errors import shown
from glare_murano.service import notifications, refusals, request_reading
from glare_murano.service.refusals import RefusedRequest, forbidden, not_found

LOG = logging.getLogger(__name__)

_Body = TypeVar("_Body", list[Any], dict[str, Any])

_PATH = re.compile(r"/v2(?:\.[0-9]+)?/images/([^/]+)(?:/actions/(deactivate|reactivate))?/?\Z")
_MEMBER = re.compile(r"/v2(?:\.[0-9]+)?/images/([^/]+)/members/([^/]+)/?\Z")
_IMAGE = re.compile(r"/v2(?:\.[0-9]+)?/images/([^/]+)")
# The ids of packages, as ``images.image_id`` writes them.
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DELETED = "deleted"
# Action -> the status of the image afterwards.
_STATUSES = {"deactivate": images.DEACTIVATED, "reactivate": images.ACTIVE}
# The status of the image afterwards -> the verb of the notification.
_VERBS = {_DELETED: "delete", images.DEACTIVATED: "deactivate", images.ACTIVE: "reactivate"}
# The status of the image afterwards -> the policy.
_POLICIES = {
    _DELETED: image_policies.DELETE_IMAGE,
    images.DEACTIVATED: image_policies.DEACTIVATE,
    images.ACTIVE: image_policies.REACTIVATE,
}
# The method of a request that changes a member of an image -> the policy.
_MEMBER_POLICIES = {
    "DELETE": image_policies.DELETE_MEMBER,
    "PUT": image_policies.MODIFY_MEMBER,
}
# The statuses of members that have not accepted an image.
_OFFERED = ("pending", "rejected")
# Attributes whose changes are checked; ``internals`` refuses a new name or owner for a package.
_CHECKED = ("name", "owner", "visibility")
# An attribute that Glance neither shows nor protects.
_ID_ATTRIBUTE = "image_id"
# The content type of a patch -> the keys with which an operation names an attribute.
_PATH_KEYS = {
    "application/openstack-images-v2.0-json-patch": ("add", "replace", "remove"),
    "application/openstack-images-v2.1-json-patch": ("path",),
}


class ImageRequestFilter:
    """A WSGI filter that checks a request before Glance changes a package."""

    def __init__(self, application: Any) -> None:
        self._application = application
        internals.keep_properties_through_saves([internals.CLAIM, *images.PROPERTIES])
        internals.keep_attributes_through_saves(images.CONTAINER_FORMAT)
        internals.read_protections_in_turn()
        internals.check_new_images(_check_new)
        internals.hide_markers()
        internals.keep_drafts_from_cache(_is_draft)
        internals.remove_drafts_for_good(images.CONTAINER_FORMAT, images.PUBLISHED)

    @classmethod
    def factory(cls, _: Any, **options: str) -> type["ImageRequestFilter"]:
        """Return the filter, for paste.deploy.

        :raises RuntimeError: if a setting is missing, so that Glance does not start.
        """
        start_checks.check()
        return cls

    @dec.wsgify  # type: ignore[untyped-decorator]
    def __call__(self, req: webob.Request) -> webob.Response:
        """Check a request, and pass it on; answer a refusal as JSON."""
        try:
            response = self._respond(req, internals.routed_path(req.path_info))
        except RefusedRequest as refusal:
            return _answer(req, refusal)
        below = internals.find_refusal(req.context)
        return _answer(req, below) if below and notifications.is_refusal(response) else response

    def _respond(self, req: webob.Request, path: str) -> webob.Response:
        if (package := image_staging.find_open(req)) is not None:
            return image_staging.pass_on(req, package, self._application)
        found, image = _PATH.match(path), _IMAGE.match(path)
        if image is None:
            return req.get_response(self._application)
        try:
            _check_spelling(image[1])
            if member := _MEMBER.match(path):
                _check_member(req, member[1], member[2])
            if found and (changes := _changes(req, found[2])):
                return self._change(req, found[1], changes)
        except RefusedRequest as refusal:
            image_events.send_refusal(req, refusal.status, str(refusal), [image[1]])
            raise
        return req.get_response(self._application)

    def _change(
        self, req: webob.Request, image_id: str, changes: Mapping[str, Any]
    ) -> webob.Response:
        """Pass on a request to change an image; send a notification if it is a package.

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
    """Return the verb for the notification of a change; None if the change sends none."""
    if changed.status != row.status:
        return _VERBS[changed.status]
    if changed.visibility != row.visibility and "public" in (row.visibility, changed.visibility):
        return "publish" if changed.visibility == "public" else "unpublish"
    return None


def _check_spelling(image_id: str) -> None:
    """Check the letter case of a package's id in a request.

    MariaDB finds an image by its id in any case, but a store of files does not.

    :raises RefusedRequest: if the case differs from that of the image's id.
    """
    if _ID.fullmatch(image_id):
        return
    image = image_rows.find_image(image_id)
    if image and image.is_package and image.id != image_id:
        raise not_found(f"No image found with ID {image_id}")


def _answer(req: webob.Request, refusal: RefusedRequest) -> webob.Response:
    """Return a refusal as JSON that python-glanceclient and keystoneauth can both read."""
    LOG.info("Refused %s %s: %s", req.method, req.path, shown(str(refusal)))
    error = refusals.document(refusal.status, str(refusal))["error"]
    return webob.Response(status=refusal.status, json={"error": {"code": refusal.status, **error}})


def _changes(req: webob.Request, action: str | None) -> dict[str, Any]:
    """Return the attributes that a request changes, with their new values.

    :raises RefusedRequest: if the id is changed, since Glance would write over another image.
    """
    method = internals.routed_method(req)
    if method == "DELETE" and not action:
        return {"status": _DELETED}
    if method == "POST" and action:
        return {"status": _STATUSES[action]}
    if method != "PATCH" or action or req.content_type not in _PATH_KEYS:
        return {}
    request_reading.allow_chunks(req)
    request_reading.check_body(req)
    values: dict[str, Any] = {}
    operations = _parsed(req.body, list)
    for operation in (each for each in operations if isinstance(each, dict)):
        for key in _PATH_KEYS[req.content_type]:
            if isinstance(path := operation.get(key), str):
                # Glance ignores spaces.
                values[path.strip("/").strip()] = operation.get("value")
    if _ID_ATTRIBUTE in values:
        raise forbidden("the id of an image cannot be changed")
    return {name: values[name] for name in _CHECKED if name in values}


def _parsed(body: bytes, kind: type[_Body]) -> _Body:
    """Parse a JSON body; return an empty value for a malformed body."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return kind()
    return found if isinstance(found, kind) else kind()


def _is_draft(image_id: str) -> bool:
    image = image_rows.find_image(image_id)
    return image is not None and image.is_package and not image.is_published


def _check_new(context: Any, attributes: Mapping[str, Any], properties: Mapping[str, str]) -> None:
    """Check the id and the name of a new image.

    An image has the id of a package if, and only if, it has the container format of packages.

    :raises RefusedRequest: if the image has another id, or if its name belongs to others.
    """
    row = ImageRow({**attributes, "member": None}, properties)
    if attributes["container_format"] != images.CONTAINER_FORMAT:
        if images.is_package_id(row.id):
            raise forbidden(
                f"image {row.id}: ids of version 8 belong to packages, which have the container "
                f"format {images.CONTAINER_FORMAT}; choose another id, or none"
            )
        return
    version = properties.get(images.OWN_VERSION)
    if not version:
        raise forbidden(
            f"image {row.id}: a package needs the property {images.OWN_VERSION}, since its id "
            f"follows from its project, its name and its version"
        )
    expected = images.image_id(row.owner, row.name, version)
    if row.id != expected:
        raise forbidden(
            f"image {row.id}: the package {row.name} {version} of project {row.owner} has the id "
            f"{expected}; create the image with this id"
        )
    callers.Caller(context, overrides=False).check_names(row)


def _check_member(req: webob.Request, image_id: str, project_id: str) -> None:
    """Check the dependents of a shared package before a project loses the package.

    :raises RefusedRequest: if only this package satisfies requirements in the project.
    """
    method = internals.routed_method(req)
    if method not in _MEMBER_POLICIES or (method == "PUT" and not _is_offered(req)):
        return
    caller = callers.of(req)
    row = caller.find_package(image_id)
    if row is None or not row.is_release or row.visibility != SHARED:
        return
    with internals.reading() as connection:
        leaving = image_rows.find_accepted(connection, row.id, project_id)
        if caller.may_change_members(row, _MEMBER_POLICIES[method], leaving):
            database = GlanceDatabase(connection, caller.viewer)
            keeping = database.find_members([row.id]).get(row.id, set()) - leaving
            caller.checks(database).check_hiding(row, keeping)


def _is_offered(req: webob.Request) -> bool:
    """Return whether a request sets a member's status to one in ``_OFFERED``."""
    request_reading.allow_chunks(req)
    request_reading.check_body(req)
    return _parsed(req.body, dict).get("status") in _OFFERED


def _check(caller: callers.Caller, row: ImageRow, changed: ImageRow) -> None:
    """Check a change of a package, unless the change is refused later anyway.

    :raises RefusedRequest: if a check fails.
    """
    is_same = (row.name, row.owner) == (changed.name, changed.owner)
    is_patch = changed.status == row.status
    action = image_policies.MODIFY_IMAGE if is_patch else _POLICIES[changed.status]
    if not is_same or not row.is_published or not caller.may_change(row, action):
        return
    is_public = row.visibility != changed.visibility == "public"
    if is_public and not caller.may(row, image_policies.PUBLICIZE_IMAGE):
        return
    with internals.reading() as connection:
        _check_row(caller, GlanceDatabase(connection, caller.viewer), row, changed)


def _check_row(
    caller: callers.Caller, database: GlanceDatabase, row: ImageRow, changed: ImageRow
) -> None:
    """Compare a package before and after a change, and run the checks that are needed."""
    checks = caller.checks(database)
    was_public, is_public = (each.visibility == "public" for each in (row, changed))
    if row.is_release and not changed.is_release:
        checks.check_removal(row)
    if row.is_release and changed.is_release and not is_public:
        is_shared = changed.visibility == SHARED
        members = database.find_members([row.id]).get(row.id, ()) if is_shared else ()
        checks.check_hiding(row, members)
    is_new = changed.is_release and not row.is_release
    if is_new or (is_public and not was_public):
        caller.check_names(changed)
    if is_new:
        checks.check_activation([changed])
    if is_public and changed.is_valid and (is_new or not was_public):
        checks.check_publication([changed])
        image_publications.check_unique(database, changed)
