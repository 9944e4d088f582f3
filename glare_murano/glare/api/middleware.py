# SPDX-License-Identifier: Apache-2.0

"""The WSGI filter that answers what Glare's own API does not.

It stands in Glare's paste pipeline behind whatever authenticates, answers
paths of its own, and hands every other request to Glare, with leave to override
the checks where the caller has it; what Glare leaves of an upload that it could
not end is undone. The document "Dependency queries" tells the form of requests
and answers.
"""

import itertools
import json
from collections.abc import Callable
from typing import Any

import webob
from glare.common import exception, policy
from glare.db.sqlalchemy import api as database
from oslo_middleware import base as base_middleware
from webob import dec

from glare_murano import resolver, wire
from glare_murano.glare import metrics, policies, request_state
from glare_murano.glare.api import archives, dependencies, validation
from glare_murano.glare.db.queries import snapshot
from glare_murano.glare.db.source import GlareSource
from glare_murano.glare.db.subclasses import heirs

OVERRIDE_HEADER = "X-Murano-Override-Checks"


class MuranoFilter(base_middleware.ConfigurableMiddleware):
    """Answers dependency queries, and gives heirs and batches."""

    @dec.wsgify  # type: ignore[untyped-decorator]
    def __call__(self, req: Any) -> Any:
        """Answer a request, or let Glare answer it."""
        try:
            return super().__call__(req)
        finally:
            request_state.of(req.context).roll_back(req.context)

    @staticmethod
    def process_request(req: Any) -> webob.Response | None:
        """Answer a query; leave any other request to Glare."""
        if req.headers.get(OVERRIDE_HEADER, "").lower() == "true":
            policies.authorize(policies.OVERRIDE_CHECKS, req.context)
            request_state.of(req.context).overrides_checks = True
        if req.path_info not in _QUERIES:
            return None
        method, answer = _QUERIES[req.path_info]
        if req.method != method:
            return webob.Response(status=405, headers={"Allow": method})
        policy.authorize("artifact:list", {}, req.context)
        with metrics.QUERIES.labels(req.path_info).time():
            return answer(req)


def _sees_all(context: Any) -> bool:
    """Whether a list call of the caller shows the artifacts of all projects."""
    rule = "artifact:list_all_artifacts"
    return bool(context.is_admin or policy.authorize(rule, {}, context, do_raise=False))


def _json(data: bytes) -> webob.Response:
    return webob.Response(data, content_type="application/json", charset="UTF-8")


def _dependencies(req: Any) -> webob.Response:
    query = dependencies.query(validation.json_body(req))
    see_all = _sees_all(req.context)
    session = database.get_session()
    with snapshot(session) as connection:
        source = GlareSource(
            connection,
            req.context,
            see_all=see_all,
            project_id=query.project_id,
            prereleases=query.prereleases,
            given=query.package,
        )
        try:
            answer = dependencies.answer(query, source)
        except resolver.Unplannable as error:
            raise exception.BadRequest(message=str(error)) from error
    return _json(json.dumps(wire.answer_to_json(answer)).encode())


def _heirs(req: Any) -> webob.Response:
    class_name = req.GET.get("class")
    if not class_name or len(req.GET) > 1:
        raise exception.BadRequest(message="the query takes one parameter: class=NAME")
    validation.check_characters(class_name, is_name=True)
    see_all = _sees_all(req.context)
    session = database.get_session()
    with snapshot(session) as connection:
        found = heirs(connection, req.context, see_all, class_name)
    told = [
        {
            "class": name,
            "extends": sorted(heir.extends),
            "packages": {
                fqn: [str(version) for version in resolver.newest_first(versions)]
                for fqn, versions in sorted(heir.packages.items())
            },
        }
        for name, heir in sorted(found.items())
    ]
    return _json(json.dumps({"class": class_name, "heirs": told}).encode())


def _archives(req: Any) -> webob.Response:
    pieces = archives.stream(req.context, archives.requested(validation.json_body(req)))
    # What goes wrong before there is anything to send is told as any other error.
    first = next(pieces)
    return webob.Response(
        content_type="application/x-tar", app_iter=itertools.chain([first], pieces)
    )


_QUERIES: dict[str, tuple[str, Callable[[Any], webob.Response]]] = {
    "/murano/archives": ("POST", _archives),
    "/murano/dependencies": ("POST", _dependencies),
    "/murano/heirs": ("GET", _heirs),
}
