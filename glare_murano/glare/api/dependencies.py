# SPDX-License-Identifier: Apache-2.0

"""The resource ``dependencies``: the closure of a set of requirements."""

import webob
from glare.common import exception

from glare_murano import resolver, wire
from glare_murano.glare import policies
from glare_murano.glare.api import validation
from glare_murano.glare.db import queries
from glare_murano.glare.db.source import GlareSource
from glare_murano.package import VersionSpec

_RANGE = {"type": ["string", "null"]}
_RANGES = {"type": "object", "maxProperties": wire.MAX_REQUIREMENTS, "additionalProperties": _RANGE}
_OBJECT = {
    "type": "object",
    "properties": {"class": {"type": "string"}, "version": _RANGE},
    "required": ["class"],
    "additionalProperties": False,
}
_VERSIONS = {"type": "array", "maxItems": wire.MAX_PINS, "items": {"type": "string"}}
_PINS = {**_RANGES, "additionalProperties": _VERSIONS}
SCHEMA = {
    "type": "object",
    "properties": {
        "requirements": _RANGES,
        "package": {"type": "string", "maxLength": 36},
        "objects": {"type": "array", "maxItems": wire.MAX_REQUIREMENTS, "items": _OBJECT},
        "pins": _PINS,
        "prereleases": {"type": "boolean"},
        "project_id": {"type": "string"},
    },
    "additionalProperties": False,
}


def resolve(req: webob.Request) -> webob.Response:
    """Answer a dependency query with its closure."""
    body = validation.read_body(req, SCHEMA)
    viewer = policies.viewer_of(req.context)
    try:
        query = wire.query_from_json(body)
        with queries.snapshot() as connection:
            answer = _plan(query, GlareSource(connection, viewer, query))
    except (wire.Malformed, resolver.Unplannable) as error:
        raise exception.BadRequest(str(error)) from error
    return webob.Response(json=wire.answer_to_json(answer))


def _plan(query: wire.Query, source: GlareSource) -> wire.Answer:
    """Plan the closure of a query.

    :raises glare.common.exception.NotFound: if its package does not exist.
    :raises glare.common.exception.Conflict: if its package has no archive.
    :raises resolver.Unplannable: if planning would take too long.
    """
    roots, undefined = _find_roots(query, source)
    if query.package is not None:
        roots.append(_package_root(query.package, source))
    closure = resolver.plan([*roots, *query.requirements], query.pins, source)
    releases = source.releases(closure.releases)
    chosen = tuple((release, closure.releases[release.key]) for release in releases)
    return wire.Answer(chosen, closure.unsatisfied, tuple(undefined))


def _find_roots(
    query: wire.Query, source: GlareSource
) -> tuple[list[tuple[str, VersionSpec]], list[wire.Undefined]]:
    """Find a package for each class of a query, and an exact range for its version.

    :returns: the packages with ranges, and the classes without any package.
    """
    if not query.classes:
        return [], []
    defining = source.defining({class_name for class_name, _ in query.classes})
    roots, undefined = [], []
    for class_name, spec in query.classes:
        packages = defining.get(class_name, ())
        if root := resolver.choose_defining([packages], spec, query.pins):
            roots.append(root)
        else:
            available = tuple(map(str, resolver.one_of_each(packages)))
            undefined.append(wire.Undefined(class_name, spec, available))
    return roots, undefined


def _package_root(artifact_id: str, source: GlareSource) -> tuple[str, VersionSpec]:
    """Return the package of a query with a range of exactly its version."""
    package = source.package(artifact_id)
    if package is None:
        raise exception.ArtifactNotFound(f"Artifact with id={artifact_id} not found.")
    if not any(source.releases([package])):
        raise exception.Conflict(f"{package} has no archive yet; upload it first")
    return package.fqn, VersionSpec.exactly(package.version)
