# SPDX-License-Identifier: Apache-2.0

"""The WSGI filter ``murano-packages`` for murano-api's pipeline.

In the pipeline, the filter follows ``authtoken`` and ``context``. It answers all requests for
``/v1/catalog`` and below, all requests for static actions, and some requests for schemas (see
``object_schemas``). It passes all other requests on to Murano, unless it refuses their bodies (see
``passed_requests``).
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import routes
import webob
from murano.common import wsgi
from oslo_config import cfg
from webob import exc

from loader.murano_api import object_schemas, passed_requests, request_bodies, uploaded_package
from loader.murano_api.packages import CatalogController
from loader.murano_api.request_repository import RequestRepositories
from loader.murano_api.static_actions import StaticActionController

_PACKAGE = "/v1/catalog/packages/{package_id}"
_CATEGORY = "/v1/catalog/categories/{category_id}"
_ROUTES = (
    ("GET", "/v1/catalog/packages", "search"),
    ("POST", "/v1/catalog/packages", "upload"),
    ("GET", _PACKAGE, "get"),
    ("PATCH", _PACKAGE, "update"),
    ("DELETE", _PACKAGE, "delete"),
    ("GET", f"{_PACKAGE}/ui", "get_ui"),
    ("GET", f"{_PACKAGE}/logo", "get_logo"),
    ("GET", f"{_PACKAGE}/supplier_logo", "get_supplier_logo"),
    ("GET", f"{_PACKAGE}/download", "download"),
    ("GET", "/v1/catalog/categories", "list_categories"),
    ("POST", "/v1/catalog/categories", "add_category"),
    ("GET", _CATEGORY, "get_category"),
    ("DELETE", _CATEGORY, "delete_category"),
)

# Murano's router would read another method from ``_method`` in the query or in a form, and so it
# could find what this filter does not. As in its routes, "$" also matches before a last line break.
_ANSWERED = re.compile(r"/v1/(actions$|catalog(/|$))")

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class CatalogFilter:
    """A WSGI application that answers some requests, and passes all others on to Murano."""

    def __init__(self, application: Application, controller: CatalogController) -> None:
        """Make a filter.

        :param application: the rest of Murano's pipeline.
        :param controller: the object that answers the requests below ``/v1/catalog``.
        """
        self._application = application
        self._mapper = routes.Mapper()
        self._connect(controller, _ROUTES)
        self._connect(StaticActionController(), [("POST", "/v1/actions", "execute")])
        schemas = wsgi.Resource(object_schemas.SchemaController())
        for path in ("/v1/schemas/{class_name}", "/v1/schemas/{class_name}/{method_names}"):
            self._mapper.connect(
                path,
                controller=schemas,
                action="get_schema",
                conditions={"method": ["GET"], "function": object_schemas.is_answered},
            )

    def _connect(self, controller: object, paths: Iterable[tuple[str, str, str]]) -> None:
        resource = request_bodies.resource(controller)
        for method, path, action in paths:
            conditions = {"method": [method]}
            self._mapper.connect(path, controller=resource, action=action, conditions=conditions)

    def __call__(  # noqa: D102
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        # Murano's router treats several slashes as one.
        path = re.sub("/+", "/", _path(environ)).rstrip("/")
        found = self._mapper.match(path, environ)
        if not found:
            if _ANSWERED.match(path):
                return exc.HTTPNotFound()(environ, start_response)  # type: ignore[no-any-return]
            return self._pass_on(environ, start_response)
        environ["wsgiorg.routing_args"] = ((), found)
        resource: wsgi.Resource = found["controller"]
        answer: Iterable[bytes] = resource(environ, start_response)
        return answer

    def _pass_on(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        application = self._application
        try:
            passed_requests.check(webob.Request(environ))
        except exc.HTTPClientError as error:
            application = error
        return application(environ, start_response)


def _path(environ: Mapping[str, Any]) -> str:
    """Return the path of a request from the version of the API on.

    The filter stands before or behind the application that removes the version from ``PATH_INFO``.
    A server may have removed a prefix, such as ``/application-catalog``.
    """
    version = "/v1" if environ.get("SCRIPT_NAME", "").endswith("/v1") else ""
    return f"{version}{environ['PATH_INFO']}"


def filter_factory(
    global_conf: dict[str, str], **local_conf: str
) -> Callable[[Application], CatalogFilter]:
    """Return a function that makes the filter for an application; Paste calls this entry point.

    :raises LoaderError: if an option of the loader is invalid, or if archives cannot be read.
    """
    settings = uploaded_package.configure(cfg.CONF)
    controller = CatalogController(RequestRepositories(cfg.CONF), settings)
    return lambda application: CatalogFilter(application, controller)
