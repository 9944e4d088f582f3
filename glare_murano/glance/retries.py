# SPDX-License-Identifier: Apache-2.0

"""A WSGI filter that lets owners stage a package again after a killed import.

The id of a package's image is fixed, and Glance never gives an id of a deleted image away
again. So an image must not stay in the status that a killed process has left: Glance itself
would refuse to stage data for it, for ever. Before the request goes on to Glance, this
filter returns the image to ``queued``, if its import has made no progress for
``import_timeout`` seconds.
"""

import datetime
import re
from collections.abc import Callable, Iterable
from typing import Any

import webob
from oslo_log import log as logging
from oslo_utils import timeutils

from glare_murano import images
from glare_murano.glance import internals, options

LOG = logging.getLogger(__name__)

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_STAGE = re.compile(r"/v2/images/([0-9a-f-]{36})/stage")


def filter_factory(_: Any, **options: str) -> Callable[[Application], Application]:
    """Return the filter, for Paste. It belongs after the filter ``context``."""
    return RetryFilter


class RetryFilter:
    """Cancels a killed import before its image is staged again."""

    def __init__(self, application: Application) -> None:
        self._application = application

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Handle a request."""
        request = webob.Request(environ)
        staged = _STAGE.fullmatch(request.path_info)
        if staged and request.method == "PUT" and internals.may_modify(request.context, staged[1]):
            cancel_killed(staged[1])
        return self._application(environ, start_response)


def cancel_killed(image_id: str) -> bool:
    """Cancel the import of a package if its process was killed.

    :returns: whether it was, so that the package can be staged again.
    """
    image = internals.get_image(image_id)
    is_begun = image.status in (internals.UPLOADING, internals.IMPORTING)
    if image.container_format != images.CONTAINER_FORMAT or not is_begun:
        return False
    idle = timeutils.utcnow() - internals.find_progress(image)
    if idle < datetime.timedelta(seconds=options.group().import_timeout):
        return False
    drop = [name for name in image.properties if name.startswith(images.PREFIX)]
    if not internals.cancel_import(image, drop):
        return False
    internals.staged_file(image_id).unlink(missing_ok=True)
    LOG.warning("The import of image %s was cancelled after %s without progress", image_id, idle)
    return True
