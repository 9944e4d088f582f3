# SPDX-License-Identifier: Apache-2.0

"""Send requests to an OpenStack service, with retries, limits and counters.

Every method raises ``CatalogError`` if a request fails. It raises the subclass
``CatalogUnavailable`` if the same request may succeed later.
"""

import contextlib
import json
import logging
import re
import urllib.parse
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import IO, Any, NamedTuple

import requests
from keystoneauth1 import adapter as ksa_adapter
from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import session as ksa_session

from glare_murano.package.archive_rules import DEFAULT_LIMITS, Limits, limited
from glare_murano.package.errors import shown
from glare_murano.package.json_values import Counts
from loader import errors
from loader.counters import Counters
from loader.transport import failures, limited_sessions, retries, sessions
from loader.transport.deadlines import Deadline
from loader.transport.download import DEFAULT_MIN_RATE, Download, pieces

LOG = logging.getLogger(__name__)

# How many pages of a list are read. A server may send a list without an end.
_MAX_PAGES = 1000
# The largest size of all pages of a list together, in bytes. The releases in it are kept in memory.
# Ten thousand releases usually have 30 MiB.
_MAX_LIST = 128 * 1024**2
# The most lists, mappings and values in an answer. The largest plans need two thirds of them. More
# would delay the other threads of the process for seconds.
_MAX_VALUES = Counts(lists=1_000_000, commas=2_000_000)
# How many seconds the answer to an upload may take, after the time for sending the file.
_UPLOAD_GRACE = 120
_JSON = "application/json"
_WITH_DOCUMENT = (requests.codes.ok, requests.codes.created)
# The header Warning has a code, the name of the sender, and the quoted text.
_WARNING = re.compile(r'\d{3} \S+ (".*")')


class _Document(NamedTuple):
    """The document in an answer of a service.

    :param content: the document, as parsed from JSON; None for an answer without a document.
    :param size: the size of the document, in bytes.
    """

    content: Any
    size: int


