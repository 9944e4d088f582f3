# SPDX-License-Identifier: Apache-2.0

"""Read the bodies of requests up to a maximum size, and answer a malformed body with 400.

Murano reads bodies of any size into memory, and answers some malformed bodies with 500.
"""

import json
from collections.abc import Mapping
from typing import IO, Any

import webob
from murano.api.v1 import catalog
from murano.common import exceptions, wsgi
from oslo_config import cfg
from webob import exc

from glare_murano.fields import MAX_ELEMENTS
from glare_murano.package.errors import quoted
from loader.murano_api import body_limits, upload_forms

CONF = cfg.CONF

_MIB = 1024 * 1024
_UPLOAD = "multipart/form-data"
# The end of the content types of changes. Murano reads a body by its content type on every path.
_CHANGES = "-json-patch"
# Murano would also answer with application/octet-stream, which it cannot write.
_ANSWERS = ("application/json", "application/xml")


class _Deserializer(wsgi.RequestDeserializer):  # type: ignore[misc]
    """Murano's reader of bodies, with a limit on their size."""

    def deserialize_body(self, request: webob.Request, action: str) -> Any:
        body_limits.check_length(request)
        _check_size(request)
        try:
            if request.content_type.endswith(_CHANGES):
                _check_changes(json.loads(request.body or b"null"))
            if request.content_type == _UPLOAD and request.content_length:
                return {"body": upload_forms.read_form(request)}
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
    # The result of a static action may be any value, which XML cannot represent.
    types = {**made.deserializer.specific_content_types, "execute": ["application/json"]}
    made.deserializer = _Deserializer(
        supported_content_types=_ANSWERS, specific_content_types=types
    )
    return made


def archive_and_metadata(body: Any) -> tuple[IO[bytes], dict[str, Any]]:
    """Return the two parts of an upload: the archive and its metadata.

    :raises HTTPBadRequest: if there is not exactly one file, if the file is too large, if the rest
        is more than one JSON object, or if a list in this object is not valid.
    """
    parts = body or []
    files = [part.file for part in parts if isinstance(part, upload_forms.File)]
    others = [part for part in parts if not isinstance(part, upload_forms.File)]
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
    metadata = others[0] if others else {}
    _check_lists(metadata)
    return files[0], metadata


def _check_size(request: webob.Request) -> None:
    """Check the size of a body, before it is read.

    :raises HTTPBadRequest: if an upload is too large.
    :raises HTTPRequestEntityTooLarge: if another body is too large.
    """
    if request.content_type == _UPLOAD:
        # A form may have 1 MiB more than an archive, for the metadata and for its own headers.
        if (request.content_length or 0) > (CONF.murano.package_size_limit + 1) * _MIB:
            raise _too_large()
    elif request.content_type.endswith(_CHANGES):
        body_limits.check_size(request, body_limits.MAX_PATCH, "send fewer changes")
    else:
        body_limits.check_size(request, body_limits.MAX_BODY, "shorten the values in it")


def _check_changes(body: Any) -> None:
    """Check the number of changes, and the lists in them; Murano checks everything else.

    :raises HTTPBadRequest: if there are too many changes, or if a list is not valid.
    """
    body_limits.check_changes(body)
    for change in body if isinstance(body, list) else []:
        if isinstance(change, dict):
            _check_lists(change)


def _check_lists(values: Mapping[str, Any]) -> None:
    """Check the length of all lists in some values, and that they contain only strings.

    Murano looks for repeated elements. If they are not strings, it compares each with all others.

    :raises HTTPBadRequest: if a list is not valid.
    """
    for name, value in values.items():
        if not isinstance(value, list):
            continue
        if len(value) > MAX_ELEMENTS:
            raise exc.HTTPBadRequest(
                explanation=f"{quoted(name)} has more than {MAX_ELEMENTS} elements"
            )
        if not all(isinstance(each, str) for each in value):
            raise exc.HTTPBadRequest(
                explanation=f"{quoted(name)}: an element is not of type string"
            )


def _too_large() -> exc.HTTPBadRequest:
    limit = CONF.murano.package_size_limit
    return exc.HTTPBadRequest(
        explanation=f"The upload is too large: [murano] package_size_limit is {limit} MB"
    )
