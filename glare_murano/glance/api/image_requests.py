# SPDX-License-Identifier: Apache-2.0

"""Check changes of packages in a filter in front of Glance's own API, and send notifications.

The filter stands behind ``context`` in Glance's pipeline. ``image_removals`` handles deletions, and
``image_staging`` handles requests that stage or import data. Requests that Glance itself refuses
pass unchanged, and so do most requests for images that are not packages. But for every image, the
filter refuses a patch that sets ``image_id``, since Glance would write the changes to the image
with that id. It also refuses URLs with the character NUL, HTML forms, and ids with a control
character or a character outside ASCII.

The filter also installs checks in Glance's database layer, for every request and every task. These
checks concern new images, and changes of the visibility, the status and the members of a package
(see ``image_changes``). The id of a package belongs to one project, name and version, so no other
image can have this id.

The responses for all refusals have the same form, also for refusals in the database layer.
"""

import dataclasses
import functools
import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import webob
from oslo_log import log as logging
from webob import dec

from glare_murano import fields, images
from glare_murano.glance import image_events, internals, start_checks
from glare_murano.glance.api import callers, image_changes, image_removals, image_staging
from glare_murano.glance.db import image_rows
from glare_murano.glance.db.image_rows import ImageRow
from glare_murano.package.errors import InvalidName, InvalidVersion, shown
from glare_murano.package.manifest import check_fqn
from glare_murano.service import notifications, refusals, request_reading
from glare_murano.service.refusals import (
    RefusedRequest,
    conflict,
    forbidden,
    not_found,
)

LOG = logging.getLogger(__name__)

_Body = TypeVar("_Body", list[Any], dict[str, Any])

_PATH = re.compile(r"/v2(?:\.[0-9]+)?/images/([^/]+)(?:/actions/(deactivate|reactivate))?/?\Z")
_IMAGE = re.compile(r"/v2(?:\.[0-9]+)?/images/([^/]+)")
# The ids of packages, as ``images.image_id`` writes them.
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DELETED = "deleted"
# Action -> the status of the image after it.
_STATUSES = {"deactivate": images.DEACTIVATED, "reactivate": images.ACTIVE}
# The status of the image after the change -> the verb of the notification.
_VERBS = {_DELETED: "delete", images.DEACTIVATED: "deactivate", images.ACTIVE: "reactivate"}
# If a change of one of these attributes is refused, a notification is sent.
_NOTIFIED = ("name", "owner", "visibility")
# An attribute that Glance neither shows nor protects: the key of the image's row.
_ID_ATTRIBUTE = "image_id"
# Attributes of Glance's objects. Glance answers a change of them with 500.
_OBJECT_ATTRIBUTES = frozenset({"base", "extra_properties", "__class__", "__dict__"})
# The content type of a patch -> the keys by which an operation names an attribute.
_PATH_KEYS = {
    "application/openstack-images-v2.0-json-patch": ("add", "replace", "remove"),
    "application/openstack-images-v2.1-json-patch": ("path",),
}


