# SPDX-License-Identifier: Apache-2.0

"""Handle the resources that read Glance's database: dependencies, subclasses and lists."""

import functools
from collections.abc import Callable, Collection
from typing import Any

import webob
from oslo_log import log as logging
from sqlalchemy.engine import Connection

from glare_murano import fields, images, inheritance, resolver, wire
from glare_murano.budget import Budget
from glare_murano.glance import image_policies, internals
from glare_murano.glance.api import callers
from glare_murano.glance.db import image_rows
from glare_murano.glance.db.glance_database import (
    GlanceDatabase,
    UnreadablePackages,
    readable_fields,
)
from glare_murano.glance.options import SETTINGS
from glare_murano.service import (
    budgets,
    dependencies,
    json_encoding,
    package_pages,
    subclass_pages,
)
from glare_murano.service.database import Viewer

LOG = logging.getLogger(__name__)

# The properties that contain the fields of a package.
_PROPERTIES = frozenset(
    {
        images.SHA256,
        *(name for field in package_pages.FIELDS for name in images.property_names(field)),
    }
)


def resolve(req: webob.Request) -> webob.Response:
    """Answer a dependency query with the closure of its requirements."""
    with budgets.of_query(SETTINGS, resolver.REMEDY) as budget:
        query = dependencies.read_query(req, budget)
        if query.package is not None:
            callers.of(req).check_archive(query.package)
        with internals.reading() as connection:
            answer = _resolve(connection, callers.of(req).viewer, query, budget)
        return json_encoding.respond(wire.answer_to_json(answer, budget), budget)


def _resolve(
    connection: Connection, viewer: Viewer, query: wire.Query, budget: Budget
) -> wire.Answer:
    """Plan the closure of a query, and leave out the packages whose metadata cannot be read."""
    left_out: set[str] = set()
    # The loop ends, since packages that were left out are not found again.
    while True:
        database = GlanceDatabase(connection, viewer, budget, left_out)
        try:
            return dependencies.resolve(query, database, SETTINGS)
        except UnreadablePackages as error:
            LOG.warning("A query is answered without some packages: %s", error)
            left_out |= error.ids


def list_subclasses(req: webob.Request) -> webob.Response:
    """List one page of the subclasses of a class, with their packages."""
    parameters = subclass_pages.read_parameters(req)
    return _respond(
        req,
        inheritance.REMEDY,
        lambda _, database: subclass_pages.find(req, parameters, database, SETTINGS),
    )


def list_packages(req: webob.Request) -> webob.Response:
    """List one page of packages."""
    request = package_pages.read_parameters(req)

    def find(connection: Connection, database: GlanceDatabase) -> dict[str, Any]:
        read = functools.partial(_read_fields, callers.of(req), connection, database.budget)
        return package_pages.list_packages(req, request, database, SETTINGS, read)

    return _respond(req, package_pages.REMEDY, find)


def _read_fields(
    caller: callers.Caller, connection: Connection, budget: Budget, ids: Collection[str]
) -> dict[str, dict[str, Any]]:
    """Return the fields of packages by id.

    Images that Glance would not show, and images with malformed properties, are left out.
    """
    project = caller.viewer.project_id
    rows = {
        row.id: row
        for row in image_rows.find_for_list(connection, ids, project, _PROPERTIES)
        if caller.may(row, image_policies.GET_IMAGE)
    }
    properties = {id_: row.properties for id_, row in rows.items()}
    watched = budget.watch(properties.items(), package_pages.STEP)
    found = dict(readable_fields(watched, package_pages.FIELDS))
    for id_, of_package in found.items():
        attributes = rows[id_].attributes
        of_package |= {name: attributes[name] for name in ("created_at", "updated_at")}
        if digest := properties[id_].get(images.SHA256):
            of_package[fields.ARCHIVE] = {"sha256": digest, "size": attributes["size"]}
    return found


def list_categories(req: webob.Request) -> webob.Response:
    """List the categories of packages."""
    selection = package_pages.read_statuses(req)
    return _respond(
        req,
        package_pages.CATEGORIES_REMEDY,
        lambda _, database: package_pages.list_categories(selection, database),
    )


def _respond(
    req: webob.Request, remedy: str, find: Callable[[Connection, GlanceDatabase], dict[str, Any]]
) -> webob.Response:
    """Answer a query of Glance's database, within the time limit of a request.

    :param remedy: what the client can request instead, for the message if the time is over.
    :param find: a function that executes the query, and returns the content of the response.
    """
    with budgets.of_query(SETTINGS, remedy) as budget:
        viewer = callers.of(req).viewer
        with internals.reading() as connection:
            found = find(connection, GlanceDatabase(connection, viewer, budget))
        return json_encoding.respond(found, budget)
