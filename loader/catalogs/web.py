# SPDX-License-Identifier: Apache-2.0
"""Files of a web server, asked for without trust: everything has a limit.

No credentials are sent, neither the session's nor those of ``~/.netrc``. What
was asked for by ``https`` never arrives by ``http``. It knows nothing of
packages.
"""

import contextlib
import functools
import re
from collections.abc import Callable, Collection, Iterator, Mapping

import requests
from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import session as ksa_session

from glare_murano.package.errors import quoted
from loader import errors
from loader.counters import Counters
from loader.transport import download

# For a whole file.
_WHOLE_TIMEOUT = 600
# What stands before the host.
_CREDENTIALS = re.compile(r"\A([a-z+.-]+://|)[^/?#]*@", re.IGNORECASE)
_URL = re.compile(r"https?://[!-~]{1,2000}\Z")

# What asks whether a file is still in the state that a header tells of.
_CONDITIONS = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}

_FILE = frozenset({200, 206})


def checked_url(url: str) -> str:
    """A URL as it may be sent and shown: without credentials.

    :raises ValueError: if no web server can be asked for it.
    """
    url = _CREDENTIALS.sub(r"\1", url)
    # A password may have been written so that it is not seen as one.
    shown = quoted(url.rpartition("@")[2])
    if not _URL.match(url):
        raise ValueError(f"{shown} is no URL such as https://host/path")
    try:
        requests.Request("GET", url).prepare()
    except ValueError as error:
        raise ValueError(f"{shown} is no URL: {error}") from error
    return url


class Answer:
    """What a server says of a file; read within ``Web.ask``.

    :ivar status: 200, 206, 304 or 416; 404 also stands for 410.
    :ivar validator: what tells this state of the file from others.
    """

    def __init__(
        self, url: str, response: requests.Response, body: Callable[[], download.Download]
    ) -> None:
        """Take an answer.

        :param body: reads its body.
        """
        self.status = 404 if response.status_code == 410 else response.status_code
        self.validator = download.validator(response)
        self._url = url
        self._response = response
        self._download = body

    @property
    def part(self) -> tuple[int, int, int]:
        """Of a 206: the offset of the first byte, that after the last, the whole size.

        :raises CatalogError: if the server does not say so.
        """
        found = download.part(self._response)
        if found is None:
            raise errors.CatalogError(f"{self._url}: the server gave no part of the file")
        return found

    def chunks(self) -> Iterator[bytes]:
        """The content, piece by piece; where it breaks off, it goes on.

        :raises CatalogError: if it cannot, or takes too long.
        """
        try:
            yield from download.within(_WHOLE_TIMEOUT, self._download())
        except download.FAILURES as error:
            raise download.failed(error, self._url) from error

    def content(self, limit: int) -> bytes:
        """The whole content.

        :raises CatalogError: if it is longer than the limit, or breaks off for good.
        """
        found = bytearray()
        for chunk in self.chunks():
            found += chunk
            if len(found) > limit:
                raise errors.CatalogError(f"{self._url}: more than {limit} bytes")
        return bytes(found)


class Web:
    """Asks for files."""

    def __init__(
        self,
        session: ksa_session.Session,
        counters: Counters,
        attempts: int = download.DEFAULT_ATTEMPTS,
    ) -> None:
        """Make a client.

        :param session: for its TLS options, timeouts and proxies.
        :param counters: where each request is counted.
        :param attempts: how often a request is made that fails for a passing
            reason, and how often one piece of a body is tried.
        """
        self._attempts = attempts
        self._session = session
        self._counters = counters

    @contextlib.contextmanager
    def ask(
        self, url: str, known: Mapping[str, str] | None = None, wanted: str = ""
    ) -> Iterator[Answer]:
        """Ask for a file.

        :param known: the validator of the state that is known, which need
            not be sent again.
        :param wanted: the range to ask for, such as ``0-99``; everything is
            sent where the server gives no ranges.
        :raises CatalogError: if the answer is none of those of ``Answer``.
        """
        headers = {_CONDITIONS[name]: value for name, value in (known or {}).items()}
        # What is packed on the way unpacks to any size.
        headers["Accept-Encoding"] = "identity"
        if wanted:
            headers["Range"] = f"bytes={wanted}"
        expected = {200, 404, 410} | ({206, 416} if wanted else set()) | ({304} if known else set())
        try:
            response = download.retrying(self._attempts)(self._send, url, expected, headers)
        except download.FAILURES as error:
            raise download.failed(error, url) from error
        with response:
            again = functools.partial(self._send, url, _FILE)
            body = functools.partial(download.Download, again, self._attempts, response)
            yield Answer(url, response, body)

    def _send(
        self, url: str, expected: Collection[int], headers: Mapping[str, str]
    ) -> requests.Response:
        """Send a request once.

        :raises ClientException: if it is not answered as expected.
        """
        self._counters.count(requests=1)
        response: requests.Response = self._session.get(
            url,
            authenticated=False,
            requests_auth=_no_credentials,
            raise_exc=False,
            log=False,
            headers=dict(headers),
            stream=True,
            **download.with_timeout(self._session, {}),
        )
        try:
            _check(response, url, expected)
        except ksa_exceptions.ClientException:
            # What it says is not read: it may have no end.
            response.close()
            raise
        return response


def _check(response: requests.Response, url: str, expected: Collection[int]) -> None:
    status = response.status_code
    if status not in expected:
        raise ksa_exceptions.HttpError(response.reason, http_status=status, response=response)
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise ksa_exceptions.ClientException("the server packs what it sends")
    if url.startswith("https:") and not response.url.startswith("https:"):
        raise ksa_exceptions.ClientException(f"the server leads to {response.url}")


def _no_credentials(request: requests.PreparedRequest) -> requests.PreparedRequest:
    # Without any, requests looks for some in ~/.netrc.
    return request