class ImageRequestFilter:
    """A WSGI filter that checks a request before Glance changes a package."""

    def __init__(self, application: Any) -> None:
        self._application = application
        internals.log_lost_tasks()
        internals.repeat_whole_transactions()
        own = (internals.RESERVATION, internals.DELETION)
        internals.keep_properties_through_saves([*own, *images.PROPERTIES])
        internals.keep_attributes_through_saves(images.CONTAINER_FORMAT, image_changes.save)
        internals.check_member_changes(images.CONTAINER_FORMAT, image_changes.change_member)
        internals.read_protections_in_turn()
        internals.check_new_images(_check_new)
        internals.hide_markers()
        internals.keep_drafts_from_cache(_may_be_draft)
        internals.keep_releases(lambda properties: bool(properties.get(images.PUBLISHED)))
        internals.remove_drafts_for_good(images.CONTAINER_FORMAT, image_rows.was_published)
        internals.delete_data_after_deletions(images.CONTAINER_FORMAT)

    @classmethod
    def factory(cls, _: Any, **options: str) -> type["ImageRequestFilter"]:
        """Return the class of the filter, for paste.deploy.

        :raises RuntimeError: if a setting of Glance is missing. Then Glance does not start.
        """
        start_checks.check()
        return cls

    @dec.wsgify  # type: ignore[untyped-decorator]
    def __call__(self, req: webob.Request) -> webob.Response:
        """Check a request and pass it on to Glance. A refused request is answered with JSON."""
        try:
            response = self._respond(req, internals.routed_path(req.path_info))
            _raise_refusal(req, response)
        except RefusedRequest as refusal:
            return _answer(req, refusal)
        except internals.ImagesBusy:
            return _answer(req, conflict(internals.BUSY))
        return response

    def _respond(self, req: webob.Request, path: str) -> webob.Response:
        request_reading.check_nul(req.environ)
        # Glance needs no forms, but parses them on every path.
        request_reading.check_content_type(req)
        if (package := image_staging.find_open(req)) is not None:
            return image_staging.pass_on(req, package, self._application)
        found, image = _PATH.match(path), _IMAGE.match(path)
        if image is None:
            return req.get_response(self._application)
        try:
            _check_spelling(image[1])
            callers.keep_headers(req)
            if found and (changes := _changes(req, found[2])):
                response = self._change(req, found[1], changes)
            else:
                response = req.get_response(self._application)
            _raise_refusal(req, response)
        except RefusedRequest as refusal:
            image_events.send_refusal(req, refusal.status, str(refusal), [image[1]])
            raise
        return response

    def _change(
        self, req: webob.Request, image_id: str, changes: Mapping[str, Any]
    ) -> webob.Response:
        """Pass on a request that changes an image.

        If the image is a package, a notification is sent if Glance refuses the change, or if
        ``_verb`` returns a verb for it.

        :param changes: the attributes that the request changes, with their new values.
        :raises RefusedRequest: if a check of this project refuses the change.
        """
        caller = callers.of(req)
        row = caller.find_package(image_id)
        if row is None:
            return req.get_response(self._application)
        changed = dataclasses.replace(row, attributes={**row.attributes, **changes})
        response = self._pass_on(req, caller, row, changed)
        _raise_refusal(req, response)
        if notifications.is_refusal(response):
            status = response.status_code
            image_events.send_refusal(req, status, response.status, [row.id])
        elif verb := _verb(row, changed):
            image_events.send(req.context, verb, changed)
        return response

    def _pass_on(
        self, req: webob.Request, caller: callers.Caller, row: ImageRow, changed: ImageRow
    ) -> webob.Response:
        pass_on = functools.partial(req.get_response, self._application)
        if changed.status == _DELETED:
            return image_removals.delete(caller, row, pass_on)
        return pass_on()


def _raise_refusal(req: webob.Request, response: webob.Response) -> None:
    """Raise the refusal that a check in Glance's database layer has stored, if there is one.

    The refusal is raised only if Glance's response is an error. Glance's own response would be
    HTML, unlike the responses for other refusals.
    """
    refusal = internals.find_refusal(req.context)
    if refusal and notifications.is_refusal(response):
        raise refusal


def _verb(row: ImageRow, changed: ImageRow) -> str | None:
    """Return the verb for the notification of a change, such as ``publish``.

    :param row: the package before the change.
    :param changed: the package after the change.
    :returns: the verb; None if the change needs no notification.
    """
    if changed.status != row.status:
        return _VERBS[changed.status]
    if changed.visibility != row.visibility and "public" in (row.visibility, changed.visibility):
        return "publish" if changed.visibility == "public" else "unpublish"
    return None


