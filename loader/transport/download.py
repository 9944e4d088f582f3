# SPDX-License-Identifier: Apache-2.0

"""Requests that survive what passes: lost connections, timeouts, a server's bad moment.

What is worth another try is tried again, later each time; what is not (any 4xx)
fails at once. A download goes on where it broke off, but never with another body
than it began with. What is transferred, and what a failure means, is the caller's
affair.
"""

import contextlib
import json
import re
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import requests
import tenacity
import urllib3
from glanceclient import exc as glance_exceptions
from keystoneauth1 import exceptions as ksa_exceptions

from loader import errors

DEFAULT_ATTEMPTS = 5
# Seconds until a connection stands, and between two pieces of an answer.
DEFAULT_TIMEOUT = (10.0, 60.0)

# A list of a thousand artifacts takes a few MiB.
MAX_DOCUMENT = 64 * 1024**2
# Seconds for all of it.
_DOCUMENT_TIMEOUT = 300

_CHUNK = 128 * 1024
_LONGEST_WAIT = 30.0
_BAD_REQUEST = 400
_SERVER_ERROR = 500

# A proxy's refusal, of which requests gives the text alone.
_NO_TUNNEL = re.compile(r"Tunnel connection failed: 4\d\d")

# What tells one state of a file from another.
_VALIDATORS = ("ETag", "Last-Modified")
_PART = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})\Z")

FAILURES = (
    glance_exceptions.BaseException,
    glance_exceptions.HTTPException,
    ksa_exceptions.ClientException,
    requests.RequestException,
)

_PASSING = (
    glance_exceptions.CommunicationError,
    # glanceclient's word for an answer that does not come in time.
    glance_exceptions.InvalidEndpoint,
    ksa_exceptions.ConnectFailure,
    ksa_exceptions.ConnectTimeout,
    # Of Keystone.
    ksa_exceptions.DiscoveryFailure,
    ksa_exceptions.UnknownConnectionError,
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
)

# What a balancer does that has no server to lead to; what is refused within TLS,
# a certificate above all, is told by other errors.
_CLOSED_IN_TLS = (ssl.SSLEOFError, ssl.SSLZeroReturnError)