class ServiceAdapter(ksa_adapter.Adapter):
    """An adapter of keystoneauth that does not trust the server.

    Redirections are not followed: keystoneauth would send the token to any host.
    """

    def __init__(
        self,
        session: ksa_session.Session,
        name: str,
        counters: Counters | None = None,
        attempts: int = retries.DEFAULT_ATTEMPTS,
        seconds: float = sessions.DEFAULT_REQUEST_TIMEOUT,
        min_rate: int = DEFAULT_MIN_RATE,
        limits: Limits = DEFAULT_LIMITS,
        **place: str | None,
    ) -> None:
        """Make an adapter; no request is sent.

        :param session: the session with the credentials and the TLS options; it is not changed.
        :param name: the service's name in messages.
        :param counters: the counters for requests and downloaded bytes; by default, new ones.
        :param attempts: how often a request is sent at most, if its failures are temporary.
        :param seconds: the time limit for a request together with its retries.
        :param min_rate: the lowest accepted rate of a download, in bytes per second.
        :param limits: the limits for a downloaded archive.
        :param place: where the service is, as parameters of keystoneauth's ``Adapter``.
        """
        # A copy gets the limits, since the caller uses the session for other requests.
        super().__init__(limited_sessions.copied(session), **place)  # type: ignore[arg-type]
        self.name = name
        self._counters = counters or Counters()
        self._attempts = attempts
        self._seconds = seconds
        self._min_rate = min_rate
        self._limits = limits

    def document(self, method: str, path: str, subject: str = "", **arguments: Any) -> Any:
        """Send a request, and return the JSON of the answer.

        :param subject: what the request is for, in the log.
        :param arguments: further arguments for keystoneauth's ``Adapter.request``.
        :returns: the JSON; None if the status of a successful request is not 200 or 201.
        :raises CatalogError: if the request fails, or the answer is not JSON, too large or too
            slow.
        """
        return self._document(method, path, subject, **arguments).content

    def _document(self, method: str, path: str, subject: str = "", **arguments: Any) -> _Document:
        """Send a request, and return the document in the answer, as ``document``."""
        # Without this header, Glance sends the reasons for refusals as HTML.
        headers = {"Accept": _JSON, **arguments.pop("headers", {})}

        def request() -> _Document:
            with self._send(method, path, headers=headers, **arguments) as response:
                if "Warning" in response.headers:
                    warning = _warning(response.headers["Warning"])
                    LOG.warning("%s: %s", self.name, shown(warning))
                return _read(response)

        found: _Document = self._repeated(request, subject or f"{method} {path}", self._seconds)
        return found

    def items(
        self,
        path: str,
        key: str,
        query: Iterable[tuple[str, str]],
        next_marker: Callable[[Mapping[str, Any]], Any],
        after: str | None = None,
    ) -> Iterator[Any]:
        """Yield the items of a list, which the service sends page by page.

        :param key: the key of the list in an answer.
        :param query: the parameters of the request.
        :param next_marker: a function that takes an answer, and returns the marker of the next
            page; None after the last page. It raises ValueError if the answer has a wrong one.
        :param after: a marker: only items after it are listed. By default, all items are listed.
        :raises CatalogError: if the service fails, does not send a list, or sends too long a list.
        """
        filters = urllib.parse.urlencode(list(query))
        marker = "" if after is None else _marker(after)
        size = 0
        for _ in range(_MAX_PAGES):
            page = self._document("GET", f"{path}?{filters}{marker}")
            answer = page.content
            if not isinstance(answer, dict) or not isinstance(answer.get(key), list):
                raise errors.CatalogError(
                    f"{self.name} sent an answer without a list of {key}; {failures.WRONG_SERVICE}"
                )
            size += page.size
            if size > _MAX_LIST:
                raise errors.CatalogError(
                    f"{self.name} sent a list of {key} with more than {_MAX_LIST} bytes; "
                    f"report this to the operator of the service, who can delete unused releases"
                )
            yield from answer[key]
            try:
                last = next_marker(answer)
            except ValueError as error:
                raise errors.CatalogError(
                    f"{self.name} sent a list of {key} with a wrong reference to its next page: "
                    f"{error}; {failures.WRONG_SERVICE}"
                ) from error
            if last is None or not answer[key]:
                return
            marker = _marker(last)
        raise errors.CatalogError(f"{self.name} sent a list of more than {_MAX_PAGES} pages")

    def start(self, path: str, subject: str) -> None:
        """Start an action with ``POST``.

        The request is sent only once, since the action may have started even if the request fails.

        :param subject: what the action is, in the log.
        :raises CatalogError: if the request fails.
        """
        try:
            with self._deadline(self._seconds, subject) as deadline, deadline.applied():
                self._send("POST", path).close()
        except failures.FAILURES as error:
            raise self._failure(error) from error

    def upload(self, path: str, file: IO[bytes], size: int, subject: str) -> Any:
        """Send a file with ``PUT``, and return the JSON of the answer.

        :param size: the file's size, in bytes.
        :param subject: what the request is for, in the log.
        :returns: the JSON; None if the status of a successful request is not 200 or 201.
        :raises CatalogError: if the request fails, or is slower than the lowest rate.
        """
        sent = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        headers = {"Accept": _JSON, **sent}

        def request() -> Any:
            file.seek(0)
            with self._send("PUT", path, data=file, headers=headers) as response:
                return _read(response).content

        return self._repeated(request, subject, _UPLOAD_GRACE + size / self._min_rate)

    def download(self, path: str, label: str) -> Iterator[bytes]:
        """Yield the content of an archive, or of a file in an archive, in pieces.

        :param label: the file's name in messages.
        :raises InvalidArchive: if the file is larger than an archive may be.
        :raises CatalogError: if the download fails.
        """

        def open_at(headers: dict[str, str]) -> requests.Response:
            return self._send("GET", path, headers=headers)

        subject = f"{self.name}: {label}"
        arriving = Download(open_at, self._attempts, self._min_rate, subject)
        try:
            for piece in limited(arriving, self._limits, label):
                self._counters.count(bytes=len(piece))
                yield piece
        except failures.FAILURES as error:
            raise self._failure(error, label) from error

    def stream(
        self, method: str, path: str, label: str, seconds: float, **arguments: Any
    ) -> Generator[bytes]:
        """Send a request without retries, and yield the content of the answer in pieces.

        :param label: the answer's name in messages.
        :param seconds: the time limit for all pieces together.
        :raises CatalogError: if the answer ends too early, or exceeds the time limit.
        """
        try:
            with self._deadline(seconds, label) as deadline:
                with deadline.applied():
                    response = self._send(method, path, **arguments)
                with response:
                    yield from deadline.during(pieces(response))
        except failures.FAILURES as error:
            raise self._failure(error, label) from error

    def authenticated_project(self) -> str | None:
        """Return the id of the session's project; None for a session without a project.

        :raises CatalogError: if the session cannot authenticate.
        """
        get_project_id = _readable()(self.get_project_id)
        project: str | None = self._repeated(get_project_id, "a token", self._seconds)
        return project

    def endpoint(self) -> str | None:
        """Return the URL of the service; None if Keystone's catalogue does not have it.

        :raises CatalogError: if the session cannot authenticate.
        """

        def find() -> str | None:
            # For a missing endpoint, some credentials raise an error, and others return None.
            with contextlib.suppress(ksa_exceptions.CatalogException), _readable():
                found: str | None = self.get_endpoint()
                return found
            return None

        url: str | None = self._repeated(find, "the list of services", self._seconds)
        return url

    def _repeated(self, request: Callable[[], Any], subject: str, seconds: float) -> Any:
        """Call a function that sends a request, and repeat it after temporary failures.

        :param subject: what the request is for, in the log.
        :param seconds: the time limit for all attempts together.
        """
        try:
            with self._deadline(seconds, subject) as deadline:
                request = deadline.applied()(request)
                return retries.retrying(self._attempts, deadline)(request)
        except failures.FAILURES as error:
            raise self._failure(error) from error

    def _deadline(self, seconds: float, subject: str) -> Deadline:
        failure = f"not complete within {seconds:g} seconds"
        return Deadline(seconds, f"{self.name}: {subject}", failure)

    def _failure(self, error: Exception, archives: str = "") -> errors.CatalogError:
        keystone = getattr(self.auth or self.session.auth, "auth_url", None)
        if isinstance(error, ksa_exceptions.CatalogException):
            return errors.CatalogError(
                f"{self.name}: Keystone at {keystone} has no {self.interface or 'public'} endpoint "
                f"of the type {self.service_type} in {self.region_name or 'any region'}: {error}; "
                f"check the region's name, or configure the URL of the service"
            )
        return failures.catalog_error(error, self.name, keystone, archives)

    def _send(self, method: str, path: str, **arguments: Any) -> requests.Response:
        self._counters.count(requests=1)
        # keystoneauth renews a token that the service refuses (401), and repeats the request.
        with _readable():
            response = self.request(path, method, redirect=False, stream=True, **arguments)
        if response.status_code == requests.codes.multiple_choices:
            # Glance answers with this status for paths that it does not have.
            raise ksa_exceptions.NotFound("there is no such path", response=response)
        if response.is_redirect:
            raise failures.UnusableAnswer(
                response,
                f"{response.url} redirects to {shown(response.headers['Location'])}. Redirections "
                f"are not followed, since the token would be sent along; configure the final URL",
            )
        return response


