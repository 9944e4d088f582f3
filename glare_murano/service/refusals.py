# SPDX-License-Identifier: Apache-2.0

"""The refusal of a request, which each service answers in its own form of errors."""

from http import HTTPStatus

from glare_murano.package.errors import GlareMuranoError


class RefusedRequest(GlareMuranoError):
    """A request that is refused.

    :ivar status: the HTTP status of the answer.
    """

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


def bad_request(message: str) -> RefusedRequest:
    """Return the refusal of a request that is wrong in itself."""
    return RefusedRequest(HTTPStatus.BAD_REQUEST, message)
