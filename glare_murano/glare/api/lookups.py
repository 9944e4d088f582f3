# SPDX-License-Identifier: Apache-2.0

"""The resources ``dependencies`` and ``subclasses``, from Glare's database."""

import webob

from glare_murano.glare import policies
from glare_murano.glare.db.glare_database import GlareDatabase, snapshot
from glare_murano.glare.options import SETTINGS
from glare_murano.service import dependencies, request_reading, schemas, subclass_pages


def resolve(req: webob.Request) -> webob.Response:
    """Answer a dependency query with the closure of its requirements."""
    query = dependencies.read_query(request_reading.read_body(req, schemas.QUERY))
    viewer = policies.viewer_of(req.context)
    with snapshot() as connection:
        database = GlareDatabase(connection, viewer)
        answer = dependencies.resolve(query, database, SETTINGS)
    return webob.Response(json=answer)


def list_subclasses(req: webob.Request) -> webob.Response:
    """List the subclasses of a class, with their packages, a page at a time."""
    parameters = subclass_pages.read_parameters(req)
    viewer = policies.viewer_of(req.context)
    with snapshot() as connection:
        database = GlareDatabase(connection, viewer)
        page = subclass_pages.find(req, parameters, database, SETTINGS)
    return webob.Response(json=page)
