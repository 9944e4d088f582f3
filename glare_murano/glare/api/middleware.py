# SPDX-License-Identifier: Apache-2.0

"""Serve the paths of this project in a WSGI filter in front of Glare's own API.

The filter stands in Glare's paste pipeline after authentication. It also handles patches that
change only the field ``yanked``, and passes on all other requests to Glare. See
``doc/openapi.yaml`` for the API.
"""

from typing import Any

import webob
from glare.common import policy
from oslo_middleware import base as base_middleware
from sqlalchemy import orm
from webob import dec

from glare_murano import preconditions, wire
from glare_murano.glare import (
    all_artifacts,
    metrics,
    policies,
    request_state,
    start_checks,
    upload_locks,
)
from glare_murano.glare.api import (
    archives,
    events,
    list_links,
    lookups,
    publications,
    responses,
    validation_filter,
    yanks,
)
from glare_murano.glare.db import artifact_reads
from glare_murano.service import request_reading
from glare_murano.service.refusals import warn
from glare_murano.service.routing import Routes, find_handler

ROUTES: Routes = {
    wire.ARCHIVES_PATH: {"POST": archives.download},
    wire.CATEGORIES_PATH: {"GET": lookups.list_categories},
    wire.DEPENDENCIES_PATH: {"POST": lookups.resolve},
    wire.PACKAGES_PATH: {"GET": lookups.list_packages},
    wire.PUBLICATIONS_PATH: {"POST": publications.publish},
    wire.SUBCLASSES_PATH: {"GET": lookups.list_subclasses},
    wire.YANKS_PATH: {"POST": yanks.yank},
}


class MuranoFilter(base_middleware.ConfigurableMiddleware):
    """The WSGI filter that serves ``ROUTES``.

    The filter also rolls back unfinished uploads, repairs the links in lists of Glare, and adds
    warnings to responses.
    """

    def __init__(self, application: Any, conf: Any = None) -> None:
        """Make the filter.

        :raises RuntimeError: if an option is not valid. Then the service does not start.
        """
        super().__init__(application, conf)
        start_checks.check()
        upload_locks.install()
        all_artifacts.install()
        artifact_reads.install()
        # Without this call, SQLAlchemy's models have no attributes before Glare's own first query.
        orm.configure_mappers()

    @dec.wsgify  # type: ignore[untyped-decorator]
    def __call__(self, req: webob.Request) -> webob.Response:
        """Handle a request, or pass it on to Glare.

        If Glare leaves an upload unfinished, roll back the upload.
        """
        if not hasattr(req, "context"):
            raise request_state.IncompletePipeline
        state = request_state.of(req.context)
        state.is_filtered = validation_filter.has_checked(req)
        if not state.is_filtered:
            return self._respond(req)
        response = responses.answer(req, lambda: self._respond(req))
        events.send_refusal(req, response)
        return response

    def _respond(self, req: webob.Request) -> webob.Response:
        state = request_state.of(req.context)
        try:
            response: webob.Response = super().__call__(req)
            list_links.repair_links(req, response)
            warn(response, state.warning)
            return response
        finally:
            if state.upload:
                state.upload.roll_back(req.context)

    @staticmethod
    def process_request(req: webob.Request) -> webob.Response | None:
        """Handle a request to a path of ``ROUTES``, or a patch that changes only ``yanked``.

        :returns: the response; None for any other request, which is then passed on to Glare.
        """
        request_state.of(req.context).is_upload = req.method == "PUT"
        request_state.of(req.context).unchanged = req.headers.get(preconditions.HEADER, "")
        if request_reading.overrides_checks(req):
            policies.authorize_override(req.context)
            request_state.of(req.context).overrides_checks = True
        if yanks.is_yank(req):
            return yanks.save(req)
        handler = find_handler(ROUTES, req)
        if handler is None:
            return None
        request_state.check_filtered(req.context)
        policy.authorize(policies.LIST, {}, req.context)
        with metrics.QUERIES.labels(req.path_info).time():
            return handler(req)
