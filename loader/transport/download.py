# SPDX-License-Identifier: Apache-2.0

"""Download large files in pieces, and continue after a connection is lost."""

import contextlib
from collections.abc import Callable, Iterable, Iterator

import requests
import urllib3
from keystoneauth1 import exceptions as ksa_exceptions

from loader.transport import retries
from loader.transport.deadlines import Deadline

DEFAULT_MIN_RATE = 10 * 1024

_CHUNK = 128 * 1024
# How many seconds a download may be slower than the lowest rate. This is longer than the usual
# timeout of a socket. So a lost connection is noticed and replaced before the download fails.
_GRACE = 120


class Download:
    """A download of a file in pieces, which may need several connections.

    After a lost connection, only the rest of the file is requested (``Range``). A server that does
    not support this sends the whole file again; then the bytes that were received before are
    skipped. The caller has to check the digest of the whole file.
    """

    def __init__(
        self,
        open_at: Callable[[dict[str, str]], requests.Response],
        attempts: int,
        min_rate: int,
        subject: str,
    ) -> None:
        """Prepare a download; the first request is sent for the first piece.

        :param open_at: a function that takes headers, and sends a request for the file with them.
        :param attempts: how many attempts in a row may bring no new piece.
        :param min_rate: the lowest accepted rate, in bytes per second. The deadline moves by the
            time that the received bytes may take at this rate, but never to more than two minutes
            from now.
        :param subject: the file, in the log.
        """
        self._open_at = open_at
        self._min_rate = min_rate
        failure = f"slower than {min_rate} bytes per second for {_GRACE} seconds"
        self._deadline = Deadline(_GRACE, subject, failure)
        self._retrying = retries.retrying(attempts, self._deadline)
        self._response: requests.Response | None = None
        self._pieces: Iterator[bytes] = iter(())
        self._offset = 0
        self._etag = ""

    def __iter__(self) -> Iterator[bytes]:
        """Yield the content of the file in pieces.

        :raises ClientException: if the server cannot continue at the same place.
        """
        try:
            with self._deadline:
                while piece := self._retrying(self._read):
                    self._offset += len(piece)
                    self._deadline.extend(len(piece) / self._min_rate)
                    with self._deadline.paused():
                        yield piece
        finally:
            self._close()

    def _read(self) -> bytes:
        """Return the next piece; an empty one at the end of the file."""
        try:
            with self._deadline.applied():
                if self._response is None:
                    self._response = self._open_at(self._headers())
                    self._pieces = self._rest(self._response)
                return next(self._pieces, b"")
        except Exception as error:
            self._close()
            if self._is_complete(error):
                return b""
            raise

    def _headers(self) -> dict[str, str]:
        # In a compressed body, offsets would be different.
        headers = {"Accept-Encoding": "identity"}
        if self._offset:
            headers["Range"] = f"bytes={self._offset}-"
            if self._etag and not self._etag.startswith("W/"):
                headers["If-Range"] = self._etag
        return headers

    def _rest(self, response: requests.Response) -> Iterator[bytes]:
        """Return the content of an answer in pieces, without the bytes that arrived before."""
        etag = response.headers.get("ETag", "")
        if self._etag not in ("", etag):
            raise ksa_exceptions.ClientException(
                "the file was replaced during the download; try again"
            )
        self._etag = etag
        if response.status_code != requests.codes.partial_content:
            return _skip(self._offset, pieces(response))
        place = response.headers.get("Content-Range", "")
        if not place.startswith(f"bytes {self._offset}-"):
            raise ksa_exceptions.ClientException(
                f"the bytes from {self._offset} on were requested, but the server sent "
                f"Content-Range {place[:80]!r}"
            )
        return pieces(response)

    def _is_complete(self, error: Exception) -> bool:
        """Return whether an error means that the file has no further bytes.

        This is so if the server refuses a range that begins at the end of the file (RFC 9110,
        15.5.17).
        """
        if not isinstance(error, ksa_exceptions.RequestedRangeNotSatisfiable):
            return False
        headers = error.response.headers if error.response is not None else {}
        return headers.get("Content-Range") == f"bytes */{self._offset}"

    def _close(self) -> None:
        if self._response is not None:
            with contextlib.suppress(Exception):
                self._response.close()
        self._response = None


def _skip(offset: int, arriving: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes that follow an offset.

    :raises ClientException: if the content ends before the offset.
    """
    position = 0
    for piece in arriving:
        rest = piece[max(offset - position, 0) :]
        position += len(piece)
        if rest:
            yield rest
    if position < offset:
        raise ksa_exceptions.ClientException(
            f"{offset} bytes were received, but the file now has {position} only"
        )


def pieces(response: requests.Response) -> Iterator[bytes]:
    """Yield the content of a streamed answer in pieces, as soon as they arrive.

    :raises RequestException: if the connection is lost.
    """
    if getattr(response, "_content_consumed", False):
        # keystoneauth has already read the answer, for a detailed log.
        yield from response.iter_content(_CHUNK)
        return
    try:
        # iter_content would wait until a whole piece has arrived.
        while piece := response.raw.read1(_CHUNK, decode_content=True):
            yield piece
    except urllib3.exceptions.DecodeError as error:
        raise requests.exceptions.ContentDecodingError(error) from error
    except urllib3.exceptions.HTTPError as error:
        raise requests.exceptions.ChunkedEncodingError(error) from error