def is_passing(error: BaseException) -> bool:
    """Whether a failure may be gone at the next try."""
    if isinstance(getattr(error, "original", None), ValueError):
        # Of requests: a URL or a header that cannot be sent at all.
        return False
    if _NO_TUNNEL.search(str(error)):
        return False
    if isinstance(error, ksa_exceptions.DiscoveryFailure) and any(
        _BAD_REQUEST <= _status(cause) < _SERVER_ERROR for cause in _causes(error)
    ):
        # It is another server that answers, or another path of it.
        return False
    return (
        isinstance(error, _PASSING)
        or _status(error) >= _SERVER_ERROR
        or any(isinstance(cause, _CLOSED_IN_TLS) for cause in _causes(error))
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and all that it came from, however each library keeps that."""
    waiting: list[object] = [error]
    seen: set[int] = set()
    while waiting:
        found = waiting.pop()
        if isinstance(found, BaseException) and id(found) not in seen:
            seen.add(id(found))
            yield found
            waiting += [found.__context__, found.__cause__, getattr(found, "reason", None)]
            waiting += found.args


def failed(error: BaseException, message: str) -> errors.CatalogError:
    """What to raise where a request has failed for good.

    The proxy that was asked is named: what fails may be its fault.
    """
    kind = errors.NoAnswer if is_passing(error) else errors.CatalogError
    proxy = _proxy(error)
    return kind(f"{message}{f', through the proxy {proxy}' if proxy else ''}: {error}")


def _proxy(error: BaseException | None) -> str:
    """The proxy that a request went to; empty if there is none, or it is not known."""
    while error is not None:
        response = getattr(error, "response", None)
        request = getattr(error, "request", None) or getattr(response, "request", None)
        if request is not None:
            proxy = ""
            with contextlib.suppress(ValueError):
                proxies = requests.utils.get_environ_proxies(request.url)
                proxy = requests.utils.select_proxy(request.url, proxies) or ""
            # However it is written, what stands before the host is not shown.
            return proxy.rpartition("@")[2]
        # keystoneauth keeps of what requests raises the text alone.
        error = error.__context__
    return ""


def _status(error: BaseException) -> int:
    status = getattr(error, "http_status", None) or getattr(error, "code", None)
    return status if isinstance(status, int) else 0


def _wait(state: tenacity.RetryCallState) -> float:
    """Twice as long each time, with some chance; longer if the server asks for it."""
    usual = tenacity.wait_random_exponential(multiplier=0.5, max=_LONGEST_WAIT)(state)
    error = state.outcome.exception() if state.outcome else None
    return max(usual, min(_retry_after(error), _LONGEST_WAIT))


def _retry_after(error: BaseException | None) -> float:
    response = getattr(error, "response", None)
    text = response.headers.get("Retry-After", "") if response is not None else ""
    # The other form, a date, relies on two clocks.
    return float(text) if text.isascii() and text.isdigit() else 0.0


def retrying(attempts: int) -> tenacity.Retrying:
    """Calls a function until it succeeds, fails for good, or has failed too often."""
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(is_passing),
        stop=tenacity.stop_after_attempt(attempts),
        wait=_wait,
        reraise=True,
    )


def validator(response: requests.Response) -> dict[str, str]:
    """The headers of an answer that tell this state of a file from others."""
    headers = response.headers
    return {name: headers[name][:255] for name in _VALIDATORS if name in headers}


def part(response: requests.Response) -> tuple[int, int, int] | None:
    """Of a part of a file: the offset of its first byte, that after its last, the whole size.

    None if the answer is none, or does not say so.
    """
    if response.status_code != requests.codes.partial_content:
        return None
    found = _PART.match(response.headers.get("Content-Range", ""))
    start, last, size = map(int, found.groups()) if found else (0, 0, 0)
    return (start, last + 1, size) if start <= last < size else None


class Download:
    """A body that arrives piece by piece, over as many connections as it takes.

    A server that gives no ranges sends it from the beginning, and what is here
    already is passed over. Where the server tells states of a file apart, only the
    same one is gone on with (RFC 9110, sections 13.1.5 and 15.3.7); where it does
    not, the digest, or the archive's own sums, have to tell.
    """

    def __init__(
        self,
        open_at: Callable[[dict[str, str]], requests.Response],
        attempts: int,
        begun: requests.Response | None = None,
    ) -> None:
        """Make a download; nothing is asked yet.

        :param open_at: requests the body, with these headers, as a stream; raises
            an ``HttpError`` where neither it nor a part of it is the answer.
        :param attempts: how often one piece is tried.
        :param begun: an answer that has been asked for already, with the body or
            that part of it that is wanted.
        """
        self._open_at = open_at
        self._retrying = retrying(attempts)
        self._response = begun
        self._pieces: Iterator[bytes] | None = None
        self._validator: dict[str, str] = {}
        # Of the part that is wanted, if not the whole body: its end, and the whole size.
        self._end: tuple[int, int] | None = None
        self._offset = 0
        if begun is not None and (begun_part := part(begun)):
            self._offset, *end = begun_part
            self._end = (end[0], end[1])

    def __iter__(self) -> Iterator[bytes]:
        """The body's pieces.

        :raises ClientException: if the server goes on with something else.
        """
        try:
            while piece := self._retrying(self._read):
                self._offset += len(piece)
                yield piece
        finally:
            self._close()

    def _read(self) -> bytes:
        """The next piece; empty at the end."""
        try:
            if self._pieces is None:
                self._pieces = self._open()
            return next(self._pieces, b"")
        except Exception:
            self._close()
            raise

    def _open(self) -> Iterator[bytes]:
        """All pieces that are missing."""
        if self._end is not None and self._offset >= self._end[0]:
            # It was lost when all had come.
            return iter(())
        if self._response is None:
            try:
                self._response = self._open_at(self._headers())
            except ksa_exceptions.HttpError as error:
                if not self._is_past_the_end(error):
                    raise
                return iter(())
        self._check_state(self._response)
        arriving = pieces(self._response)
        if self._response.status_code != requests.codes.partial_content:
            return _between(self._offset, self._end[0] if self._end else None, arriving)
        start, end, size = part(self._response) or (0, 0, 0)
        wanted = self._end or (size, size)
        if not end or start != self._offset or size != wanted[1] or end > wanted[0]:
            said = self._response.headers.get("Content-Range", "")
            raise ksa_exceptions.ClientException(
                f"asked for the bytes {self._wanted}, the server gave {said[:80]!r}"
            )
        return arriving if end == wanted[0] else _and_more(arriving)

    @property
    def _wanted(self) -> str:
        return f"{self._offset}-{self._end[0] - 1 if self._end else ''}"

    def _headers(self) -> dict[str, str]:
        """What asks for the pieces that are missing."""
        # In what is packed on the way, places are others.
        headers = {"Accept-Encoding": "identity"}
        if self._offset or self._end:
            headers["Range"] = f"bytes={self._wanted}"
            state = next(iter(self._validator.values()), "")
            if state and not state.startswith("W/"):
                headers["If-Range"] = state
        return headers

    def _check_state(self, response: requests.Response) -> None:
        state = validator(response)
        # Mirrors have times of their own for what has one tag.
        both = next((name for name in _VALIDATORS if name in state and name in self._validator), "")
        if state.get(both) != self._validator.get(both):
            raise ksa_exceptions.ClientException(
                "it was replaced by something else while it was downloaded; try again"
            )
        self._validator |= state

    def _is_past_the_end(self, error: ksa_exceptions.HttpError) -> bool:
        """Whether the whole body had come when the connection was lost."""
        if (
            self._end is not None
            or _status(error) != requests.codes.requested_range_not_satisfiable
        ):
            return False
        response = error.response
        said = response.headers.get("Content-Range") if response is not None else None
        return bool(said == f"bytes */{self._offset}")

    def _close(self) -> None:
        if self._response is not None:
            with contextlib.suppress(Exception):
                self._response.close()
        self._response = self._pieces = None


def _and_more(arriving: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces of an answer that is shorter than what was asked for, which a server may do."""
    yield from arriving
    raise requests.exceptions.ChunkedEncodingError(
        "the server gave a part of what it was asked for"
    )


def _between(start: int, end: int | None, arriving: Iterable[bytes]) -> Iterator[bytes]:
    """What comes after so many bytes, as far as an end, if there is one."""
    place = 0
    for piece in arriving:
        wanted = piece[max(start - place, 0) : None if end is None else max(end - place, 0)]
        place += len(piece)
        if wanted:
            yield wanted
        if end is not None and place >= end:
            return
    if place < start:
        raise ksa_exceptions.ClientException(
            f"{start} bytes of it had come, but asked for again, it has {place} only"
        )


def pieces(response: requests.Response) -> Iterator[bytes]:
    """The pieces of an answer that was asked for as a stream, each as soon as it arrives."""
    if getattr(response, "_content_consumed", False):
        # By keystoneauth, which writes answers to its log where that is detailed.
        yield from response.iter_content(_CHUNK)
        return
    try:
        # Requests would wait until a piece is full, and a server that sends one byte
        # now and then would pass by any deadline.
        while piece := response.raw.read1(_CHUNK, decode_content=True):
            yield piece
    except urllib3.exceptions.DecodeError as error:
        raise requests.exceptions.ContentDecodingError(error) from error
    except urllib3.exceptions.HTTPError as error:
        raise requests.exceptions.ChunkedEncodingError(error) from error


def within(seconds: float, arriving: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces, as long as they arrive in time, all together.

    :raises ClientException: if they do not.
    """
    deadline = time.monotonic() + seconds
    for piece in arriving:
        yield piece
        if time.monotonic() > deadline:
            raise ksa_exceptions.ClientException(f"not within {seconds} seconds")


def document(response: requests.Response) -> Any:
    """The JSON of an answer that was asked for as a stream.

    :raises ClientException: if it is larger than any that is asked for, or takes too long.
    :raises ValueError: if it is no JSON.
    """
    body = bytearray()
    with response:
        for piece in within(_DOCUMENT_TIMEOUT, pieces(response)):
            body += piece
            if len(body) > MAX_DOCUMENT:
                raise ksa_exceptions.ClientException(
                    f"{response.url} answered with more than {MAX_DOCUMENT} bytes"
                )
    return json.loads(body)


def not_redirected(response: requests.Response) -> requests.Response:
    """An answer, unless it leads elsewhere.

    keystoneauth would follow it with the token, to whatever host it names. So
    requests are sent with ``redirect=False``, and nothing is followed.

    :raises ClientException: if the answer is a redirection.
    """
    if response.is_redirect:
        raise ksa_exceptions.ClientException(
            f"{response.url} leads to {response.headers['Location']}, where the token would go "
            f"along; it is not followed. Configure the URL that is meant"
        )
    return response


def limit(session: Any) -> None:
    """Give a session the timeout of all requests, also those for tokens, unless it has one."""
    if session.timeout is None:
        session.timeout = DEFAULT_TIMEOUT


def with_timeout(session: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a request, with a timeout if the session has none of its own."""
    return arguments if session.timeout is not None else {"timeout": DEFAULT_TIMEOUT, **arguments}
