# SPDX-License-Identifier: Apache-2.0

"""Handle the resource ``yanks``, which yanks a package for a reason, or unyanks it.

A yanked package is chosen only for pins, and for ranges that name exactly its version. The reason
is a property of the image. Only the server writes this property: Glance's API does not let the
owner change it.
"""

import webob
from sqlalchemy.engine import Connection

from glare_murano import images
from glare_murano.glance import image_events, image_policies, internals
from glare_murano.glance.api import callers, image_changes
from glare_murano.glance.db import image_rows
from glare_murano.glance.db.image_rows import ImageRow, check_imported
from glare_murano.service import notifications, request_reading, schemas
from glare_murano.service.refusals import warn
from glare_murano.service.release_changes import ReleaseChange


def yank(req: webob.Request) -> webob.Response:
    """Yank a package for the reason in a request. An empty reason unyanks the package."""
    body = request_reading.read_body(req, schemas.YANK)
    caller, reason = callers.of(req), body["reason"]
    row, warning = internals.retry(lambda: _yank(caller, body["id"], reason))
    internals.notify([row.id])
    if reason != row.properties.get(images.YANKED, ""):
        image_events.send(req.context, notifications.yank_verb(reason), row)
    answer = {"id": row.id, "name": row.name, "version": row.version, "yanked": reason}
    response = webob.Response(json=answer)
    warn(response, warning)
    return response


def _yank(caller: callers.Caller, image_id: str, reason: str) -> tuple[ImageRow, str]:
    """Save the reason for which a package is yanked; an empty reason unyanks the package.

    :returns: the package as it was before, and a warning for the caller, which may be empty.
    :raises RefusedRequest: if the caller may not yank the package, or if a check of the package
        fails.
    :raises internals.ImagesBusy: if another request has changed the package at the same time.
    """
    # Policies are checked before the image is locked, since their rules may query other services.
    row = caller.find(image_id)
    caller.check_owner(row)
    caller.check_policy(row, image_policies.YANK)
    check_imported(row)
    is_yanked = bool(reason and not row.properties.get(images.YANKED))
    changes = [ReleaseChange(row, row, row.state, row.state, is_yanked=is_yanked)]

    def find(connection: Connection) -> list[ReleaseChange]:
        if image_rows.find(connection, [row.id], caller.viewer.project_id) != [row]:
            raise internals.ImagesBusy
        return changes

    transaction = image_changes.Transaction(caller, changes, find)
    with transaction.begin() as connection:
        if reason:
            image_rows.set_property(connection, row.id, images.YANKED, reason)
        else:
            image_rows.delete_property(connection, row.id, images.YANKED)
    return row, transaction.warning
