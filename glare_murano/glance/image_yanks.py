# SPDX-License-Identifier: Apache-2.0

"""The resource ``yanks``: why the owner of a package withdrew the package.

The reason is a property that only the server can write, not the owner through Glance's API.
"""

import webob

from glare_murano import images
from glare_murano.glance import callers, image_events, image_rows, internals
from glare_murano.glance.glance_database import GlanceDatabase
from glare_murano.glance.image_rows import ImageRow, check_imported
from glare_murano.service import http_requests, notifications, schemas
from glare_murano.service.refusals import warn


def yank(req: webob.Request) -> webob.Response:
    """Yank a package, or end its yank with an empty reason."""
    body = http_requests.read_body(req, schemas.YANK)
    caller, reason = callers.of(req), body["reason"]
    row = caller.find(body["id"])
    caller.check_owner(row)
    caller.check_policy(row, internals.YANK_RULE.name)
    check_imported(row)
    warning = ""
    if reason and row.is_release and not row.properties.get(images.YANKED):
        with internals.reading() as connection:
            database = GlanceDatabase(connection, caller.viewer)
            warning = caller.checks(database).warning_of_yank(row)
    internals.retry(lambda: _save(row, reason))
    internals.notify([row.id])
    if reason != row.properties.get(images.YANKED, ""):
        image_events.send(req.context, notifications.yank_verb(reason), row)
    answer = {"id": row.id, "name": row.name, "version": row.version, "yanked": reason}
    response = webob.Response(json=answer)
    warn(response, warning)
    return response


def _save(row: ImageRow, reason: str) -> None:
    with internals.writing() as connection:
        image_rows.lock(connection, [row.id])
        if reason:
            image_rows.set_property(connection, row.id, images.YANKED, reason)
        else:
            image_rows.delete_property(connection, row.id, images.YANKED)
