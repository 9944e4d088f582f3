# SPDX-License-Identifier: Apache-2.0

"""The HTTP status of each error of the loader."""

import pytest
from keystoneauth1 import exceptions as ksa_exceptions
from webob import exc

from glare_murano.archive_reading import ServiceBusy
from glare_murano.package import InvalidPackage, InvalidRange, Problem
from glare_murano.package.rules import Rule
from loader import errors
from loader.murano_api.http_statuses import reported


def test_the_first_cause_with_a_status_counts() -> None:
    lines = errors.CatalogError("one\ntwo")
    lines.__cause__ = errors.CatalogError("one")
    lines.__cause__.__cause__ = ksa_exceptions.Conflict()
    with pytest.raises(exc.HTTPConflict), reported():
        raise lines


def test_a_busy_process_says_when_to_try_again() -> None:
    with pytest.raises(exc.HTTPServiceUnavailable, match="x") as answer, reported():
        raise ServiceBusy([Problem(Rule.SERVICE_BUSY, "archive", "x")])
    assert answer.value.headers["Retry-After"] == "10"


@pytest.mark.parametrize(
    ("error", "cause", "status"),
    [
        (InvalidPackage([Problem(Rule.ARCHIVE_FORMAT, "a", "x")]), None, exc.HTTPBadRequest),
        (
            InvalidPackage([Problem(Rule.READING_FAILURE, "a", "x")]),
            None,
            exc.HTTPInternalServerError,
        ),
        (errors.NotFound("x"), None, exc.HTTPNotFound),
        (InvalidRange("x"), None, exc.HTTPBadRequest),
        (errors.CatalogUnavailable("x"), None, exc.HTTPServiceUnavailable),
        (errors.CatalogError("x"), ksa_exceptions.Unauthorized(), exc.HTTPUnauthorized),
        (errors.CatalogError("x"), ksa_exceptions.Forbidden(), exc.HTTPForbidden),
        (errors.CatalogError("x"), ksa_exceptions.Conflict(), exc.HTTPConflict),
        (errors.CatalogError("x"), ksa_exceptions.HttpError(http_status=414), exc.HTTPBadRequest),
        (errors.CatalogError("x"), ksa_exceptions.BadGateway(), exc.HTTPServiceUnavailable),
    ],
)
def test_an_error_has_its_status(
    error: Exception, cause: Exception | None, status: type[Exception]
) -> None:
    with pytest.raises(status, match="x"), reported():
        raise error from cause
