# SPDX-License-Identifier: Apache-2.0

"""The resource ``deletions``: which versions a project cannot publish again.

The id of an image follows from project, name and version. Glance never gives an id twice, and
its own API does not show deleted images.
"""

import webob

from glare_murano import images
from glare_murano.glance import callers, image_rows, internals
from glare_murano.service import http_requests, schemas


def find(req: webob.Request) -> webob.Response:
    """List the packages of a request that the caller's project cannot publish again."""
    packages = http_requests.read_body(req, schemas.DELETIONS)["packages"]
    # Ids of the caller's project alone, so that the answer reveals nothing about other projects.
    project = callers.of(req).viewer.project_id or ""
    by_id = {images.image_id(project, each["name"], each["version"]): each for each in packages}
    names = {id_: each["name"] for id_, each in by_id.items()}
    with internals.reading() as connection:
        lost = image_rows.find_lost(connection, names, project)
    return webob.Response(json={"packages": [by_id[id_] for id_ in by_id if id_ in lost]})
