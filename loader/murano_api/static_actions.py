# SPDX-License-Identifier: Apache-2.0

"""Murano's controller for static actions; if a body is not a JSON object, it answers with 400."""

from typing import Any

import webob
from murano.api.v1 import static_actions
from webob import exc


class StaticActionController(static_actions.Controller):  # type: ignore[misc]
    """The call ``/v1/actions``; the engine checks the values of the body."""

    def execute(self, request: webob.Request, body: Any = None) -> Any:
        """Run a static method, and return its result."""
        if not isinstance(body, dict):
            raise exc.HTTPBadRequest(explanation="Send a JSON object with className and methodName")
        return super().execute(request, body)
