# SPDX-License-Identifier: Apache-2.0

"""The WSGI filter with the paths beside Glare's own API.

The filter stands in Glare's paste pipeline behind authentication, and passes on
all other requests. See ``doc/openapi.yaml`` for the API.
"""

from collections.abc import Callable

import webob
from glare.common import policy
from oslo_middleware import base as base_middleware
from webob import dec

from glare_murano import wire
from glare_murano.glare import metrics, policies, request_state
from glare_murano.glare.api import archives, dependencies, subclasses

OVERRIDE_HEADER = "X-Murano-Override-Checks"

# Path -> method and handler.
ROUTES: dict[str, tuple[str, Callable[[webob.Request], webob.Response]]] = {
    wire.ARCHIVES_PATH: ("POST", archives.download),
    wire.DEPENDENCIES_PATH: ("POST", dependencies.resolve),
    wire.SUBCLASSES_PATH: ("GET", subclasses.show),
}


class MuranoFilter(base_middleware.ConfigurableMiddleware):
    """Serves ``ROUTES``, and completes the handling of requests to the artifact type."""

    @dec.wsgify  # type: ignore[untyped-decorator]
    def __call__(self, req: webob.Request) -> webob.Response:
        """Handle a request, and roll back an upload if Glare has left it unfinished."""
        try:
            return super().__call__(req)
        finally:
            if upload := request_state.of(req.context).upload:
                upload.roll_back(req.context)

    @staticmethod
    def process_request(req: webob.Request) -> webob.Response | None:
        """Handle a request to a path of ours; return None for any other."""
        if req.headers.get(OVERRIDE_HEADER, "").lower() == "true":
            policies.authorize_override(req.context)
            request_state.of(req.context).overrides_checks = True
        if req.path_info not in ROUTES:
            return None
        method, handler = ROUTES[req.path_info]
        if req.method != method:
            return webob.Response(status=405, headers={"Allow": method})
        policy.authorize("artifact:list", {}, req.context)
        with metrics.QUERIES.labels(req.path_info).time():
            return handler(req)
