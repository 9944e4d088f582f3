# SPDX-License-Identifier: Apache-2.0

"""Dependency queries: their form, and their answers.

A query is a JSON object that asks what a set of requirements comes to. Reading
HTTP is not here (see ``api``), nor what is asked of the database (see
``dependencies``).
"""

from typing import Any

import jsonschema
from glare.common import exception

from glare_murano import resolver, wire
from glare_murano.glare.api import validation
from glare_murano.glare.db import source
from glare_murano.package import VersionSpec
from glare_murano.wire import Answer, Query, Undefined

_RANGE = {"type": ["string", "null"]}
_RANGES = {"type": "object", "maxProperties": wire.MAX_REQUIREMENTS, "additionalProperties": _RANGE}
_OBJECT = {
    "type": "object",
    "properties": {"class": {"type": "string"}, "version": _RANGE},
    "required": ["class"],
    "additionalProperties": False,
}
REQUEST_SCHEMA = {
    "type": "object",
    "properties": {
        "requirements": _RANGES,
        "package": {"type": "string", "maxLength": 36},
        "objects": {"type": "array", "maxItems": wire.MAX_REQUIREMENTS, "items": _OBJECT},
        "pins": {
            "type": "object",
            "maxProperties": wire.MAX_REQUIREMENTS,
            # Every range upon a package is held against each of its pins.
            "additionalProperties": {
                "type": "array",
                "maxItems": wire.MAX_PINS,
                "items": {"type": "string"},
            },
        },
        "prereleases": {"type": "boolean"},
        "project_id": {"type": "string"},
    },
    "additionalProperties": False,
}
_VALIDATOR = jsonschema.Draft202012Validator(REQUEST_SCHEMA)


def query(body: Any) -> Query:
    """Read a dependency query.

    :raises glare.common.exception.BadRequest: naming the key.
    """
    validation.check_form(_VALIDATOR, body)
    try:
        return wire.query_from_json(body)
    except wire.Malformed as error:
        raise exception.BadRequest(message=str(error)) from error


def answer(query: Query, source: source.GlareSource) -> Answer:
    """Plan the closure of a query.

    :raises glare.common.exception.NotFound: if its package does not exist.
    :raises glare.common.exception.Conflict: if its package has no archive.
    :raises Unplannable: if planning would take too long.
    """
    roots, undefined = _roots(query, source)
    roots += [*query.requirements, *_package(query, source)]
    planned = resolver.plan(roots, query.pins, source)
    return Answer(
        tuple(
            (release, planned.releases[release.key])
            for release in source.releases(planned.releases)
        ),
        planned.unsatisfied,
        tuple(undefined),
    )


def _package(query: Query, source: source.GlareSource) -> list[tuple[str, VersionSpec]]:
    """The package that is asked about, as a root: just this version of it."""
    if query.package is None:
        return []
    release = source.given()
    if release is None:
        raise exception.ArtifactNotFound(message=f"Artifact with id={query.package} not found.")
    if not source.details([release]):
        raise exception.Conflict(message=f"{release} has no archive yet; upload it first")
    return [(release.fqn, VersionSpec.exactly(release.version))]


def _roots(
    query: Query, source: source.GlareSource
) -> tuple[list[tuple[str, VersionSpec]], list[Undefined]]:
    """Return a root for each class: the package that defines it, in one version.

    :returns: FQNs and ranges, and the classes that no package defines.
    """
    if not query.classes:
        return [], []
    defining = source.defining({class_name for class_name, _ in query.classes})
    roots, undefined = [], []
    for class_name, spec in query.classes:
        releases = defining.get(class_name, ())
        root = resolver.choose_defining([releases], spec, query.pins)
        if root is not None:
            roots.append(root)
        else:
            there = resolver.one_of_each(releases)
            undefined.append(Undefined(class_name, spec, tuple(map(str, there))))
    return roots, undefined
