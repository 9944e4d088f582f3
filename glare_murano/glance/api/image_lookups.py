# SPDX-License-Identifier: Apache-2.0

"""The resources ``dependencies`` and ``subclasses``, from Glance's database."""

from typing import Any

import webob
from oslo_log import log as logging
from sqlalchemy.engine import Connection

from glare_murano import wire
from glare_murano.glance import internals
from glare_murano.glance.api import callers
from glare_murano.glance.db.glance_database import GlanceDatabase, UnreadablePackages
from glare_murano.glance.options import SETTINGS
from glare_murano.service import dependencies, request_reading, schemas, subclass_pages
from glare_murano.service.database import Viewer

LOG = logging.getLogger(__name__)


def resolve(req: webob.Request) -> webob.Response:
    """Answer a dependency query with the closure of its requirements."""
    query = dependencies.read_query(request_reading.read_body(req, schemas.QUERY))
    if query.package is not None:
        callers.of(req).check_archive(query.package)
    with internals.reading() as connection:
        answer = _resolve(connection, callers.of(req).viewer, query)
    return webob.Response(json=answer)


def _resolve(connection: Connection, viewer: Viewer, query: wire.Query) -> dict[str, Any]:
    """Resolve a query, and leave out unreadable packages."""
    left_out: set[str] = set()
    # The loop ends, since packages that are left out are not found again.
    while True:
        database = GlanceDatabase(connection, viewer, left_out)
        try:
            return dependencies.resolve(query, database, SETTINGS)
        except UnreadablePackages as error:
            LOG.warning("A query is answered without some packages: %s", error)
            left_out |= error.ids


def list_subclasses(req: webob.Request) -> webob.Response:
    """List the subclasses of a class, with their packages, a page at a time."""
    parameters = subclass_pages.read_parameters(req)
    with internals.reading() as connection:
        database = GlanceDatabase(connection, callers.of(req).viewer)
        page = subclass_pages.find(req, parameters, database, SETTINGS)
    return webob.Response(json=page)
