# SPDX-License-Identifier: Apache-2.0

"""The wire form of a dependency query: ``POST /murano/dependencies``.

A query becomes the body of a request here, and the answer's JSON becomes an
answer; who sends it is the catalogue's affair. The form is the document
``doc/openapi.yaml``.
"""

from collections.abc import Mapping
from typing import Any

from glare_murano import resolver
from glare_murano.package import GlareMuranoError, VersionSpec, parse_version
from glare_murano.package.manifest import check_full_name
from loader import errors
from loader.catalogs.base import Answer, Query, Release, Undefined

PATH = "/murano/dependencies"

# What reading JSON raises that is not as it must be.
MALFORMED = (
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    ValueError,
    OverflowError,
    RecursionError,
)

# What the server takes of each kind in one query, and as pins of one package.
_MOST = 1000
_MOST_PINS = 100


def body(query: Query, project_id: str | None) -> dict[str, Any] | None:
    """The body that asks a query for a project.

    :param project_id: whose private packages may be used; None if only what
        is public may.
    :returns: None if the form cannot hold the query.
    """
    requirements = dict(query.requirements)
    kinds = (query.requirements, query.classes, query.pins)
    most_pins = max(map(len, query.pins.values()), default=0)
    if max(map(len, kinds)) > _MOST or most_pins > _MOST_PINS:
        return None
    if len(requirements) < len(query.requirements):
        # Several ranges upon one package.
        return None
    return {
        "requirements": {fqn: spec.text for fqn, spec in requirements.items()},
        "objects": [{"class": name, "version": spec.text} for name, spec in query.classes],
        "pins": {fqn: [str(v) for v in versions] for fqn, versions in query.pins.items()},
        # No project has an empty id.
        "project_id": project_id or "",
    }


def answer(content: Any) -> Answer:
    """What the JSON of an answer says.

    :raises CatalogError: if it is not as it must be.
    """
    try:
        missing = content["unsatisfied"]
        return Answer(
            releases=tuple(
                (_release(item), tuple(map(_demand, item["required_by"])))
                for item in content["releases"]
            ),
            unsatisfied=tuple(_unsatisfied(item) for item in missing if "class" not in item),
            undefined=tuple(_undefined(item) for item in missing if "class" in item),
        )
    except (*MALFORMED, GlareMuranoError) as error:
        raise errors.CatalogError(
            f"Glare answered a dependency query in a form that is not known: {error!r}"
        ) from error


def _release(item: Mapping[str, Any]) -> Release:
    return Release(
        fqn=check_full_name(item["name"]),
        version=parse_version(item["version"]),
        requirements={fqn: VersionSpec.of(text) for fqn, text in item["requirements"].items()},
        classes=frozenset(item["class_definitions"]),
        reference=item["id"],
        digest=str(item["sha256"]),
        size=int(item["size"]),
    )


def _demand(item: Mapping[str, Any]) -> resolver.Demand:
    requirer = item["requirer"]
    return resolver.Demand(
        item["name"],
        VersionSpec.of(item["range"]),
        None
        if requirer is None
        else resolver.Release(requirer["name"], parse_version(requirer["version"])),
    )


def _unsatisfied(item: Mapping[str, Any]) -> resolver.Unsatisfied:
    chain = tuple(map(_demand, item["chain"]))
    available = tuple(map(parse_version, item["available"]))
    return resolver.Unsatisfied(chain[-1], chain, available)


def _undefined(item: Mapping[str, Any]) -> Undefined:
    return Undefined(item["class"], VersionSpec.of(item["range"]), tuple(item["available"]))
