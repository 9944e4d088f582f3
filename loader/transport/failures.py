# SPDX-License-Identifier: Apache-2.0

"""Decide which failures of requests are temporary, and describe failures in messages."""

import contextlib
import re
import ssl
import urllib.parse
from collections.abc import Iterator

import requests
from keystoneauth1 import exceptions as ksa_exceptions

from glare_murano.package.errors import shown
from loader import errors

# All errors that requests and keystoneauth raise.
FAILURES = (ksa_exceptions.ClientException, requests.RequestException)


WRONG_HEADER = "a header, probably the token, has characters that HTTP does not allow"


class TooSlow(ksa_exceptions.ClientException):
    """A request was not complete at its deadline."""


class UnusableAnswer(ksa_exceptions.ClientException):
    """The server has sent an answer that cannot be used, such as a page instead of JSON."""

    def __init__(self, response: requests.Response, message: str) -> None:
        self.response = response
        super().__init__(message)


class TruncatedAnswer(UnusableAnswer):
    """The server has sent only a part of a JSON document."""


class NoSuchPath(errors.CatalogError):
    """The service does not have the path (404 or 300), or does not allow the method (405)."""


class Conflict(errors.CatalogError):
    """The service refuses a request because of the present state of the resource (409)."""


_TEMPORARY = (
    TruncatedAnswer,
    ksa_exceptions.ConnectFailure,
    ksa_exceptions.ConnectTimeout,
    ksa_exceptions.DiscoveryFailure,  # The URLs and versions of Keystone could not be read.
    ksa_exceptions.UnknownConnectionError,
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
)
# A load balancer that has no server closes the connection, which raises these errors. A refused
# certificate raises other errors.
_CLOSED_IN_TLS = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
# If a proxy refuses a request, the library requests keeps only this message.
_REFUSED_BY_PROXY = re.compile(r"Tunnel connection failed: 4\d\d")

_QUERY = re.compile(r"\?\S+")

_TIMEOUTS = (ksa_exceptions.ConnectTimeout, requests.Timeout)
_CONNECTION_FAILURES = (
    ksa_exceptions.ConnectFailure,
    ksa_exceptions.UnknownConnectionError,
    requests.ConnectionError,
    *_TIMEOUTS,
)

_BAD_REQUEST = 400
_SERVER_ERROR = 500
# The statuses of a server that has waited too long for the request, or gets too many requests.
_TRY_AGAIN = (408, 429)

WRONG_SERVICE = "check that the configured URL, or the endpoint in Keystone, is this service's"
_REMEDIES = {
    401: "; check the credentials, and that the service uses the same Keystone",
    404: f"; {WRONG_SERVICE}",
}


def is_unavailability(error: BaseException) -> bool:
    """Return whether an error means that the service does not answer in time, or not at all."""
    return is_temporary(error) or isinstance(error, TooSlow)


def is_temporary(error: BaseException) -> bool:
    """Return whether a request that has failed with an error may succeed later."""
    # requests raises ValueError for an invalid URL or header.
    is_invalid = isinstance(getattr(error, "original", None), ValueError)
    # The URL leads to another server, or to another path of Keystone.
    is_elsewhere = isinstance(error, ksa_exceptions.DiscoveryFailure) and any(
        _BAD_REQUEST <= _status(cause) < _SERVER_ERROR for cause in causes(error)
    )
    if is_invalid or is_elsewhere or _REFUSED_BY_PROXY.search(str(error)):
        return False
    status = _status(error)
    return (
        isinstance(error, _TEMPORARY)
        or status in _TRY_AGAIN
        or status >= _SERVER_ERROR
        or any(isinstance(cause, _CLOSED_IN_TLS) for cause in causes(error))
    )


