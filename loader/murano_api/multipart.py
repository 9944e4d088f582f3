# SPDX-License-Identifier: Apache-2.0

"""Parse a request of the type ``multipart/form-data``, within limits.

The time grows only with the size of the body. With webob's parser, it grows with the square of the
number of parts, and with the square of the size of their headers.
"""

import email.message
import email.parser
import json
import mmap
import re
import shutil
import tempfile
from typing import IO, Any, NamedTuple

import webob
from webob import exc

# The largest number of parts of a form. Clients send two: an archive and its metadata.
MAX_PARTS = 10
# The largest size of the headers of a part, in bytes.
MAX_HEADERS = 4096

_CARRIAGE_RETURN = 13
_BOUNDARY = re.compile(r"[ -~]{0,199}[!-~]")
_END_OF_HEADERS = re.compile(rb"\n[ \t]*\r?\n")


class File(NamedTuple):
    """A part of a form that is a file."""

    file: IO[bytes]


def read_form(request: webob.Request) -> list[Any]:
    """Return the parts of the form in the body of a request.

    A part is a ``File``, a value from JSON, or bytes that are not JSON.

    :raises HTTPBadRequest: if the form exceeds a limit.
    :raises ValueError: if the header of the request has no valid boundary.
    """
    delimiter = _delimiter(request.headers["Content-Type"])
    # The whole body is read into a file, and not into memory.
    with tempfile.TemporaryFile() as body:
        # Each delimiter follows a line break, except for one at the beginning of a body.
        body.write(b"\n")
        shutil.copyfileobj(request.body_file, body)
        body.flush()
        with mmap.mmap(body.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _parts(data, delimiter)


def _delimiter(content_type: str) -> re.Pattern[bytes]:
    """Return a pattern for the line before each part, and for the line at the end of the form.

    Only in the line at the end, the group 1 is not None.
    """
    boundary = _headers(f"Content-Type: {content_type}".encode()).get_boundary("")
    if not _BOUNDARY.fullmatch(boundary):
        raise ValueError("the Content-Type has no valid boundary; send one")
    escaped = re.escape(boundary.encode())
    return re.compile(rb"\n--" + escaped + rb"(--)?[ \t]*(?:\r?\n|\Z)")


def _parts(data: mmap.mmap, delimiter: re.Pattern[bytes]) -> list[Any]:
    found: list[Any] = []
    line = delimiter.search(data)
    while line and not line[1] and line.end() < len(data):
        if len(found) == MAX_PARTS:
            raise exc.HTTPBadRequest(
                explanation=f"The form has more than {MAX_PARTS} parts; an upload needs two, the "
                f"archive of a package and its metadata"
            )
        # The search begins at the line break of the delimiter, since a part may have no headers.
        end = _END_OF_HEADERS.search(data, line.end() - 1, line.end() + MAX_HEADERS)
        if not end:
            raise exc.HTTPBadRequest(
                explanation=f"The headers of a part of the form do not end within {MAX_HEADERS} "
                f"bytes; send the whole form, with shorter headers"
            )
        headers, start = _headers(data[line.end() : end.end()]), end.end()
        # This search begins at the line break of the empty line, since a part may have no content.
        line = delimiter.search(data, start - 1)
        found.append(_part(data, headers, start, _end_of_content(data, line)))
    return found


def _end_of_content(data: mmap.mmap, line: re.Match[bytes] | None) -> int:
    """Return the end of the content before a delimiter, or before the end of the body."""
    if not line:
        return len(data)
    return line.start() - 1 if data[line.start() - 1] == _CARRIAGE_RETURN else line.start()


def _part(data: mmap.mmap, headers: email.message.Message, start: int, stop: int) -> Any:
    if not headers.get_filename():
        content = data[start:stop]
        try:
            return json.loads(content)
        except ValueError:
            return content
    file = tempfile.TemporaryFile()  # noqa: SIM115 - returned
    with memoryview(data) as view, view[start:stop] as archive:
        file.write(archive)
    file.seek(0)
    return File(file)


def _headers(data: bytes) -> email.message.Message:
    return email.parser.BytesParser().parsebytes(data, headersonly=True)
