# SPDX-License-Identifier: Apache-2.0

"""Read the form of an upload, a request of the type ``multipart/form-data``, within limits.

The library ``multipart`` parses it in a time that grows only with its size. With webob's parser,
the time grows with the square of the number of parts, and with the square of the size of their
headers.
"""

import json
from typing import IO, Any, NamedTuple

import multipart
import webob
from webob import exc

# The most parts of a form. Clients send two: an archive and its metadata.
MAX_PARTS = 10
# The most headers of a part, and the largest size of one of them, in bytes.
MAX_HEADERS = 8
MAX_HEADER = 4096
# The largest size of all parts that are not files, in bytes.
MAX_METADATA = 1024 * 1024


class File(NamedTuple):
    """A part of a form that is a file."""

    file: IO[bytes]


def read_form(request: webob.Request) -> list[Any]:
    """Return the parts of the form in the body of a request.

    A part is a ``File``, a value from JSON, or bytes that are not JSON.

    :raises HTTPBadRequest: if the form exceeds a limit.
    :raises ValueError: if the form is malformed, or the header of the request has no boundary.
    """
    _, options = multipart.parse_options_header(request.headers["Content-Type"])
    parser = multipart.MultipartParser(
        request.body_file,
        options.get("boundary", ""),
        strict=True,
        part_limit=MAX_PARTS,
        header_limit=MAX_HEADERS,
        headersize_limit=MAX_HEADER,
    )
    try:
        parts = list(parser)
    except multipart.ParserLimitReached as error:
        raise exc.HTTPBadRequest(
            explanation=f"{error}: a form has at most {MAX_PARTS} parts, and a part has at most "
            f"{MAX_HEADERS} headers of {MAX_HEADER} bytes; an upload needs two parts, the archive "
            f"of a package and its metadata"
        ) from error
    # Parsed JSON takes up to 30 times the memory, and the policy is checked later.
    size = sum(part.size for part in parts if not part.filename)
    if size > MAX_METADATA:
        raise exc.HTTPBadRequest(
            explanation=f"The form has {size} bytes besides files; the metadata of a package have "
            f"at most {MAX_METADATA} bytes"
        )
    return [_value(part) for part in parts]


def _value(part: multipart.MultipartPart) -> Any:
    if part.filename:
        return File(part.file)
    try:
        return json.loads(part.raw)
    except ValueError:
        return part.raw
