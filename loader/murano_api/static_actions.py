# SPDX-License-Identifier: Apache-2.0

"""Answer requests for static actions as Murano does, but refuse malformed bodies with 400."""

from typing import Any

import webob
from murano.api.v1 import static_actions
from webob import exc


class StaticActionController(static_actions.Controller):  # type: ignore[misc]
    """Answers ``POST /v1/actions``; the engine checks the values in the body."""

    def execute(self, request: webob.Request, body: Any = None) -> Any:
        """Run a static method, and return its result."""
        if not isinstance(body, dict):
            raise exc.HTTPBadRequest(explanation="Send a JSON object with className and methodName")
        return super().execute(request, body)
