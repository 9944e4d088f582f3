# SPDX-License-Identifier: Apache-2.0

"""Choose the HTTP status that Murano's clients expect for each error."""

import contextlib
import logging
from collections.abc import Iterator

from keystoneauth1 import exceptions as ksa_exceptions
from webob import exc

from glare_murano.archive_reading import RETRY_AFTER, ServiceBusy
from glare_murano.package import GlareMuranoError, InvalidPackage
from glare_murano.package.rules import Rule
from loader import errors
from loader.catalogs.repository import RefusedPackage
from loader.murano_api.package_changes import UnsupportedChange
from loader.publishing.publication import PublishError

LOG = logging.getLogger(__name__)

_OF_SERVICE: dict[int, type[exc.HTTPError]] = {
    400: exc.HTTPBadRequest,
    401: exc.HTTPUnauthorized,
    403: exc.HTTPForbidden,
    404: exc.HTTPNotFound,
    409: exc.HTTPConflict,
    413: exc.HTTPRequestEntityTooLarge,
    # A long query gets longer when it is passed on.
    414: exc.HTTPBadRequest,
}


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Turn the loader's errors in the block into HTTP errors of ``webob``.

    If Glare or Glance refuses a request, the status of the refusal is kept. If the service fails,
    the status is 503. It is also 503 if murano-api is reading too many other archives, and 500 if
    an archive cannot be read, and the archive is not the cause.
    """
    try:
        yield
    except errors.NotFound as error:
        raise exc.HTTPNotFound(explanation=str(error)) from error
    except RefusedPackage as error:
        raise exc.HTTPBadRequest(explanation=str(error)) from error
    except errors.CatalogError as error:
        answer = _OF_SERVICE.get(_status(error), exc.HTTPServiceUnavailable)
        if answer is exc.HTTPServiceUnavailable:
            LOG.error("The catalogue of packages failed: %s", error)
        raise answer(explanation=str(error)) from error
    except PublishError as error:
        raise exc.HTTPConflict(explanation=str(error)) from error
    except UnsupportedChange as error:
        raise exc.HTTPForbidden(explanation=str(error)) from error
    except ServiceBusy as error:
        headers = {"Retry-After": str(RETRY_AFTER)}
        raise exc.HTTPServiceUnavailable(explanation=str(error), headers=headers) from error
    except InvalidPackage as error:
        is_failure = any(problem.rule is Rule.READING_FAILURE for problem in error.problems)
        answer = exc.HTTPInternalServerError if is_failure else exc.HTTPBadRequest
        raise answer(explanation=str(error)) from error
    except GlareMuranoError as error:
        raise exc.HTTPBadRequest(explanation=str(error)) from error


def _status(error: BaseException) -> int:
    """Return the HTTP status with which a service refused a request; 0 if no service did so.

    :param error: the loader's error, which a refusal may have caused.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ksa_exceptions.HttpError):
            return int(cause.http_status)
        cause = cause.__cause__
    return 0
