# SPDX-License-Identifier: Apache-2.0

"""Read the bodies of requests up to a maximum size, and answer a malformed body with 400.

Murano reads bodies of any size into memory, and answers some malformed bodies with 500.
"""

import json
from typing import IO, Any

import webob
from murano.api.v1 import catalog
from murano.common import exceptions, wsgi
from oslo_config import cfg
from webob import exc

CONF = cfg.CONF

_MIB = 1024 * 1024
_UPLOAD = "multipart/form-data"


class _Deserializer(wsgi.RequestDeserializer):  # type: ignore[misc]
    """Murano's reader of bodies, with a limit on their size."""

    def deserialize_body(self, request: webob.Request, action: str) -> Any:
        # A body may have 1 MiB more than an archive, for the metadata and the multipart form.
        # murano-api does not read a body without a length.
        if (request.content_length or 0) > (CONF.murano.package_size_limit + 1) * _MIB:
            raise _too_large()
        try:
            if request.content_type == _UPLOAD:
                # Each part of a form is read into a file, and not the whole body into memory.
                return self.get_body_deserializer(_UPLOAD).deserialize(request, action)
            body = super().deserialize_body(request, action)
            # Half of a surrogate pair cannot be encoded: Glance would answer it with 500.
            json.dumps(body, ensure_ascii=False, default=str).encode()
            return body
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise exceptions.MalformedRequestBody(reason=str(error)) from error


def resource(controller: object) -> wsgi.Resource:
    """Return a WSGI application that calls a controller; it accepts Murano's content types."""
    made = catalog.create_resource()
    made.controller = controller
    types = made.deserializer.specific_content_types
    made.deserializer = _Deserializer(specific_content_types=types)
    return made


def archive_and_metadata(body: Any) -> tuple[IO[bytes], dict[str, Any]]:
    """Return the two parts of an upload: the archive and its metadata.

    :raises HTTPBadRequest: if there is not exactly one file, if the file is too large, or if the
        rest is more than one JSON object.
    """
    parts = list(body.values()) if body else []
    files = [part.file for part in parts if hasattr(part, "file")]
    others = [part for part in parts if not hasattr(part, "file")]
    if len(files) != 1:
        raise exc.HTTPBadRequest(
            explanation=f"An upload needs one file, the archive of a package; it has {len(files)}"
        )
    if len(others) > 1 or not all(isinstance(part, dict) for part in others):
        raise exc.HTTPBadRequest(
            explanation="An upload has one part beside the file: its metadata, a JSON object"
        )
    size = files[0].seek(0, 2)
    files[0].seek(0)
    if size > CONF.murano.package_size_limit * _MIB:
        raise _too_large()
    return files[0], others[0] if others else {}


def _too_large() -> exc.HTTPBadRequest:
    limit = CONF.murano.package_size_limit
    return exc.HTTPBadRequest(
        explanation=f"The upload is too large: [murano] package_size_limit is {limit} MB"
    )
