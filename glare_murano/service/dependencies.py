# SPDX-License-Identifier: Apache-2.0

"""Handle the resource ``dependencies``, which plans the closure of a set of requirements.

The closure contains the releases that satisfy the requirements, the releases that satisfy the
requirements of these releases, and so on.
"""

import webob

from glare_murano import resolver, wire
from glare_murano.budget import Budget
from glare_murano.package import VersionSpec
from glare_murano.service import request_reading, schemas
from glare_murano.service.database import Database
from glare_murano.service.refusals import bad_request, conflict, not_found
from glare_murano.service.settings import Settings
from glare_murano.service.source import CatalogSource

# The largest number of excluded releases of a package in an answer.
_MAX_EXCLUDED = 20


def read_query(req: webob.Request, budget: Budget) -> wire.Query:
    """Read the dependency query in the body of a request.

    :raises RefusedRequest: if the body is malformed, or a range or version is not valid.
    :raises Unplannable: if the time of the request is over.
    """
    body = request_reading.read_body(req, schemas.QUERY)
    try:
        return wire.query_from_json(body, budget)
    except wire.Malformed as error:
        raise bad_request(str(error)) from error


def resolve(query: wire.Query, database: Database, settings: Settings) -> wire.Answer:
    """Plan the closure of a query's requirements.

    :raises RefusedRequest: if the package that the query names by its id is missing, cannot be
        chosen, or has no archive.
    :raises Unplannable: if planning exceeds a limit.
    """
    source = CatalogSource(database, query, settings.reserved_names())
    budget = database.budget
    defining = source.defining({class_name for class_name, _ in query.classes})
    headers, undefined = resolver.find_headers(
        query.classes,
        lambda name: [defining.get(name, ())],
        query.pins,
        source.is_exact_only,
        budget,
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
        budget=budget,
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
    """Return a requirement on a stored package: its FQN, and a range of exactly its version.

    :param package_id: the id of the package, from the query.
    :raises RefusedRequest: if the package is missing, cannot be chosen, or has no archive.
    """
    found = source.package(package_id)
    if found is None:
        raise not_found(f"Package with id={package_id} not found.")
    if found.version not in source.versions([found.name]).get(found.name, ()):
        raise conflict("; ".join(str(e) for e in source.excluded[found.name] if e.id == found.id))
    if not any(source.releases([found.key])):
        raise conflict(f"{found} has no archive yet; upload it first")
    return found.name, VersionSpec.exactly(found.version)
