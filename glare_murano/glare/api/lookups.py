# SPDX-License-Identifier: Apache-2.0

"""Handle the resources that read Glare's database: dependencies, subclasses and lists."""

import functools
from collections.abc import Callable
from typing import Any

import webob

from glare_murano import inheritance, resolver, wire
from glare_murano.glare import policies
from glare_murano.glare.db.glare_database import GlareDatabase, snapshot
from glare_murano.glare.options import SETTINGS
from glare_murano.service import (
    budgets,
    dependencies,
    json_encoding,
    package_pages,
    subclass_pages,
)


def resolve(req: webob.Request) -> webob.Response:
    """Answer a dependency query with the closure of its requirements."""
    with budgets.of_query(SETTINGS, resolver.REMEDY) as budget:
        query = dependencies.read_query(req, budget)
        viewer = policies.viewer_of(req.context)
        with snapshot() as connection:
            database = GlareDatabase(connection, viewer, budget)
            answer = dependencies.resolve(query, database, SETTINGS)
        return json_encoding.respond(wire.answer_to_json(answer, budget), budget)


def list_subclasses(req: webob.Request) -> webob.Response:
    """List one page of the subclasses of a class, with their packages."""
    parameters = subclass_pages.read_parameters(req)
    return _respond(
        req,
        inheritance.REMEDY,
        lambda database: subclass_pages.find(req, parameters, database, SETTINGS),
    )


def list_packages(req: webob.Request) -> webob.Response:
    """List one page of packages."""
    request = package_pages.read_parameters(req)

    def find(database: GlareDatabase) -> dict[str, Any]:
        read = functools.partial(database.find_fields, names=package_pages.FIELDS)
        return package_pages.list_packages(req, request, database, SETTINGS, read)

    return _respond(req, package_pages.REMEDY, find)


def list_categories(req: webob.Request) -> webob.Response:
    """List the categories of packages."""
    selection = package_pages.read_statuses(req)
    return _respond(
        req,
        package_pages.CATEGORIES_REMEDY,
        lambda database: package_pages.list_categories(selection, database),
    )


def _respond(
    req: webob.Request, remedy: str, find: Callable[[GlareDatabase], dict[str, Any]]
) -> webob.Response:
    """Answer a query of Glare's database, within the time limit of a request.

    :param remedy: what the client can request instead, for the message if the time is over.
    :param find: a function that executes the query, and returns the content of the response.
    """
    with budgets.of_query(SETTINGS, remedy) as budget:
        viewer = policies.viewer_of(req.context)
        with snapshot() as connection:
            found = find(GlareDatabase(connection, viewer, budget))
        return json_encoding.respond(found, budget)
