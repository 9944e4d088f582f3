# SPDX-License-Identifier: Apache-2.0

"""Check requests to stage or import the data of a package.

The id of a package's image is fixed, so a publisher cannot use another image instead. Therefore the
image must never get into a state in which Glance would always refuse to stage its data:

* Two simultaneous requests to stage can return the image to ``queued``, and leave data behind.
  This module refuses the second request, and removes such data before each staging.
* A killed process leaves the image ``uploading`` or ``importing``. After ``import_timeout``
  seconds without progress, this module returns the image to ``queued``.
"""

import datetime
import re
from http import HTTPStatus
from typing import Any

import webob
from oslo_log import log as logging
from oslo_utils import timeutils

from glare_murano import images
from glare_murano.glance import internals
from glare_murano.glance.api import callers
from glare_murano.glance.db import image_rows
from glare_murano.glance.db.image_rows import ImageRow
from glare_murano.glance.options import SETTINGS
from glare_murano.service.refusals import RefusedRequest, conflict

LOG = logging.getLogger(__name__)

_PATH = re.compile(r"/v2/images/([0-9a-f-]{36})/(stage|import)")
_METHODS = {"stage": "PUT", "import": "POST"}
# The statuses of an image whose staging or import has begun.
_BEGUN = (internals.UPLOADING, internals.IMPORTING)


def find_open(req: webob.Request) -> ImageRow | None:
    """Return the package whose data a request stages or imports.

    :returns: the package. The result is None if the request does not stage or import data, if the
        package is missing, if the caller may not change the package, or if its data is already
        stored. Stored data never changes.
    """
    path = _PATH.fullmatch(internals.routed_path(req.path_info))
    if path is None or internals.routed_method(req) != _METHODS[path[2]]:
        return None
    image = image_rows.find_image(path[1])
    # For the package of another project, no policy is asked, as if the package were missing.
    if image is None or not (_is_open(image) and callers.in_context(req.context).owns(image)):
        return None
    return image if internals.may_modify(req.context, path[1]) else None


def pass_on(req: webob.Request, image: ImageRow, application: Any) -> webob.Response:
    """Pass on a request to stage or import the data of a package to Glance.

    :param image: the package.
    :param application: Glance's application.
    :raises RefusedRequest: if another request stages or imports the data at the same time, or has
        deleted the package. If this request makes no progress for ``import_timeout`` seconds,
        another one may take its place.
    """
    is_staging = internals.routed_method(req) == _METHODS["stage"]
    if is_staging:
        _cancel_killed(image)
    elif internals.is_staged_elsewhere(image.properties):
        # Glance passes on the request to the process that has the data, and that process reserves
        # the image. A second request would interrupt an import that runs there.
        if internals.RESERVATION in image.properties:
            raise _reserved(image)
        return req.get_response(application)
    try:
        with internals.reserved_image(image.id) as reservation:
            if is_staging:
                _remove_staged(image.id)
            response = req.get_response(application)
            # Glance answers with 500 if the status is not that of a running import any more.
            if response.status_code == HTTPStatus.INTERNAL_SERVER_ERROR:
                _check_reservation(image, reservation)
            return response
    except internals.ImageReserved as error:
        raise _reserved(image) from error


def _check_reservation(image: ImageRow, reservation: str) -> None:
    """Check that a request still has its reservation.

    :raises RefusedRequest: if another request has removed the reservation.
    """
    found = image_rows.find_image(image.id)
    if found is None or found.properties.get(internals.RESERVATION) != reservation:
        raise conflict(
            f"this request made no progress for {SETTINGS['import_timeout']} seconds, and another "
            f"one has taken its place; read image {image.id}, and stage the data again if it is "
            f"{internals.QUEUED}"
        )


def _remove_staged(image_id: str) -> None:
    """Remove staged data that an earlier request has left, if the image is ``queued``."""
    image = image_rows.find_image(image_id)
    if image and image.status == internals.QUEUED:
        internals.staged_file(image_id).unlink(missing_ok=True)


def _is_open(image: ImageRow) -> bool:
    """Return whether the data of a package can still be staged or imported."""
    return image.is_package and image.status in (internals.QUEUED, *_BEGUN)


def _reserved(image: ImageRow) -> RefusedRequest:
    return conflict(
        f"another request is staging or importing the package of image {image.id}; wait for it"
    )


def _cancel_killed(image: ImageRow) -> None:
    """Cancel the staging or the import of a package if the process for it was probably killed.

    A process is assumed to be killed after ``import_timeout`` seconds without progress.
    """
    if internals.RESERVATION not in image.properties and image.status not in _BEGUN:
        return
    progress = internals.find_task_progress(image.properties) or image.updated_at
    idle = timeutils.utcnow() - max(progress, image.updated_at)
    if idle < datetime.timedelta(seconds=SETTINGS["import_timeout"]):
        return
    with internals.writing() as connection:
        if not image_rows.cancel_import(connection, image, images.of_server(image.properties)):
            return
    internals.staged_file(image.id).unlink(missing_ok=True)
    LOG.warning("The import of image %s was cancelled after %s without progress", image.id, idle)
