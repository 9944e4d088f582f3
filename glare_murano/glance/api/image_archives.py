# SPDX-License-Identifier: Apache-2.0

"""Handle the resource ``archives``: download several archives at once; see ``service.batches``."""

import functools
from collections.abc import Iterator, Sequence

import webob

from glare_murano.glance import internals
from glare_murano.glance.api import callers
from glare_murano.glance.db import image_rows
from glare_murano.service import batches, request_reading, schemas
from glare_murano.service.batches import StoredArchive

# The number of images that are looked up at once.
_LOOK_UP = 16


def download(req: webob.Request) -> webob.Response:
    """Return the archives of the requested packages in one TAR stream.

    The name of each archive in the stream is the id of its image.
    """
    ids = list(dict.fromkeys(request_reading.read_body(req, schemas.BATCH)["artifacts"]))
    return batches.respond(_downloadable(callers.of(req), ids))


def _downloadable(caller: callers.Caller, ids: Sequence[str]) -> Iterator[StoredArchive]:
    """Yield the archives that the caller may download, by Glance's rules for single downloads.

    :param ids: the ids of the images. Images of packages that are not active are left out, and so
        are images that the caller may not download.
    """
    # Only a few images are looked up at once, since the next ones may be deleted while archives are
    # sent.
    for start in range(0, len(ids), _LOOK_UP):
        share = ids[start : start + _LOOK_UP]
        with internals.reading() as connection:
            rows = image_rows.find(connection, share, caller.viewer.project_id)
            locations = image_rows.find_locations(connection, [row.id for row in rows])
        for row in rows:
            if row.id in locations and row.is_release and caller.may_download(row):
                read = functools.partial(internals.load, caller.context, *locations[row.id])
                yield StoredArchive(row.id, row.attributes["size"], read)
