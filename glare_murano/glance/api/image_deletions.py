# SPDX-License-Identifier: Apache-2.0

"""Handle the resource ``deletions``, which lists the versions that a project cannot publish again.

The id of an image follows from project, name and version. If a published package is deleted, Glance
keeps the row of its image. So no new image can have the same id until an administrator purges the
row.
Glance's own API does not show deleted images. A deleted draft leaves no row.
"""

import webob

from glare_murano import images
from glare_murano.glance import internals
from glare_murano.glance.api import callers
from glare_murano.glance.db import image_rows
from glare_murano.package import InvalidVersion, Version, parse_version
from glare_murano.service import request_reading, schemas
from glare_murano.service.refusals import bad_request


def find(req: webob.Request) -> webob.Response:
    """Return those packages in a request that the caller's project cannot publish again.

    The request contains names and versions.

    :raises RefusedRequest: if a version is not valid.
    """
    packages = request_reading.read_body(req, schemas.DELETIONS)["packages"]
    # All ids belong to the caller's project, so the answer reveals nothing about other projects.
    project = callers.of(req).viewer.project_id or ""
    ids = [images.image_id(project, each["name"], _version(each["version"])) for each in packages]
    names = {id_: each["name"] for id_, each in zip(ids, packages, strict=True)}
    with internals.reading() as connection:
        lost = image_rows.find_lost(connection, names, project)
    found = [each for id_, each in zip(ids, packages, strict=True) if id_ in lost]
    return webob.Response(json={"packages": found})


def _version(text: str) -> Version:
    try:
        return parse_version(text)
    except InvalidVersion as error:
        raise bad_request(str(error)) from error