def _check_spelling(image_id: str) -> None:
    """Check that the id of a package in a request is in lower case, as it is stored.

    When MariaDB looks up an id, it ignores case, accents and control characters, but a store of
    files does not. The response is the same for all databases, so it does not show whether the
    package exists.

    :raises RefusedRequest: if the id has the form of a package's id, but another spelling, or if it
        contains a control character or a character outside ASCII.
    """
    if _ID.fullmatch(image_id):
        return
    if images.is_package_id(image_id) or not (image_id.isascii() and image_id.isprintable()):
        raise not_found(f"No image found with ID {image_id}")


def _answer(req: webob.Request, refusal: RefusedRequest) -> webob.Response:
    """Return the response for a refusal, in the JSON form that OpenStack's clients read."""
    LOG.info("Refused %s %s: %s", req.method, req.path, shown(str(refusal)))
    error = refusals.document(refusal.status, str(refusal))["error"]
    return webob.Response(status=refusal.status, json={"error": {"code": refusal.status, **error}})


def _changes(req: webob.Request, action: str | None) -> dict[str, Any]:
    """Return those attributes that a request changes, and that matter for notifications.

    :param action: ``deactivate`` or ``reactivate``, from the URL; None without an action.
    :returns: the attributes, with their new values; empty if the request changes none of them.
    :raises RefusedRequest: if the request changes the id, since Glance would overwrite another
        image, or an attribute in ``_OBJECT_ATTRIBUTES``.
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
    if found := _OBJECT_ATTRIBUTES & values.keys():
        raise forbidden(f"Glance itself uses the name {min(found)}; choose another property")
    return {name: values[name] for name in _NOTIFIED if name in values}


def _parsed(body: bytes, kind: type[_Body]) -> _Body:
    """Parse a JSON body.

    :param kind: the expected type.
    :returns: the parsed body; an empty value of this type if the body is malformed or has another
        type.
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return kind()
    return found if isinstance(found, kind) else kind()


def _may_be_draft(image_id: str) -> bool:
    image = image_rows.find_image(image_id)
    # A missing image may have been a draft, which another request has just deleted.
    return image is None or (image.is_package and not image.is_published)


def _check_new(context: Any, attributes: Mapping[str, Any], properties: Mapping[str, str]) -> None:
    """Check the id and the name of a new image.

    An image is a package if it has the container format of packages. A package must have the id
    that follows from its project, name and version. Any other image must not have such an id.

    :raises RefusedRequest: if the image has a wrong id. A package is also refused if it has no
        owner, if its name or version is missing or not valid, or if the owner may not use the name.
    """
    row = ImageRow({**attributes, "member": None}, properties)
    if attributes["container_format"] != images.CONTAINER_FORMAT:
        if images.is_package_id(row.id):
            raise forbidden(
                f"image {row.id}: ids of version 8 belong to packages, which have the container "
                f"format {images.CONTAINER_FORMAT}; choose another id, or none"
            )
        return
    if not row.owner:
        raise forbidden(
            f"image {row.id}: a package belongs to a project, since its id follows from its "
            f"project, its name and its version; create the image with an owner"
        )
    version = properties.get(images.OWN_VERSION)
    if not version:
        raise forbidden(
            f"image {row.id}: a package needs the property {images.OWN_VERSION}, since its id "
            f"follows from its project, its name and its version"
        )
    try:
        check_fqn(row.name, fields.MAX_NAME)
    except InvalidName as error:
        raise forbidden(
            f"image {row.id}: the name of a package is its FullName: {error}"
        ) from error
    try:
        fields.check_version(version)
    except InvalidVersion as error:
        raise forbidden(f"image {row.id}: the property {images.OWN_VERSION}: {error}") from error
    expected = images.image_id(row.owner, row.name, version)
    if row.id != expected:
        raise forbidden(
            f"image {row.id}: the package {row.name} {version} of project {row.owner} has the id "
            f"{expected}; create the image with this id"
        )
    callers.Caller(context, overrides=False).check_names(row)
