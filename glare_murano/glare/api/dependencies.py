# SPDX-License-Identifier: Apache-2.0

"""Dependency queries: their form, and their answers.

A query is a JSON object that asks what a set of requirements comes to. Reading
HTTP is not here (see ``api``), nor what is asked of the database (see
``dependencies``).
"""

from typing import Any

import jsonschema
from glare.common import exception

from glare_murano import resolver
from glare_murano.glare.api import validation
from glare_murano.glare.db import source
from glare_murano.package import GlareMuranoError, VersionSpec, parse_version

_RANGE = {"type": ["string", "null"]}
_RANGES = {"type": "object", "maxProperties": 1000, "additionalProperties": _RANGE}
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
        "objects": {"type": "array", "maxItems": 1000, "items": _OBJECT},
        "pins": {
            "type": "object",
            "maxProperties": 1000,
            # Every range upon a package is held against each of its pins.
            "additionalProperties": {
                "type": "array",
                "maxItems": 100,
                "items": {"type": "string"},
            },
        },
        "prereleases": {"type": "boolean"},
        "project_id": {"type": "string"},
    },
    "additionalProperties": False,
}
_VALIDATOR = jsonschema.Draft202012Validator(REQUEST_SCHEMA)


class Query:
    """A dependency query, checked.

    :raises glare.common.exception.BadRequest: telling what is wrong where.
    """

    def __init__(self, body: Any) -> None:
        """Check a request's body."""
        try:
            validation.check_form(_VALIDATOR, body)
            self.requirements = [
                (fqn, VersionSpec.of(text)) for fqn, text in body.get("requirements", {}).items()
            ]
            self.objects = [
                (item["class"], VersionSpec.of(item.get("version")))
                for item in body.get("objects", [])
            ]
            self.pins = {
                fqn: [parse_version(text) for text in texts]
                for fqn, texts in body.get("pins", {}).items()
            }
        except GlareMuranoError as error:
            raise exception.BadRequest(message=str(error)) from error
        self.prereleases: bool = body.get("prereleases", True)
        self.project_id: str | None = body.get("project_id")
        self.package: str | None = body.get("package")


def answer(query: Query, source: source.GlareSource) -> dict[str, Any]:
    """What a query comes to.

    :raises glare.common.exception.NotFound: if its package is not there.
    :raises glare.common.exception.Conflict: if its package has no archive.
    :raises Unplannable: if that would take too long.
    """
    roots, missing = _roots(query, source)
    roots += [*query.requirements, *_package(query, source)]
    planned = resolver.plan(roots, query.pins, source)
    details = source.details(planned.releases)
    return {
        "releases": [
            {
                "id": source.found[release].id,
                "name": release.fqn,
                "version": str(release.version),
                "owner": source.found[release].owner,
                "visibility": source.found[release].visibility,
                "requirements": dict(sorted(details[release].requirements.items())),
                "class_definitions": list(details[release].classes),
                "sha256": details[release].digest,
                "size": details[release].size,
                "required_by": [_demand(demand) for demand in demands],
            }
            for release, demands in planned.releases.items()
        ],
        "unsatisfied": [
            *missing,
            *(
                {
                    "name": problem.demand.fqn,
                    "range": problem.demand.spec.text,
                    "chain": [_demand(demand) for demand in problem.chain],
                    "available": [str(version) for version in problem.available],
                }
                for problem in planned.unsatisfied
            ),
        ],
    }


def _demand(demand: resolver.Demand) -> dict[str, Any]:
    requirer = demand.requirer
    return {
        "name": demand.fqn,
        "range": demand.spec.text,
        "requirer": None
        if requirer is None
        else {"name": requirer.fqn, "version": str(requirer.version)},
    }


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
) -> tuple[list[tuple[str, VersionSpec]], list[dict[str, Any]]]:
    """The packages of an object model's types, each in one version that defines the type.

    :returns: FQNs and ranges, and what no package defines.
    """
    if not query.objects:
        return [], []
    defining = source.defining({class_name for class_name, _ in query.objects})
    roots, missing = [], []
    for class_name, spec in query.objects:
        releases = defining.get(class_name, ())
        root = resolver.choose_defining([releases], spec, query.pins)
        if root is not None:
            roots.append(root)
        else:
            missing.append(
                {
                    "class": class_name,
                    "range": spec.text,
                    "chain": [],
                    "available": [str(release) for release in resolver.one_of_each(releases)],
                }
            )
    return roots, missing
