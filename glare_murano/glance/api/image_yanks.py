# SPDX-License-Identifier: Apache-2.0

"""The resource ``yanks``: yank a package for a reason, or end its yank.

The reason is a property that only the server can write: Glance's API refuses it to the owner.
"""

import webob

from glare_murano import images
from glare_murano.glance import image_events, image_policies, internals
from glare_murano.glance.api import callers
from glare_murano.glance.db import image_rows
from glare_murano.glance.db.glance_database import GlanceDatabase
from glare_murano.glance.db.image_rows import ImageRow, check_imported
from glare_murano.service import notifications, request_reading, schemas
from glare_murano.service.refusals import warn


def yank(req: webob.Request) -> webob.Response:
    """Yank a package, or end its yank with an empty reason."""
    body = request_reading.read_body(req, schemas.YANK)
    caller, reason = callers.of(req), body["reason"]
    row = internals.retry(lambda: _yank(caller, body["id"], reason))
    warning = ""
    if reason and row.is_release and not row.properties.get(images.YANKED):
        with internals.reading() as connection:
            database = GlanceDatabase(connection, caller.viewer)
            warning = caller.checks(database).warning_of_yank(row)
    internals.notify([row.id])
    if reason != row.properties.get(images.YANKED, ""):
        image_events.send(req.context, notifications.yank_verb(reason), row)
    answer = {"id": row.id, "name": row.name, "version": row.version, "yanked": reason}
    response = webob.Response(json=answer)
    warn(response, warning)
    return response


def _yank(caller: callers.Caller, image_id: str, reason: str) -> ImageRow:
    """Save the reason of a yank, and return the package as it was before.

    :raises RefusedRequest: if the caller or the state of the package does not allow a yank.
    :raises internals.ImagesBusy: if another request has changed the package meanwhile.
    """
    # Policies may query other services, so they are checked before the image is locked.
    row = caller.find(image_id)
    caller.check_owner(row)
    caller.check_policy(row, image_policies.YANK)
    check_imported(row)
    with internals.writing() as connection:
        image_rows.lock(connection, [row.id])
        if image_rows.find(connection, [row.id], caller.viewer.project_id) != [row]:
            raise internals.ImagesBusy
        if reason:
            image_rows.set_property(connection, row.id, images.YANKED, reason)
        else:
            image_rows.delete_property(connection, row.id, images.YANKED)
    return row
