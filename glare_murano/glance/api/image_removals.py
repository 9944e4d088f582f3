# SPDX-License-Identifier: Apache-2.0

"""Delete packages through Glance's own API.

Glance deletes the data of an image and then its rows, in several transactions. So this module first
makes the package a draft, in one transaction that locks and checks the package. The draft cannot be
published while its deletion runs. If Glance refuses the deletion, the package is published again.
If the process is killed, the draft remains. Its owner can delete the draft, or publish it if it
still has its data.
"""

import dataclasses
import datetime
import functools
from collections.abc import Callable
from http import HTTPStatus

import webob
from oslo_log import log as logging
from sqlalchemy.engine import Connection

from glare_murano import images
from glare_murano.glance import image_policies, internals
from glare_murano.glance.api import callers, image_changes
from glare_murano.glance.db import image_rows
from glare_murano.glance.db.image_rows import Deletion, ImageRow
from glare_murano.service.refusals import RefusedRequest
from glare_murano.service.release_changes import DELETED, ReleaseChange

LOG = logging.getLogger(__name__)


def delete(
    caller: callers.Caller, row: ImageRow, pass_on: Callable[[], webob.Response]
) -> webob.Response:
    """Delete a package.

    If the package is protected, or if the caller may not delete the package, this function only
    passes on the request, and Glance refuses the request.

    :param caller: the caller of the request.
    :param row: the package.
    :param pass_on: a function that passes on the request to Glance, and returns the response.
    :raises RefusedRequest: if only this package satisfies requirements of active packages.
    :raises internals.ImagesBusy: if other requests change the same packages.
    """
    is_refused = row.attributes["protected"]
    if is_refused or not caller.may_change(row, image_policies.DELETE_IMAGE):
        # Glance's own refusal reveals nothing about a package of another project.
        return pass_on()
    deletion = internals.retry(functools.partial(_take_out, caller, row.id))
    is_deleted = False
    try:
        response = pass_on()
        is_deleted = response.status_code < HTTPStatus.BAD_REQUEST
        return response
    finally:
        if deletion and not is_deleted:
            _put_back(caller, row.id, deletion)


def _take_out(caller: callers.Caller, image_id: str) -> Deletion | None:
    """Make a package a draft, and store in its image that a deletion has begun.

    :returns: the stored deletion; None if the package is missing.
    :raises RefusedRequest: if only this package satisfies requirements of active packages.
    :raises internals.ImagesBusy: if other requests change the same packages.
    """
    rows: list[ImageRow] = []

    def find(connection: Connection) -> list[ReleaseChange]:
        rows[:] = image_rows.find(connection, [image_id], caller.viewer.project_id)
        return [ReleaseChange(row, row, row.state, DELETED) for row in rows]

    with internals.reading() as connection:
        changes = find(connection)
    with image_changes.Transaction(caller, changes, find).begin() as connection:
        for row in rows:
            begun = Deletion.read(row.properties)
            published = row.properties.get(images.PUBLISHED) or (begun.published if begun else "")
            deletion = Deletion(datetime.datetime.now(datetime.UTC), published)
            image_rows.set_property(connection, row.id, internals.DELETION, str(deletion))
            image_rows.delete_property(connection, row.id, images.PUBLISHED)
            return deletion
    return None


def _put_back(caller: callers.Caller, image_id: str, deletion: Deletion) -> None:
    """Restore a package after its deletion has failed: publish it again if it was published.

    The package stays a draft if its data was deleted, or if another request is deleting it. It also
    stays a draft if a check refuses the publication, or if other requests block the publication.
    In these two cases, an error is logged.
    """
    try:
        internals.retry(functools.partial(_publish_again, caller, image_id, deletion))
    except (RefusedRequest, internals.ImagesBusy) as error:
        LOG.error("After a failed deletion, the package %s stays a draft: %s", image_id, error)


def _publish_again(caller: callers.Caller, image_id: str, deletion: Deletion) -> None:
    rows: list[ImageRow] = []

    def find(connection: Connection) -> list[ReleaseChange]:
        stored = image_rows.find_locations(connection, [image_id])
        rows[:] = [
            row
            for row in image_rows.find(connection, [image_id], caller.viewer.project_id)
            # Another request may be deleting the package by now.
            if row.properties.get(internals.DELETION) == str(deletion)
            # Glance may have deleted the data already.
            and (row.id in stored or not deletion.published)
        ]
        return [_change(row, deletion) for row in rows]

    with internals.reading() as connection:
        changes = find(connection)
    with image_changes.Transaction(caller, changes, find).begin() as connection:
        for row in rows:
            image_rows.delete_property(connection, row.id, internals.DELETION)
            if deletion.published:
                image_rows.set_property(connection, row.id, images.PUBLISHED, deletion.published)


def _change(row: ImageRow, deletion: Deletion) -> ReleaseChange:
    """Return the change that restores a package after its deletion has failed."""
    properties = {**row.properties, images.PUBLISHED: deletion.published}
    after = dataclasses.replace(row, properties=properties)
    return ReleaseChange(row, after, row.state, after.state)
