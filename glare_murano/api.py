# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The WSGI filter that answers dependency queries.

It stands in Glare's paste pipeline behind whatever authenticates, answers one
path of its own, and leaves every other request to Glare. The document
"dependencies" tells the form of requests and answers.
"""

import collections
import json
from collections.abc import Mapping
from typing import Any

import jsonschema
import webob
from glare.common import exception
from glare.common import policy
from glare.db.sqlalchemy import api as database
from oslo_middleware import base as base_middleware

from glare_murano import dependencies
from glare_murano.package import GlareMuranoError
from glare_murano.package import Version
from glare_murano.package import VersionSpec
from glare_murano.package import closure
from glare_murano.package import parse_version

PATH = "/murano/dependencies"
MAX_BODY = 1024 * 1024

_RANGE = {"type": ["string", "null"]}
_RANGES = {"type": "object", "additionalProperties": _RANGE, "maxProperties": 1000}
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
        "objects": {"type": "array", "items": _OBJECT, "maxItems": 1000},
        "pins": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
            "maxProperties": 1000,
        },
        "prereleases": {"type": "boolean"},
        "project_id": {"type": "string"},
    },
    "additionalProperties": False,
}


class DependenciesFilter(base_middleware.ConfigurableMiddleware):
    """Answers ``POST /murano/dependencies``."""

    @staticmethod
    def process_request(req: Any) -> webob.Response | None:
        """Answer a dependency query; leave any other request alone."""
        if req.path_info != PATH:
            return None
        if req.method != "POST":
            return webob.Response(status=405, headers={"Allow": "POST"})
        context = req.context
        policy.authorize("artifact:list", {}, context)
        query = _Query(_body(req))
        see_all = policy.authorize("artifact:list_all_artifacts", {}, context, do_raise=False)
        session = database.get_session()
        try:
            with session.begin():
                source = dependencies.GlareSource(
                    session,
                    context,
                    see_all=see_all,
                    project_id=query.project_id,
                    prereleases=query.prereleases,
                )
                answer = _answer(query, source)
        except closure.TooManyVersions as error:
            raise exception.BadRequest(message=str(error)) from error
        return webob.Response(
            json.dumps(answer).encode(), content_type="application/json", charset="UTF-8"
        )


class _Query:
    """A request's body, checked.

    :raises glare.common.exception.BadRequest: telling what is wrong where.
    """

    def __init__(self, body: Mapping[str, Any]) -> None:
        try:
            jsonschema.validate(body, REQUEST_SCHEMA)
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
        except jsonschema.ValidationError as error:
            place = "/".join(map(str, error.absolute_path)) or "the request"
            raise exception.BadRequest(message=f"{place}: {error.message[:200]}") from error
        except GlareMuranoError as error:
            raise exception.BadRequest(message=str(error)) from error
        self.prereleases: bool = body.get("prereleases", True)
        self.project_id: str | None = body.get("project_id")


def _body(req: Any) -> Any:
    data = req.body_file.read(MAX_BODY + 1)
    if len(data) > MAX_BODY:
        raise exception.RequestEntityTooLarge(message=f"more than {MAX_BODY} bytes")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise exception.BadRequest(message="the request is no JSON") from error


def _answer(query: _Query, source: dependencies.GlareSource) -> dict[str, Any]:
    roots, missing = _roots(query, source)
    planned = closure.plan([*query.requirements, *roots], query.pins, source)
    details = source.details(planned.releases)
    requirements = source.requirements(planned.releases)
    return {
        "releases": [
            {
                "id": source.found[release].id,
                "name": release.fqn,
                "version": str(release.version),
                "owner": source.found[release].owner,
                "visibility": source.found[release].visibility,
                "requirements": {
                    fqn: spec.text for fqn, spec in sorted(requirements[release].items())
                },
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


def _demand(demand: closure.Demand) -> dict[str, Any]:
    requirer = demand.requirer
    return {
        "name": demand.fqn,
        "range": demand.spec.text,
        "requirer": None
        if requirer is None
        else {"name": requirer.fqn, "version": str(requirer.version)},
    }


def _roots(
    query: _Query, source: dependencies.GlareSource
) -> tuple[list[tuple[str, VersionSpec]], list[dict[str, Any]]]:
    """The packages of an object model's types, each in the range of its header.

    :returns: FQNs and ranges, and what no package defines.
    """
    if not query.objects:
        return [], []
    defining = source.defining({class_name for class_name, _ in query.objects})
    roots, missing = [], []
    for class_name, spec in query.objects:
        versions: dict[Version, str] = collections.defaultdict(str)
        for release in defining.get(class_name, ()):
            versions[release.version] = max(versions[release.version], release.fqn)
        for wanted in spec.with_fallbacks():
            newest = wanted.select(versions)
            if newest is not None:
                roots.append((versions[newest], wanted))
                break
        else:
            available = closure.newest_first(versions)
            missing.append(
                {
                    "class": class_name,
                    "range": spec.text,
                    "chain": [],
                    "available": [f"{versions[version]} {version}" for version in available],
                }
            )
    return roots, missing
