# SPDX-License-Identifier: Apache-2.0

"""Answer requests for JSON schemas that list subclasses.

A property that holds an object accepts objects of all subclasses. With the parameter
``subclasses`` of ``GET /v1/schemas/...``, the schema lists them. Murano's own API does not have
this parameter; Murano itself answers requests without it.
"""

from collections.abc import Mapping
from typing import Any

import webob
from murano.common import policy, rpc
from oslo_messaging.rpc import client
from oslo_utils import strutils
from webob import exc

_PARAMETER = "subclasses"
_MISSING = ("NoClassFound", "NoPackageForClassFound", "NoPackageFound")


def has_parameter(environ: Mapping[str, Any], _: object) -> bool:
    """Return whether a request has the parameter, for ``routes``."""
    return _PARAMETER in webob.Request(environ).GET


class SchemaController:
    """The calls below ``/v1/schemas`` that have the parameter ``subclasses``."""

    def get_schema(
        self, req: webob.Request, class_name: str, method_names: str = ""
    ) -> dict[str, Any]:
        """Return the schemas of a class or of methods, from an engine."""
        policy.check("get_schema", req.context, {"class_name": class_name})
        # A wrong value raises ValueError, which is answered with 400.
        is_requested = strutils.bool_from_string(req.GET[_PARAMETER], strict=True)
        credentials = {"token": req.context.auth_token, "project_id": req.context.project_id}
        arguments = {
            "class_name": class_name,
            "method_names": list(map(str.strip, method_names.split(","))) if method_names else [],
            "class_version": req.GET.get("classVersion"),
            "package_name": req.GET.get("packageName"),
            # The argument is sent only if needed: an engine without glare-murano does not know it.
            **({_PARAMETER: True} if is_requested else {}),
        }
        try:
            found: dict[str, Any] = rpc.engine()._client.call(
                credentials, "generate_schema", **arguments
            )
        except client.RemoteError as error:
            if error.exc_type in _MISSING:
                raise exc.HTTPNotFound(explanation=error.value) from error
            raise
        return found
