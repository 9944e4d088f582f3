# SPDX-License-Identifier: Apache-2.0

"""Build the content that notifications of both services share: who requested which change.

A notification contains the id of its request. The audit record of Keystone's filter contains the
same id.
"""

from http import HTTPStatus
from typing import Any, Protocol

import webob

from glare_murano import wire
from glare_murano.service import request_reading, schemas
from glare_murano.service.refusals import RefusedRequest

# The last parts of the types of notifications, in both services.
YANK, UNYANK, REFUSE = "yank", "unyank", "refuse"

# Paths that change packages -> the schema of their requests.
_CHANGES = {
    wire.PUBLICATIONS_PATH: schemas.PUBLICATION,
    wire.YANKS_PATH: schemas.YANK,
}


class Context(Protocol):
    """The context of a request in either service; see ``oslo_context``."""

    user_id: str | None
    project_id: str | None
    request_id: str | None


def initiator(context: Context) -> dict[str, str | None]:
    """Return the user and the project that sent a request, and the id of the request."""
    return {
        "user_id": context.user_id,
        "project_id": context.project_id,
        "request_id": context.request_id,
    }


def yank_verb(reason: str) -> str:
    """Return the verb of a notification: ``unyank`` if the reason is empty, otherwise ``yank``."""
    return YANK if reason else UNYANK


def changed_packages(req: webob.Request) -> list[str] | None:
    """Return the ids of the packages that a request to publish or to yank would change.

    :returns: the ids; an empty list if the body is malformed; None for any other kind of request.
    """
    if req.method != "POST" or req.path_info not in _CHANGES:
        return None
    try:
        body = request_reading.read_body(req, _CHANGES[req.path_info])
    except RefusedRequest:
        return []
    return list(body["ids"]) if "ids" in body else [body["id"]]


def is_refusal(response: webob.Response) -> bool:
    """Return whether a response refuses its request: its status is from 400 to 499."""
    status = int(response.status_code)
    return HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR


def refusal(req: webob.Request, status: int, reason: str, packages: list[str]) -> dict[str, Any]:
    """Return the content of a notification about a refused request.

    :param status: the HTTP status of the response.
    :param reason: why the request was refused.
    :param packages: the ids of the packages that the request was to change.
    """
    return {
        "initiator": initiator(req.context),
        "method": req.method,
        "path": req.path,
        "status": status,
        "reason": reason,
        "packages": packages,
    }
