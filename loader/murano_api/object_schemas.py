# SPDX-License-Identifier: Apache-2.0

"""Answer requests for JSON schemas that Murano's own API does not answer.

There are two kinds of such requests:
* ``GET /v1/schemas/...`` with the parameter ``subclasses``, which Murano's own API lacks. If a
  property accepts objects of a class, the schema then lists the subclasses of this class, whose
  objects the property accepts as well.
* ``GET /v1/schemas/CLASS/`` with an empty list of methods, which requests the schema of the class
  alone. Murano's own API answers this with 404.
Murano's own API answers all other requests.
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


def is_answered(environ: Mapping[str, Any], _: object) -> bool:
    """Return whether ``SchemaController`` answers a request; ``routes`` calls this function."""
    request = webob.Request(environ)
    return _PARAMETER in request.GET or request.path_info.endswith("/")


class SchemaController:
    """Answers those requests below ``/v1/schemas`` that Murano's own API does not answer."""

    def get_schema(
        self, req: webob.Request, class_name: str, method_names: str = ""
    ) -> dict[str, Any]:
        """Return the schemas of a class, or of some of its methods; an engine makes them.

        :param method_names: the names of the methods, separated by commas. An empty list in the
            path stands for the class alone; a missing list stands for the class and its model
            builders.
        :raises HTTPNotFound: if the class or its package is missing.
        """
        policy.check("get_schema", req.context, {"class_name": class_name})
        # A wrong value raises ValueError, which is answered with 400.
        is_requested = strutils.bool_from_string(req.GET.get(_PARAMETER, "false"), strict=True)
        # An empty list of methods stands for the class alone; a missing list stands for the class
        # and its model builders.
        is_listed = bool(method_names) or req.path_info.endswith("/")
        credentials = {"token": req.context.auth_token, "project_id": req.context.project_id}
        arguments = {
            "class_name": class_name,
            "method_names": list(map(str.strip, method_names.split(","))) if is_listed else [],
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
