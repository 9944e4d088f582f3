# SPDX-License-Identifier: Apache-2.0

"""Define refusals of requests, the responses for them, and warnings in responses."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

import webob
from webob import exc

from glare_murano.package.errors import GlareMuranoError

_Problem = TypeVar("_Problem", bound=Exception)


class RefusedRequest(GlareMuranoError):
    """A request is refused.

    :ivar status: the HTTP status of the response.
    :ivar headers: the headers that are added to the response.
    """

    def __init__(
        self, status: HTTPStatus, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


def bad_request(message: str) -> RefusedRequest:
    """Return the refusal of a request that is not valid."""
    return RefusedRequest(HTTPStatus.BAD_REQUEST, message)


def forbidden(message: str) -> RefusedRequest:
    """Return the refusal of a request that the caller may not send."""
    return RefusedRequest(HTTPStatus.FORBIDDEN, message)


def not_found(message: str) -> RefusedRequest:
    """Return the refusal of a request for a package that is missing or not visible."""
    return RefusedRequest(HTTPStatus.NOT_FOUND, message)


def conflict(message: str) -> RefusedRequest:
    """Return the refusal of a request that the state of a package does not allow."""
    return RefusedRequest(HTTPStatus.CONFLICT, message)


@contextlib.contextmanager
def collected(problems: list[_Problem], kind: type[_Problem]) -> Iterator[None]:
    """Catch an error that is raised in the ``with`` statement, and add it to a list.

    :param problems: the list to which the error is added.
    :param kind: the class of the errors to catch. Other errors are not caught.
    """
    try:
        yield
    except kind as problem:
        problems.append(problem)


def document(status: int, message: str) -> dict[str, Any]:
    """Return the JSON object of a refusal, in the form of Glare's errors.

    :param status: the HTTP status of the response.
    :param message: why the request is refused.
    """
    known = exc.status_map[status]
    return {
        "code": status,
        "title": known.title,
        "explanation": known.explanation,
        "error": {"message": message, "type": known.title.replace(" ", "")},
    }


def document_of(req: webob.Request, response: webob.Response) -> dict[str, Any]:
    """Return the JSON object of a refusal, from a response that is not JSON.

    Such a response can come from another WSGI filter.
    """
    if allowed := response.headers.get("Allow"):
        return document(response.status_code, wrong_method(req, allowed))
    known = exc.status_map[response.status_code]
    reason = known.explanation or known.title
    return document(response.status_code, f"{req.method} {req.path}: {reason}")


def wrong_method(req: webob.Request, allowed: str) -> str:
    """Return the message for a request with a method that its path does not have.

    :param allowed: the methods of the path, separated by commas.
    """
    return f"{req.method} {req.path}: the method is not allowed; use {allowed}"


def warn(response: webob.Response, warning: str) -> None:
    """Add a header ``Warning`` to a response, unless the warning is empty.

    The header contains the warning as a JSON string, which is in ASCII.
    """
    if warning:
        response.headers["Warning"] = f"299 - {json.dumps(warning)}"
