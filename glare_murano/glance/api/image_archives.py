# SPDX-License-Identifier: Apache-2.0

"""Handle the resource ``archives``: download several archives at once; see ``service.batches``."""

import functools
from collections.abc import Iterator, Sequence

import webob

from glare_murano.glance import internals
from glare_murano.glance.api import callers
from glare_murano.glance.db import image_rows
from glare_murano.service import batches
from glare_murano.service.batches import StoredArchive


def download(req: webob.Request) -> webob.Response:
    """Return the archives of the requested packages in one TAR stream.

    The name of each archive in the stream is the id of its image.
    """
    return batches.respond(_downloadable(callers.of(req), batches.read_ids(req)))


def _downloadable(caller: callers.Caller, ids: Sequence[str]) -> Iterator[StoredArchive]:
    """Yield the archives that the caller may download, by Glance's rules for single downloads.

    :param ids: the ids of the images. Images of packages that are not active are left out, and so
        are images that the caller may not download.
    """
    for group in batches.divide(ids):
        with internals.reading() as connection:
            rows = image_rows.find(connection, group, caller.viewer.project_id)
            locations = image_rows.find_locations(connection, [row.id for row in rows])
        for row in rows:
            if row.id in locations and row.is_release and caller.may_download(row):
                read = functools.partial(internals.load, caller.context, *locations[row.id])
                yield StoredArchive(row.id, row.attributes["size"], read)
