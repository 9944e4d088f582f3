# SPDX-License-Identifier: Apache-2.0

"""Serve requests of murano-api in cells."""

from collections.abc import Mapping
from typing import Any

from murano.common import engine
from murano.engine import execution_session

from loader.engine.cells import requests


def serve_requests_in_cells() -> None:
    """Serve static actions and requests for schemas in cells, if ``[engine] request_cells`` is set.

    In Murano 16, the code of a package runs in the process of the engine, which has the passwords
    of the engine and the tokens of all running tasks. Here, it runs in a child process that has the
    token of its own user only; see ``loader.engine.cells``. Contracts are code as well, so requests
    for schemas need this, too.
    """
    generate_schema = engine.SchemaEndpoint.generate_schema
    call_static_action = engine.StaticActionEndpoint.call_static_action

    def generate(context: Mapping[str, Any], *args: Any, **arguments: Any) -> Any:
        if not requests.are_enabled():
            return generate_schema(context, *args, **arguments)
        if args:
            raise TypeError("murano-api passes the arguments by name")
        # No schema needs the token: only the engine's process sends requests.
        known = {"token": None, "project_id": context["project_id"]}
        request = {"endpoint": "schema", "context": known, "arguments": arguments}
        return requests.run("request for a schema", _session(context), request)

    def call(context: Any, task: Mapping[str, Any]) -> Any:
        if not requests.are_enabled():
            return call_static_action(context, task)
        request = {"endpoint": "static action", "context": {}, "arguments": {"task": task}}
        return requests.run("static action", _session(task), request)

    engine.SchemaEndpoint.generate_schema = staticmethod(generate)
    engine.StaticActionEndpoint.call_static_action = staticmethod(call)


def _session(known: Mapping[str, Any]) -> execution_session.ExecutionSession:
    session = execution_session.ExecutionSession()
    session.token = known["token"]
    session.project_id = known["project_id"]
    session.user_id = known.get("user_id")
    return session
