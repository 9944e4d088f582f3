# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Files of a web server, asked for without trust: everything has a limit.

No credentials are sent, neither the session's nor those of ``~/.netrc``. What
was asked for by ``https`` never arrives by ``http``. It knows nothing of
packages.
"""

import contextlib
import re
import time
from collections.abc import Iterator
from collections.abc import Mapping

import requests
from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import session as ksa_session

from loader import errors
from loader import transfer
from loader.counters import Counters

_CHUNK = 128 * 1024
# Between two bytes, where the session says nothing of it, and for a whole file.
_TIMEOUT = 60
_WHOLE_TIMEOUT = 600
# What stands between the slashes and the host.
_CREDENTIALS = re.compile(r"(?<=\Ahttp://)[^/?#]*@|(?<=\Ahttps://)[^/?#]*@")
_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})\Z")

# Headers of an answer that tell one state of a file from another, and those that
# ask whether it is still the same.
_VALIDATORS = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}

_FAILURES = (ksa_exceptions.ClientException, requests.RequestException)


def without_credentials(url: str) -> str:
    """A URL as it may be sent and shown."""
    return _CREDENTIALS.sub("", url)


class Answer:
    """What a server says of a file; read within ``Web.ask``.

    :ivar status: 200, 206, 304 or 416; 404 also stands for 410.
    :ivar validator: what tells this state of the file from others.
    """

    def __init__(self, url: str, response: requests.Response) -> None:
        self.status = 404 if response.status_code == 410 else response.status_code
        self.validator = {
            name: response.headers[name][:255] for name in _VALIDATORS if name in response.headers
        }
        self._url = url
        self._response = response

    @property
    def part(self) -> tuple[int, int, int]:
        """Of a 206: the offset of the first byte, that after the last, the whole size.

        :raises CatalogError: if the server does not say so.
        """
        found = _RANGE.match(self._response.headers.get("Content-Range", ""))
        start, last, size = map(int, found.groups()) if found else (0, 0, 0)
        if not start <= last < size:
            raise errors.CatalogError(f"{self._url}: the server gave no part of the file")
        return start, last + 1, size

    def chunks(self) -> Iterator[bytes]:
        """The content, piece by piece.

        :raises CatalogError: if it breaks off, or takes too long.
        """
        deadline = time.monotonic() + _WHOLE_TIMEOUT
        try:
            for chunk in self._response.iter_content(_CHUNK):
                yield chunk
                if time.monotonic() > deadline:
                    raise errors.CatalogError(f"{self._url}: not within {_WHOLE_TIMEOUT} seconds")
        except _FAILURES as error:
            raise transfer.failed(error, self._url) from error

    def content(self, limit: int) -> bytes:
        """The whole content.

        :raises CatalogError: if it is longer than the limit, or breaks off.
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
        attempts: int = transfer.DEFAULT_ATTEMPTS,
    ) -> None:
        """Make a client.

        :param session: for its TLS options, timeouts and proxies.
        :param counters: where each request is counted.
        :param attempts: how often a request is made that fails for a passing
            reason, until an answer begins.
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
        headers = {_VALIDATORS[name]: value for name, value in (known or {}).items()}
        # What is packed on the way unpacks to any size.
        headers["Accept-Encoding"] = "identity"
        if wanted:
            headers["Range"] = f"bytes={wanted}"
        with self._response(url, headers) as response:
            answer = Answer(url, response)
            expected = {200, 404} | ({206, 416} if wanted else set()) | ({304} if known else set())
            if answer.status not in expected:
                raise errors.CatalogError(f"{url}: HTTP {answer.status} {response.reason}")
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise errors.CatalogError(f"{url}: the server packs what it sends")
            if url.startswith("https:") and not response.url.startswith("https:"):
                raise errors.CatalogError(f"{url}: the server leads to {response.url}")
            yield answer

    def _response(self, url: str, headers: Mapping[str, str]) -> requests.Response:
        try:
            return transfer.retrying(self._attempts)(self._send, url, headers)
        except _FAILURES as error:
            raise transfer.failed(error, url) from error

    def _send(self, url: str, headers: Mapping[str, str]) -> requests.Response:
        """Send a request once."""
        self._counters.count(requests=1)
        response: requests.Response = self._session.get(
            url,
            authenticated=False,
            requests_auth=_no_credentials,
            raise_exc=False,
            log=False,
            headers=dict(headers),
            stream=True,
            timeout=self._session.timeout or _TIMEOUT,
        )
        if response.status_code >= 500:
            # What it says is not read: it may have no end.
            response.close()
            raise ksa_exceptions.HttpServerError(
                response.reason, http_status=response.status_code, response=response
            )
        return response


def _no_credentials(request: requests.PreparedRequest) -> requests.PreparedRequest:
    # Without any, requests looks for some in ~/.netrc.
    return request
