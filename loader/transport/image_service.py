# SPDX-License-Identifier: Apache-2.0

"""Glance by python-glanceclient, which sends its requests through our adapter.

The library knows Glance's API. The adapter gives each request its retries, deadline and
counters, follows no redirection, and raises the loader's errors.
"""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from glanceclient import exc
from glanceclient.v2 import image_members, images, schemas

from loader import errors
from loader.transport.adapter import ServiceAdapter
from loader.transport.failures import WRONG_SERVICE, NoSuchPath

_API = "/v2/"
_DATA = "/file"
_ACCEPTED = "accepted"
# Of one list. A server may send lists without an end.
_MAX_IMAGES = 1_000_000
# Glance's default of api_limit_max.
_PAGE = 1000

# Raised by the library for an answer of another form.
_UNREADABLE = (
    exc.BaseException,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)


@dataclasses.dataclass(frozen=True)
class _Answer:
    """What the library reads of an answer, beside its body."""

    status_code: int = 200
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


class ImageService:
    """The images of a Glance.

    Every method raises ``CatalogError`` if Glance does not answer, or with something else than
    images; and ``NoSuchPath`` for an image that does not exist, or is not visible.
    """

    def __init__(self, adapter: ServiceAdapter) -> None:
        """Make a client; no request is sent."""
        self._adapter = adapter
        self._requests = _Requests(adapter)
        self._schemas = schemas.Controller(self._requests)
        self._images = images.Controller(self._requests, self._schemas)
        self._members = image_members.Controller(self._requests, self._schemas)

    def listed(self, filters: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Yield the images that match filters of Glance's API; pages are requested as needed."""
        found = self._images.list(filters=dict(filters), page_size=_PAGE)
        for _ in range(_MAX_IMAGES):
            with self._readable():
                image = next(found, None)
            if image is None:
                return
            yield dict(image)
        raise errors.CatalogError(
            f"{self._adapter.name} sent a list of more than {_MAX_IMAGES} images"
        )

    def is_member(self, image_id: str, project_id: str) -> bool:
        """Check whether an image is shared with a project, and accepted by it."""
        try:
            with self._readable():
                member = self._members.get(image_id, project_id)
                return bool(member["status"] == _ACCEPTED)
        except NoSuchPath:
            return False

    def data(self, image_id: str, label: str) -> Iterator[bytes]:
        """Yield the data of an image, piece by piece, and check Glance's hash of it.

        :param label: the data's name in messages.
        :raises DigestMismatch: at the end, if Glance has another hash of the image.
        """
        controller = images.Controller(_Requests(self._adapter, label), self._schemas)
        with self._readable():
            pieces = iter(controller.data(image_id))
        with contextlib.closing(pieces):
            while piece := self._piece(pieces, label):
                yield piece

    def _piece(self, pieces: Iterator[bytes], label: str) -> bytes:
        try:
            with self._readable():
                return next(pieces, b"")
        except OSError as error:
            raise errors.DigestMismatch(
                f"{self._adapter.name} sent {label} with another hash than it states: {error}; "
                f"try again"
            ) from error

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except errors.LoaderError:
            raise
        except _UNREADABLE as error:
            raise errors.CatalogError(
                f"{self._adapter.name} sent an answer that cannot be read: {error!r}; "
                f"{WRONG_SERVICE}"
            ) from error


class _Requests:
    """The HTTP client of the library's controllers."""

    def __init__(self, adapter: ServiceAdapter, label: str = "an image") -> None:
        self._adapter = adapter
        self._label = label

    def get(self, url: str, headers: Mapping[str, str | None] | None = None) -> tuple[_Answer, Any]:
        if not url.startswith(_API):
            # The next page of a list: the token would be sent anywhere.
            raise errors.CatalogError(
                f"{self._adapter.name} refers to {url[:80]!r}, which is not a path of its API"
            )
        if url.endswith(_DATA):
            return _Answer(), self._adapter.download(url, self._label)
        answer, body = self._send("GET", url, headers or {})
        if isinstance(body, dict) and not body.get("images", True):
            # An empty page is the last one.
            body.pop("next", None)
        return answer, body

    def _send(
        self, method: str, url: str, headers: Mapping[str, str | None]
    ) -> tuple[_Answer, Any]:
        # The library passes the id of an earlier request, which may be None.
        sent = {name: value for name, value in headers.items() if value}
        return _Answer(), self._adapter.document(method, url, headers=sent)
