# SPDX-License-Identifier: Apache-2.0

"""Answer refused requests in the form of Glare's errors, and log each refusal.

Both filters of this project convert refusals to responses. The filter ``murano`` converts its own
refusals and those of Glare's application. So a filter in front of ``murano``, such as an audit,
sees a response instead of an exception. The filter ``murano-validation`` converts all other
refusals.
"""

from collections.abc import Callable, Mapping
from typing import Any

import webob
from glare.api.middleware import fault
from glare.common import exception
from webob import exc

from glare_murano.glare.api import refusal_log
from glare_murano.service.refusals import RefusedRequest, document, document_of
from glare_murano.service.request_reading import JSON

# Glare's message if another artifact has the same name and version, and the messages that replace
# it.
_TAKEN = "Artifact with this name and version is already exists for this scope."
_TAKEN_BY = {
    "POST": "the project has a private package of this name and version already; find it by "
    "the filters name and version, and continue with it, or delete it",
    "PATCH": "another package of this name and version is public already; publish another version",
}

# Glare's filter for errors, which is used only to build the content of a response.
_form = fault.GlareFaultWrapperFilter(None)


def answer(req: webob.Request, respond: Callable[[], webob.Response]) -> webob.Response:
    """Return the response to a request. A refusal becomes a response in the form of Glare's errors.

    :param respond: the function that handles the request.
    :raises Exception: if the server fails. Glare's filter ``faultwrapper`` answers this error.
    """
    try:
        response = respond()
    except RefusedRequest as refusal:
        return _answer_refusal(req, refusal)
    except exception.GlareException as refusal:
        error = _form._error(refusal)
        if error["error"]["message"] == _TAKEN:
            error["error"]["message"] = _TAKEN_BY[req.method]
        if error["code"] >= exc.HTTPInternalServerError.code:
            raise
        return _refuse(req, error, {}, refusal)
    if response.status_code < exc.HTTPBadRequest.code or response.content_type == JSON:
        return response
    return _refuse(req, document_of(req, response), response.headers)


def refused(req: webob.Request, check: Callable[[], object]) -> webob.Response | None:
    """Return the response to a request that a check refuses; None if the check passes.

    :param check: a function that raises ``RefusedRequest`` to refuse the request.
    """
    try:
        check()
    except RefusedRequest as refusal:
        return _answer_refusal(req, refusal)
    return None


def _answer_refusal(req: webob.Request, refusal: RefusedRequest) -> webob.Response:
    error = document(refusal.status, str(refusal))
    return _refuse(req, error, refusal.headers, refusal)


def _refuse(
    req: webob.Request,
    error: dict[str, Any],
    headers: Mapping[str, str],
    cause: BaseException | None = None,
) -> webob.Response:
    refusal_log.write(req, error["code"], error["error"]["message"], cause)
    response = req.get_response(fault.Fault(error))
    for name, value in headers.items():
        if not name.lower().startswith("content-"):
            response.headers[name] = value
    return response
