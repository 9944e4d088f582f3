# SPDX-License-Identifier: Apache-2.0

"""A WSGI filter for staging and importing packages, even after a process was killed.

The id of a package's image is fixed, and Glance never reuses the id of a deleted image. So an
image must not stay in a state in which Glance refuses to stage its data:

* Two simultaneous requests to stage can return the image to ``queued``, and leave data behind.
  This filter refuses the second request, and removes such data before each staging.
* A killed process leaves the image ``uploading`` or ``importing``. After ``import_timeout``
  seconds without progress, this filter returns the image to ``queued``.
"""

import datetime
import re
from collections.abc import Callable, Iterable
from typing import Any

import webob.exc
from oslo_log import log as logging
from oslo_utils import timeutils

from glare_murano import images
from glare_murano.glance import internals, options, start_checks
from glare_murano.glance.db import image_rows
from glare_murano.glance.db.image_rows import ImageRow

LOG = logging.getLogger(__name__)

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_PATH = re.compile(r"/v2/images/([0-9a-f-]{36})/(stage|import)")
_METHODS = {"stage": "PUT", "import": "POST"}
# The statuses of an image whose staging or import has begun.
_BEGUN = (internals.UPLOADING, internals.IMPORTING)


def filter_factory(_: Any, **options: str) -> Callable[[Application], Application]:
    """Return the filter, for paste.deploy; the filter ``context`` must come before it.

    :raises RuntimeError: if a setting is missing, so that Glance does not start.
    """
    start_checks.check()
    return StagingFilter


class StagingFilter:
    """A WSGI filter that lets one request at a time stage or import the data of a package."""

    def __init__(self, application: Application) -> None:
        self._application = application
        internals.keep_properties_through_saves([internals.CLAIM, *images.PROPERTIES])
        internals.keep_attributes_through_saves(images.CONTAINER_FORMAT)
        internals.read_protections_in_turn()

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Handle a request."""
        request = webob.Request(environ)
        path = _PATH.fullmatch(internals.routed_path(request.path_info))
        if path and internals.routed_method(request) == _METHODS[path[2]]:
            image = image_rows.find_image(path[1])
            if image and _is_open(image) and internals.may_modify(request.context, image.id):
                handle = self._stage if path[2] == "stage" else self._import
                response: Iterable[bytes] = handle(request, image)(environ, start_response)
                return response
        return self._application(environ, start_response)

    def _stage(self, request: webob.Request, image: ImageRow) -> Any:
        cancel_killed(image.id)
        try:
            with internals.claimed(image.id):
                found = image_rows.find_image(image.id)
                if found and found.status == internals.QUEUED:
                    internals.staged_file(image.id).unlink(missing_ok=True)
                return request.get_response(self._application)
        except internals.Claimed:
            return _conflict(image)

    def _import(self, request: webob.Request, image: ImageRow) -> Any:
        if internals.is_staged_elsewhere(image.properties):
            # Glance passes the request on to the process that has the data. That process claims
            # the image. A second request would take a running import away from that process.
            is_claimed = internals.CLAIM in image.properties
            return _conflict(image) if is_claimed else request.get_response(self._application)
        try:
            with internals.claimed(image.id):
                return request.get_response(self._application)
        except internals.Claimed:
            return _conflict(image)


def _is_open(image: ImageRow) -> bool:
    """Return whether a package's data can be staged or imported; stored data never changes."""
    return image.is_package and image.status in (internals.QUEUED, *_BEGUN)


def _conflict(image: ImageRow) -> Any:
    return webob.exc.HTTPConflict(
        explanation=f"another request is staging or importing the package of image {image.id}"
    )


def cancel_killed(image_id: str) -> bool:
    """Cancel the staging or the import of a package if its process was killed.

    :returns: whether the package can be staged again.
    """
    image = image_rows.find_image(image_id)
    # The process may have been killed since.
    if image is None or not (internals.CLAIM in image.properties or image.status in _BEGUN):
        return False
    progress = internals.find_task_progress(image.properties) or image.updated_at
    idle = timeutils.utcnow() - max(progress, image.updated_at)
    if idle < datetime.timedelta(seconds=options.group().import_timeout):
        return False
    with internals.writing() as connection:
        if not image_rows.cancel_import(connection, image, images.of_server(image.properties)):
            return False
    internals.staged_file(image_id).unlink(missing_ok=True)
    LOG.warning("The import of image %s was cancelled after %s without progress", image_id, idle)
    return True
