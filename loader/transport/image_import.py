# SPDX-License-Identifier: Apache-2.0

"""Import an archive into an image in Glance, or continue an earlier attempt to import it."""

import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any

from glare_murano import images
from glare_murano.package.rules import Rule
from loader import errors
from loader.transport.deadlines import Deadline
from loader.transport.failures import Conflict

if TYPE_CHECKING:
    from loader.transport.image_service import ImageService

LOG = logging.getLogger(__name__)

QUEUED = "queued"

# How many seconds an import may take, in which the service reads and stores the archive. If the
# service is killed meanwhile, it may accept another attempt only after five minutes.
_TIMEOUT = 900.0
# After how many seconds the archive is staged again, in case Glance was killed.
_STAGE_AGAIN = 60.0
# If the service had no time to read an archive, the archive is sent again after one of these waits,
# in seconds. Each wait is random, between half of its value and the value, so that several clients
# do not send their archives at the same time.
_BUSY_WAITS = (10.0, 20.0, 30.0, 60.0)
# The seconds between two requests for the state of an import; each wait is twice as long as the
# one before.
_FIRST_WAIT = 0.1
_LONGEST_WAIT = 2.0
_STAGED = "uploading"
_WITH_TASK = "os_glance_import_task"


def import_archive(
    service: "ImageService", image_id: str, archive: IO[bytes], size: int, label: str
) -> Mapping[str, Any]:
    """Import an archive into an image in Glance, unless the image has an archive already.

    The archive is first sent to Glance's staging area (it is *staged*), and then imported from
    there. If an earlier attempt has staged data, which may be only a part of an archive, this data
    is imported first. If Glance refuses this data, the given archive is staged and imported. If
    Glance is busy with other packages, the archive is sent again up to four times, after waits that
    are logged.

    :param archive: the ZIP file, which can be read again from its beginning.
    :param size: its size in bytes.
    :param label: the name of the archive in messages.
    :returns: the image after the import; its status is ``queued`` if the archive was refused.
    :raises CatalogUnavailable: if the import takes too long.
    :raises CatalogError: if Glance refuses a request.
    """

    def stage() -> None:
        service.stage(image_id, archive, size, label)

    is_staged, status = False, "unknown"
    busy_waits = iter(_BUSY_WAITS)
    wait, stage_again = _FIRST_WAIT, time.monotonic() + _STAGE_AGAIN
    with Deadline(_TIMEOUT, f"the import of {label}", "not complete in time") as deadline:
        while deadline.left > 0:
            image = service.get(image_id)
            status, is_running = image["status"], bool(image.get(_WITH_TASK))
            if not is_running and status in (images.ACTIVE, images.DEACTIVATED):
                return image
            is_accepted = False
            if not is_running and status == QUEUED:
                if is_staged and not _waits_for_turn(image, label, busy_waits):
                    return image
                is_staged = is_accepted = _accepted(stage)
            elif not is_running and status == _STAGED:
                # Glance refuses the import while another client is still staging.
                is_accepted = _accepted(lambda: service.start_import(image_id))
            elif time.monotonic() > stage_again:
                is_accepted = _accepted(stage)
                is_staged |= is_accepted
                stage_again += _STAGE_AGAIN
            if not is_accepted:
                time.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
    raise errors.CatalogUnavailable(
        f"{label} was not imported within {_TIMEOUT:g} seconds; the image {image_id} has the "
        f"status {status}. Run the same command again later"
    )


def is_busy(image: Mapping[str, Any]) -> bool:
    """Return whether the last import has failed because Glance was busy with other packages."""
    return str(image.get(images.REFUSAL)).endswith(f"[{Rule.SERVICE_BUSY}]")


def _waits_for_turn(image: Mapping[str, Any], label: str, waits: Iterator[float]) -> bool:
    """Return whether an archive has to be sent again; if so, wait before that.

    An archive is sent again if Glance was too busy to read it, and if ``waits`` is not used up.

    :param waits: the longest time of this wait, and of each further wait, in seconds.
    """
    longest = next(waits, None) if is_busy(image) else None
    if longest is None:
        return False
    wait = random.uniform(longest / 2, longest)  # noqa: S311 - no secret
    LOG.warning("The service is busy with other packages; sending %s again in %.0f s", label, wait)
    time.sleep(wait)
    return True


def _accepted(request: Callable[[], object]) -> bool:
    """Send a request; return false if Glance refuses it because of the image's present state."""
    try:
        request()
    except Conflict:
        return False
    return True