def catalog_error(
    error: BaseException, name: str, keystone: str | None, archives: str = ""
) -> errors.CatalogError:
    """Return the loader's error for a failed request.

    The message names the server that has failed, and the proxy, which may be the cause.

    :param error: the error of the request.
    :param name: the service's name.
    :param keystone: the URL of Keystone that the session uses; None if it is not known.
    :param archives: the requested archives, in the message; empty for other requests.
    """
    invalid = getattr(error, "original", None)
    if isinstance(invalid, ValueError):
        if proxy := _through_proxy(_request(error)):
            # The error's own message may show a part of the proxy's password.
            return errors.CatalogError(
                f"{name}: cannot make a request{proxy}: its URL is not valid; check http_proxy "
                f"and https_proxy, with special characters of a password written as %XX"
            )
        if isinstance(invalid, requests.exceptions.InvalidHeader):
            invalid = WRONG_HEADER  # The error's own message shows the token.
        return errors.CatalogError(
            f"{name}: cannot make a request: {invalid}; check the URL, such as http://host:9494, "
            f"and the credentials"
        )
    kind: type[errors.CatalogError] = errors.CatalogError
    if is_unavailability(error):
        kind = errors.CatalogUnavailable
    elif isinstance(error, ksa_exceptions.NotFound | ksa_exceptions.MethodNotAllowed):
        kind = NoSuchPath
    elif isinstance(error, ksa_exceptions.Conflict):
        kind = Conflict
    request = _request(error)
    remedies = {} if archives else _REMEDIES
    happened = f"did not send {archives}" if archives else "did not answer"
    if keystone and (
        isinstance(error, ksa_exceptions.DiscoveryFailure)
        or (request is not None and str(request.url).startswith(keystone))
    ):
        name, happened = f"{name}: cannot authenticate: Keystone at {keystone}", "did not answer"
        remedies = dict.fromkeys((401, 404), "; check its URL and the credentials")
    response = getattr(error, "response", None)
    if response is not None:
        answered = (
            f"answered {response.request.method} {urllib.parse.urlsplit(response.url).path} with "
            f"the status {response.status_code} and the content type "
            f"{response.headers.get('Content-Type', '')[:80]!r}"
        )
        happened = f"{happened}, but {answered}" if archives else answered
    if isinstance(error, ksa_exceptions.HttpError):
        text, message = str(error), message_of(error)
        reason = shown(text if message in text else message)
    else:
        reason = _connection_reason(error, name, request) or str(error)
    return kind(
        f"{name} {happened}{_through_proxy(request)}: {reason}{remedies.get(_status(error), '')}"
    )


def without_queries(text: str) -> str:
    """Remove the queries of URLs from a message, since a query may be a signature.

    >>> without_queries("no answer from https://host/file?signature=0a1b in time")
    'no answer from https://host/file in time'
    """
    return _QUERY.sub("", text)


def message_of(error: BaseException | None) -> str:
    """Return the message that a server has sent with a refusal; empty if it has sent none.

    keystoneauth does not find the messages of Glance's own API, since they end in markup.
    """
    response = getattr(error, "response", None)
    if response is None:
        return ""
    try:
        body = response.json()
    except (ValueError, RecursionError):
        return ""
    found = body.get("error", body) if isinstance(body, dict) else None
    message = found.get("message") if isinstance(found, dict) else None
    return message.partition("<br />")[0] if isinstance(message, str) else ""


def _connection_reason(
    error: BaseException, name: str, request: requests.PreparedRequest | None
) -> str:
    """Return why a server could not be reached; an empty string for other errors.

    :param name: the service's name. If it contains the server's URL, the reason leaves the URL out.
    """
    if request is None or not isinstance(error, _CONNECTION_FAILURES):
        return ""
    if isinstance(error, _TIMEOUTS):
        reason = "the request timed out"
    else:
        failed = [each for each in causes(error) if isinstance(each, OSError)]
        found = (each for each in failed if not isinstance(each, requests.RequestException))
        reason = next((each.strerror for each in found if each.strerror), "")
    url = urllib.parse.urlsplit(str(request.url))
    server = f"{url.scheme}://{url.netloc.rpartition('@')[2]}"
    return f"{server}: {reason}" if reason and server not in name else reason


def _status(error: BaseException) -> int:
    status = getattr(error, "http_status", None)
    return status if isinstance(status, int) else 0


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all its causes, which the libraries store in several attributes."""
    waiting: list[object] = [error]
    seen: set[int] = set()
    while waiting:
        found = waiting.pop()
        if isinstance(found, BaseException) and id(found) not in seen:
            seen.add(id(found))
            yield found
            waiting += [found.__context__, found.__cause__, getattr(found, "reason", None)]
            waiting += found.args


def _request(error: BaseException | None) -> requests.PreparedRequest | None:
    """Return the request that has failed; None if the error does not have it."""
    while error is not None:
        response = getattr(error, "response", None)
        request = getattr(error, "request", None) or getattr(response, "request", None)
        if request is not None:
            found: requests.PreparedRequest = request
            return found
        # keystoneauth keeps only the message of the error from requests.
        error = error.__context__
    return None


def _through_proxy(request: requests.PreparedRequest | None) -> str:
    """Return the end of a sentence that names a request's proxy; empty if there is no proxy.

    The credentials of the proxy are left out.
    """
    proxy = ""
    if request is not None:
        with contextlib.suppress(ValueError):
            url = str(request.url)
            proxy = requests.utils.select_proxy(url, requests.utils.get_environ_proxies(url)) or ""
    return f", through the proxy {proxy.rpartition('@')[2]}" if proxy else ""
