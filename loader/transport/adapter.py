# SPDX-License-Identifier: Apache-2.0

"""Requests to an OpenStack service, with retries, limits and counters.

Every method raises ``CatalogError`` on failure, and its subclass ``CatalogUnavailable`` if the
same request may succeed later.
"""

import json
from collections.abc import Generator, Iterator
from typing import Any

import requests
from keystoneauth1 import adapter as ksa_adapter
from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import session as ksa_session

from loader.counters import Counters
from loader.transport import retries, sessions
from loader.transport.download import Download, pieces, within

# In bytes. A list of a thousand artifacts has a few MiB.
_MAX_DOCUMENT = 64 * 1024**2
# In seconds, for a whole document.
_DOCUMENT_TIMEOUT = 300


class ServiceAdapter(ksa_adapter.Adapter):
    """An adapter of keystoneauth that does not trust the server.

    Redirections are not followed: keystoneauth would send the token to any host.
    """

    def __init__(
        self,
        session: ksa_session.Session,
        name: str,
        counters: Counters,
        attempts: int,
        **place: str | None,
    ) -> None:
        """Make an adapter; no request is sent.

        :param name: the service's name in messages.
        :param counters: count the requests and the bytes of downloads.
        :param attempts: how often a request is sent while its failures are temporary.
        :param place: the endpoint, as parameters of keystoneauth's ``Adapter``.
        """
        super().__init__(session, **place)  # type: ignore[arg-type]
        self.name = name
        self._counters = counters
        self._attempts = attempts

    def document(self, method: str, path: str, **arguments: Any) -> Any:
        """Return the JSON of an answer; None for a success with a status other than 200.

        :param arguments: further arguments of keystoneauth's ``Adapter.request``.
        :raises CatalogError: if the request fails, or the answer is not JSON, too large
            or too slow.
        """

        def request() -> Any:
            with self._send(method, path, **arguments) as response:
                return _read(response) if response.status_code == requests.codes.ok else None

        try:
            return retries.retrying(self._attempts)(request)
        except (*retries.FAILURES, ValueError, RecursionError) as error:
            raise retries.failure(error, f"{self.name} did not answer") from error

    def download(self, path: str, label: str) -> Iterator[bytes]:
        """Yield a file piece by piece.

        :param label: the file's name in messages.
        :raises CatalogError: if the download fails.
        """

        def open_at(headers: dict[str, str]) -> requests.Response:
            return self._send("GET", path, headers=headers)

        try:
            for piece in Download(open_at, self._attempts):
                self._counters.count(bytes=len(piece))
                yield piece
        except retries.FAILURES as error:
            raise retries.failure(error, f"{self.name} did not send {label}") from error

    def stream(
        self, method: str, path: str, label: str, seconds: float, **arguments: Any
    ) -> Generator[bytes]:
        """Yield the pieces of an answer, without retries.

        :param label: the answer's name in messages.
        :param seconds: the time limit of all pieces together.
        :raises CatalogError: if the answer breaks off, or takes longer.
        """
        try:
            with self._send(method, path, **arguments) as response:
                yield from within(seconds, pieces(response))
        except retries.FAILURES as error:
            raise retries.failure(error, f"{self.name} did not send {label}") from error

    def authenticated_project(self) -> str | None:
        """Return the id of the session's project; None for a session without a project.

        :raises CatalogError: if the session cannot authenticate.
        """
        try:
            return retries.retrying(self._attempts)(self.get_project_id)
        except ksa_exceptions.ClientException as error:
            raise retries.failure(error, f"{self.name}: cannot authenticate") from error

    def _send(self, method: str, path: str, **arguments: Any) -> requests.Response:
        self._counters.count(requests=1)
        if self.session.timeout is None:
            arguments["timeout"] = sessions.DEFAULT_TIMEOUT
        # keystoneauth renews a token that the service refuses (401), and repeats the request.
        response = self.request(path, method, redirect=False, stream=True, **arguments)
        if response.is_redirect:
            raise ksa_exceptions.ClientException(
                f"{response.url} redirects to {response.headers['Location']}. Redirections are "
                f"not followed, since the token would be sent along; configure the final URL"
            )
        return response


def _read(response: requests.Response) -> Any:
    body = bytearray()
    for piece in within(_DOCUMENT_TIMEOUT, pieces(response)):
        body += piece
        if len(body) > _MAX_DOCUMENT:
            raise ksa_exceptions.ClientException(
                f"{response.url} sent more than {_MAX_DOCUMENT} bytes"
            )
    return json.loads(body)
