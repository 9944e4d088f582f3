# SPDX-License-Identifier: Apache-2.0

"""The resource ``dependencies``: the closure of a set of requirements."""

from http import HTTPStatus
from typing import Any

from glare_murano import resolver, wire
from glare_murano.package import Unplannable, VersionSpec
from glare_murano.service.database import Database
from glare_murano.service.refusals import RefusedRequest, bad_request
from glare_murano.service.settings import Settings
from glare_murano.service.source import CatalogSource


def read_query(body: object) -> wire.Query:
    """Read a dependency query already checked against its schema.

    :raises RefusedRequest: for invalid names and ranges.
    """
    try:
        return wire.query_from_json(body)
    except wire.Malformed as error:
        raise bad_request(str(error)) from error


def resolve(query: wire.Query, database: Database, settings: Settings) -> dict[str, Any]:
    """Return the closure of a query, as JSON.

    :raises RefusedRequest: for a query beyond the limits of planning, or of an unknown package.
    """
    try:
        answer = _plan(query, CatalogSource(database, query), settings)
    except Unplannable as error:
        raise bad_request(str(error)) from error
    return wire.answer_to_json(answer)


def _plan(query: wire.Query, source: CatalogSource, settings: Settings) -> wire.Answer:
    """Plan the closure of a query."""
    defining = source.defining({class_name for class_name, _ in query.classes})
    headers, undefined = resolver.find_headers(
        query.classes,
        lambda name: [defining.get(name, ())],
        query.pins,
        source.is_withdrawn,
        seconds=settings.plan_seconds,
    )
    roots = list(query.requirements)
    if query.package is not None:
        roots.append(_package_root(query.package, source))
    closure = resolver.plan(
        roots,
        query.pins,
        source,
        headers=headers,
        provided={**settings.provided(), **query.provided},
        is_withdrawn=source.is_withdrawn,
        seconds=settings.plan_seconds,
    )
    releases = source.releases(closure.releases)
    chosen = tuple((release, closure.releases[release.key]) for release in releases)
    why = closure.why if query.why else {}
    return wire.Answer(chosen, closure.unsatisfied, undefined, why, closure.external)


def _package_root(package_id: str, source: CatalogSource) -> tuple[str, VersionSpec]:
    """Return the package of a query with a range of exactly its version."""
    package = source.package(package_id)
    if package is None:
        raise RefusedRequest(HTTPStatus.NOT_FOUND, f"Package with id={package_id} not found.")
    if not any(source.releases([package])):
        raise RefusedRequest(HTTPStatus.CONFLICT, f"{package} has no archive yet; upload it first")
    return package.fqn, VersionSpec.exactly(package.version)
