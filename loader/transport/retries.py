# SPDX-License-Identifier: Apache-2.0

"""Retries of requests: which failures are temporary, how long to wait, how to report them."""

import contextlib
import re
import ssl
from collections.abc import Iterator

import requests
import tenacity
from keystoneauth1 import exceptions as ksa_exceptions

from loader import errors

DEFAULT_ATTEMPTS = 5

# All errors that requests and keystoneauth raise.
FAILURES = (ksa_exceptions.ClientException, requests.RequestException)

_TEMPORARY = (
    ksa_exceptions.ConnectFailure,
    ksa_exceptions.ConnectTimeout,
    ksa_exceptions.DiscoveryFailure,  # of Keystone
    ksa_exceptions.UnknownConnectionError,
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
)
# A load balancer without a server closes connections like this. A refusal within
# TLS, such as of a certificate, raises other errors.
_CLOSED_IN_TLS = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
# requests keeps only the message of a proxy's refusal.
_REFUSED_BY_PROXY = re.compile(r"Tunnel connection failed: 4\d\d")

_LONGEST_WAIT = 30.0
_BAD_REQUEST = 400
_SERVER_ERROR = 500


class NoSuchPath(errors.CatalogError):
    """The service does not have the path (404), or not with this method (405)."""


def retrying(attempts: int) -> tenacity.Retrying:
    """Return a caller of functions: it repeats them while failures are temporary.

    The last failure is raised.
    """
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(is_temporary),
        stop=tenacity.stop_after_attempt(attempts),
        wait=_wait,
        reraise=True,
    )


def is_temporary(error: BaseException) -> bool:
    """Return whether the same request may succeed later."""
    # From requests: the URL or a header is invalid.
    is_invalid = isinstance(getattr(error, "original", None), ValueError)
    # The URL leads to another server, or to another path of Keystone.
    is_elsewhere = isinstance(error, ksa_exceptions.DiscoveryFailure) and any(
        _BAD_REQUEST <= _status(cause) < _SERVER_ERROR for cause in _causes(error)
    )
    if is_invalid or is_elsewhere or _REFUSED_BY_PROXY.search(str(error)):
        return False
    return (
        isinstance(error, _TEMPORARY)
        or _status(error) >= _SERVER_ERROR
        or any(isinstance(cause, _CLOSED_IN_TLS) for cause in _causes(error))
    )


def failure(error: BaseException, message: str) -> errors.CatalogError:
    """Return the error to raise for a failed request.

    The message names the proxy, which may be at fault.

    :param message: the beginning of the error's message.
    """
    kind: type[errors.CatalogError] = errors.CatalogError
    if is_temporary(error):
        kind = errors.CatalogUnavailable
    elif isinstance(error, ksa_exceptions.NotFound | ksa_exceptions.MethodNotAllowed):
        kind = NoSuchPath
    proxy = _proxy(error)
    return kind(f"{message}{f', through the proxy {proxy}' if proxy else ''}: {error}")


def _wait(state: tenacity.RetryCallState) -> float:
    """Return a random wait with a doubling limit; a longer wait at the server's request."""
    usual = tenacity.wait_random_exponential(multiplier=0.5, max=_LONGEST_WAIT)(state)
    response = getattr(state.outcome and state.outcome.exception(), "response", None)
    requested = response.headers.get("Retry-After", "") if response is not None else ""
    # A date, the other form, would compare two clocks.
    seconds = float(requested) if requested.isascii() and requested.isdigit() else 0.0
    return max(usual, min(seconds, _LONGEST_WAIT))


def _status(error: BaseException) -> int:
    status = getattr(error, "http_status", None)
    return status if isinstance(status, int) else 0


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, from all attributes used by the libraries."""
    waiting: list[object] = [error]
    seen: set[int] = set()
    while waiting:
        found = waiting.pop()
        if isinstance(found, BaseException) and id(found) not in seen:
            seen.add(id(found))
            yield found
            waiting += [found.__context__, found.__cause__, getattr(found, "reason", None)]
            waiting += found.args


def _proxy(error: BaseException | None) -> str:
    """Return the proxy of a failed request, without credentials; empty if none is known."""
    while error is not None:
        response = getattr(error, "response", None)
        request = getattr(error, "request", None) or getattr(response, "request", None)
        if request is not None:
            proxy = ""
            with contextlib.suppress(ValueError):
                proxies = requests.utils.get_environ_proxies(request.url)
                proxy = requests.utils.select_proxy(request.url, proxies) or ""
            return proxy.rpartition("@")[2]
        # keystoneauth keeps only the message of the error from requests.
        error = error.__context__
    return ""