def _marker(marker: Any) -> str:
    return f"&marker={urllib.parse.quote(str(marker), safe='')}"


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """Raise ClientException if a library cannot read an answer in the ``with`` block."""
    try:
        yield
    except failures.FAILURES:
        raise
    except UnicodeEncodeError as error:
        # The message of this error shows the token.
        raise ksa_exceptions.ClientException(failures.WRONG_HEADER) from error
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ksa_exceptions.ClientException(f"the answer cannot be read: {error!r}") from error


def _warning(header: str) -> str:
    """Return the text in a header ``Warning``; return the header itself if it has another form."""
    if found := _WARNING.fullmatch(header):
        with contextlib.suppress(ValueError):
            return str(json.loads(found[1]))
    return header


def _read(response: requests.Response) -> _Document:
    """Return the document in an answer; its content is None if the status is not 200 or 201.

    :raises UnusableAnswer: if the answer is not JSON, too large, or has too many values.
    """
    if response.status_code not in _WITH_DOCUMENT:
        return _Document(None, 0)
    body = limited_sessions.read(response, limited_sessions.MAX_DOCUMENT)
    if excess := _MAX_VALUES.find_excess(body):
        raise failures.UnusableAnswer(response, f"it has {excess}; {failures.WRONG_SERVICE}")
    try:
        return _Document(json.loads(body), len(body))
    except (ValueError, RecursionError) as error:
        # If a proxy loses its server, it may end the answer as if it were complete.
        is_begun = isinstance(error, json.JSONDecodeError) and body.lstrip()[:1] in b"{["
        kind = failures.TruncatedAnswer if is_begun else failures.UnusableAnswer
        raise kind(response, f"it is not JSON ({error}); {failures.WRONG_SERVICE}") from error
