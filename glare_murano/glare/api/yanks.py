# SPDX-License-Identifier: Apache-2.0

"""Handle the resource ``yanks``, and JSON patches that change only the field ``yanked``.

A yanked package satisfies only pins and ranges that are exactly its version. The owner of a package
must be able to yank it at once. But Glare checks the policy rule ``artifact:update`` for every
patch. By default, this rule lets only an administrator change a public package. So this module also
accepts the rule ``artifact:yank``.
"""

import json
import re
from typing import Any

import jsonpatch
import webob
from glare import engine
from glare.common import utils

from glare_murano import fields
from glare_murano.glare import policies
from glare_murano.glare.api import validation_filter
from glare_murano.glare.interfaces import RequestContext
from glare_murano.service import request_reading, schemas

_ARTIFACT = re.compile(f"/artifacts/{fields.TYPE_NAME}/([^/]+)")
_OPERATIONS = {("/yanked", operation) for operation in ("add", "replace", "test")}


class _Engine(engine.Engine):  # type: ignore[misc]
    """A subclass of Glare's class ``Engine``. It changes only the field ``yanked``.

    The caller needs the permission of the policy rule ``artifact:yank`` or ``artifact:update``. For
    Glare's class, the caller always needs the permission of ``artifact:update``.
    """

    def __init__(self) -> None:
        """Make the object without schemas and quotas, which are not needed for the field."""

    @staticmethod
    def _apply_patch(context: RequestContext, af: Any, patch: jsonpatch.JsonPatch) -> list[str]:
        policies.authorize_yank(context, af.to_dict())
        utils.validate_change_allowed(af, "yanked")
        af.pre_update_hook_with_patch(context, af, patch)
        af.yanked = patch.apply(af.to_dict())["yanked"]
        return ["update"]


def yank(req: webob.Request) -> webob.Response:
    """Yank a package for the reason in a request. An empty reason unyanks the package."""
    body = request_reading.read_body(req, schemas.YANK)
    operation = {"op": "replace", "path": "/yanked", "value": body["reason"]}
    patch = jsonpatch.JsonPatch([operation])
    saved = _Engine().save(req.context, fields.TYPE_NAME, body["id"], patch)
    return webob.Response(json={key: saved[key] for key in ("id", "name", "version", "yanked")})


def is_yank(req: webob.Request) -> bool:
    """Return whether a request is a patch that changes only the field ``yanked``.

    Return False if ``validation_filter`` has not checked the request.
    """
    is_patch = req.method == "PATCH" and req.content_type == validation_filter.PATCH
    is_checked = validation_filter.has_checked(req)
    if not (is_patch and is_checked and _ARTIFACT.fullmatch(req.path_info)):
        return False
    operations = {(operation["path"], operation["op"]) for operation in json.loads(req.body)}
    return bool(operations) and operations <= _OPERATIONS


def save(req: webob.Request) -> webob.Response:
    """Apply the patch in a request.

    :param req: a request for which ``is_yank`` returns True.
    :returns: a response with the artifact.
    """
    artifact_id = req.path_info.rpartition("/")[2]
    patch = jsonpatch.JsonPatch(json.loads(req.body))
    return webob.Response(json=_Engine().save(req.context, fields.TYPE_NAME, artifact_id, patch))
