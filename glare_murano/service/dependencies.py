# SPDX-License-Identifier: Apache-2.0

"""The resource ``dependencies``: the closure of a set of requirements."""

from typing import Any

from glare_murano import resolver, wire
from glare_murano.package import Unplannable, VersionSpec
from glare_murano.service.database import Database
from glare_murano.service.refusals import bad_request, conflict, not_found
from glare_murano.service.settings import Settings
from glare_murano.service.source import CatalogSource

# The most excluded releases of a package that an answer lists.
_MAX_EXCLUDED = 20


def read_query(body: object) -> wire.Query:
    """Read a dependency query from a body that was checked against its schema.

    :raises RefusedRequest: for invalid names and ranges.
    """
    try:
        return wire.query_from_json(body)
    except wire.Malformed as error:
        raise bad_request(str(error)) from error


def resolve(query: wire.Query, database: Database, settings: Settings) -> dict[str, Any]:
    """Return the closure of a query, as JSON.

    :raises RefusedRequest: if planning exceeds a limit, or the query's package is unknown.
    """
    try:
        answer = _plan(query, CatalogSource(database, query, settings.reserved_names()), settings)
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
        source.is_exact_only,
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
        is_exact_only=source.is_exact_only,
        seconds=settings.plan_seconds,
    )
    releases = source.releases(closure.releases)
    chosen = tuple((release, closure.releases[release.key]) for release in releases)
    missing = {each.demand.fqn for each in closure.unsatisfied}
    excluded = tuple(
        each
        for fqn, of_package in sorted(source.excluded.items())
        if query.why or fqn in missing
        for each in of_package[:_MAX_EXCLUDED]
    )
    why = closure.why if query.why else {}
    return wire.Answer(chosen, closure.unsatisfied, undefined, why, closure.external, excluded)


def _package_root(package_id: str, source: CatalogSource) -> tuple[str, VersionSpec]:
    """Return the name of a query's package, with a range that is exactly its version."""
    found = source.package(package_id)
    if found is None:
        raise not_found(f"Package with id={package_id} not found.")
    if found.version not in source.versions([found.name]).get(found.name, ()):
        raise conflict("; ".join(str(e) for e in source.excluded[found.name] if e.id == found.id))
    if not any(source.releases([found.key])):
        raise conflict(f"{found} has no archive yet; upload it first")
    return found.name, VersionSpec.exactly(found.version)
