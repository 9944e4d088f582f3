# SPDX-License-Identifier: Apache-2.0

"""The resource ``dependencies``: the closure of a set of requirements."""

import webob
from glare.common import exception

from glare_murano import resolver, wire
from glare_murano.glare import policies, provided
from glare_murano.glare.api import validation
from glare_murano.glare.db import queries
from glare_murano.glare.db.source import GlareSource, plan_seconds
from glare_murano.package import Unplannable, VersionSpec

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
        "provided": _PINS,
        "prereleases": {"type": "boolean"},
        "why": {"type": "boolean"},
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
    except (wire.Malformed, Unplannable) as error:
        raise exception.BadRequest(str(error)) from error
    return webob.Response(json=wire.answer_to_json(answer))


def _plan(query: wire.Query, source: GlareSource) -> wire.Answer:
    """Plan the closure of a query."""
    defining = source.defining({class_name for class_name, _ in query.classes})
    headers, undefined = resolver.find_headers(
        query.classes,
        lambda name: [defining.get(name, ())],
        query.pins,
        source.is_withdrawn,
        seconds=plan_seconds(),
    )
    roots = list(query.requirements)
    if query.package is not None:
        roots.append(_package_root(query.package, source))
    closure = resolver.plan(
        roots,
        query.pins,
        source,
        headers=headers,
        provided={**provided.packages(), **query.provided},
        is_withdrawn=source.is_withdrawn,
        seconds=plan_seconds(),
    )
    releases = source.releases(closure.releases)
    chosen = tuple((release, closure.releases[release.key]) for release in releases)
    why = closure.why if query.why else {}
    return wire.Answer(chosen, closure.unsatisfied, undefined, why, closure.external)


def _package_root(artifact_id: str, source: GlareSource) -> tuple[str, VersionSpec]:
    """Return the package of a query with a range of exactly its version."""
    package = source.package(artifact_id)
    if package is None:
        raise exception.ArtifactNotFound(f"Artifact with id={artifact_id} not found.")
    if not any(source.releases([package])):
        raise exception.Conflict(f"{package} has no archive yet; upload it first")
    return package.fqn, VersionSpec.exactly(package.version)
