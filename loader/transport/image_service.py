# SPDX-License-Identifier: Apache-2.0

"""A client for Glance: python-glanceclient, which sends its requests through ``ServiceAdapter``.

The library python-glanceclient knows Glance's API. The adapter repeats requests after temporary
failures, limits their time, counts them, follows no redirection, and raises the loader's errors.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, TypeVar

from glanceclient import exc
from glanceclient.v2 import image_members, images, schemas

from glare_murano.package import GlareMuranoError
from loader import errors
from loader.transport.adapter import ServiceAdapter
from loader.transport.failures import WRONG_SERVICE, NoSuchPath

_API = "/v2/"
_DATA = "/file"
_SIZE = "x-openstack-image-size"
_ACCEPTED = "accepted"
# How many images of a list are read at most. A server may send a list without an end.
_MAX_IMAGES = 1_000_000
# The default of Glance's option api_limit_max.
_PAGE = 1000

_Result = TypeVar("_Result")
_Headers = Mapping[str, str | None] | None

# The errors that the library raises for an answer in an unexpected form.
_UNREADABLE = (
    exc.BaseException,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)


@dataclasses.dataclass(frozen=True)
class _Response:
    """A response for the library: its status and headers."""

    status_code: int = 200
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


class ImageService:
    """The images in one Glance.

    Every method raises ``CatalogError`` if Glance does not answer, or sends an answer that cannot
    be read. It raises ``NoSuchPath`` for an image that is missing, or that the user must not see.
    """

    def __init__(self, adapter: ServiceAdapter) -> None:
        """Make a client; no request is sent."""
        self._adapter = adapter
        self._requests = _Requests(adapter)
        self._schemas = schemas.Controller(self._requests)
        self._images = images.Controller(self._requests, self._schemas)
        self._members = image_members.Controller(self._requests, self._schemas)

    def listed(self, filters: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Yield the images that match filters of Glance's API, hidden ones first.

        A page of the list is requested when its first image is needed.
        """
        # A request lists either only hidden images, or only images that are not hidden.
        for hidden in ("true", "false"):
            yield from self._listed({**filters, "os_hidden": hidden})

    def _listed(self, filters: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        found = self._images.list(filters=dict(filters), page_size=_PAGE)
        for _ in range(_MAX_IMAGES):
            image = self._called(lambda: next(found, None))
            if image is None:
                return
            yield dict(image)
        raise errors.CatalogError(
            f"{self._adapter.name} sent a list of more than {_MAX_IMAGES} images"
        )

    def get(self, image_id: str) -> dict[str, Any]:
        """Return an image."""
        return self._called(lambda: dict(self._images.get(image_id)))

    def create(self, **attributes: Any) -> dict[str, Any]:
        """Create an image without data.

        :param attributes: the attributes and properties of the image.
        """
        return self._called(lambda: dict(self._images.create(**attributes)))

    def stage(self, image_id: str, data: IO[bytes], size: int, label: str) -> None:
        """Send data to the staging area of an image.

        :param data: a file, which can be read again from its beginning.
        :param size: the size of the data, in bytes.
        :param label: the name of the data, in the log.
        """
        controller = images.Controller(_Requests(self._adapter, label), self._schemas)
        self._called(lambda: controller.stage(image_id, data, image_size=size))

    def start_import(self, image_id: str) -> None:
        """Let Glance begin to import the staged data of an image."""
        self._called(lambda: self._images.image_import(image_id, method="glance-direct"))

    def update(
        self, image_id: str, properties: Mapping[str, str], headers: Mapping[str, str]
    ) -> dict[str, Any]:
        """Change properties of an image, and return the image.

        :param headers: further headers for the request.
        """
        requests = _Requests(self._adapter, headers=headers)
        controller = images.Controller(requests, self._schemas)
        return self._called(lambda: dict(controller.update(image_id, **properties)))

    def deactivate(self, image_id: str) -> None:
        """Deactivate an image, so that it cannot be downloaded."""
        self._called(lambda: self._images.deactivate(image_id))

    def reactivate(self, image_id: str) -> None:
        """Reactivate a deactivated image, so that it can be downloaded again."""
        self._called(lambda: self._images.reactivate(image_id))

    def delete(self, image_id: str) -> None:
        """Delete an image."""
        self._called(lambda: self._images.delete(image_id))

    def is_member(self, image_id: str, project_id: str) -> bool:
        """Return whether an image is shared with a project, and the project has accepted it."""
        try:
            status = self._called(lambda: self._members.get(image_id, project_id)["status"])
            return bool(status == _ACCEPTED)
        except NoSuchPath:
            return False

    def data(self, image_id: str, label: str) -> Iterator[bytes]:
        """Yield the data of an image in pieces, and then check Glance's hash of the data.

        :param label: the name of the data in messages.
        :raises DigestMismatch: after the last piece, if the data has another hash.
        """
        controller = images.Controller(_Requests(self._adapter, label), self._schemas)
        pieces = self._called(lambda: iter(controller.data(image_id)))
        with contextlib.closing(pieces):
            while piece := self._piece(pieces, label):
                yield piece

    def _piece(self, pieces: Iterator[bytes], label: str) -> bytes:
        try:
            return self._called(lambda: next(pieces, b""))
        except OSError as error:
            raise errors.DigestMismatch(
                f"{self._adapter.name} sent {label} with another hash than it states: {error}; "
                f"try again"
            ) from error

    def _called(self, function: Callable[[], _Result]) -> _Result:
        """Call a function of glanceclient.

        :raises CatalogError: if glanceclient cannot read Glance's answer.
        """
        try:
            return function()
        except GlareMuranoError:
            raise
        except _UNREADABLE as error:
            raise errors.CatalogError(
                f"{self._adapter.name} sent an answer that cannot be read: {error!r}; "
                f"{WRONG_SERVICE}"
            ) from error


class _Requests:
    """The HTTP client with which glanceclient's controllers send requests through our adapter."""

    def __init__(
        self,
        adapter: ServiceAdapter,
        label: str = "an image",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._adapter = adapter
        self._label = label
        self._headers = headers or {}

    def get(
        self, url: str, headers: Mapping[str, str | None] | None = None
    ) -> tuple[_Response, Any]:
        if not url.startswith(_API):
            # Glance sends the URL of a list's next page. A URL of another host would get the token.
            raise errors.CatalogError(
                f"{self._adapter.name} refers to {url[:80]!r}, which is not a path of its API"
            )
        if url.endswith(_DATA):
            return _Response(), self._adapter.download(url, self._label)
        answer, body = self._send("GET", url, headers)
        if isinstance(body, dict) and not body.get("images", True):
            # An empty page is the last one, even if it names a next page.
            body.pop("next", None)
        return answer, body

    def put(self, url: str, headers: Mapping[str, str], data: IO[bytes]) -> tuple[_Response, Any]:
        size = int(headers[_SIZE])
        return _Response(), self._adapter.upload(url, data, size, self._label)

    def post(
        self, url: str, headers: _Headers = None, data: object = None
    ) -> tuple[_Response, Any]:
        return self._send("POST", url, headers, **({} if data is None else {"json": data}))

    def patch(
        self, url: str, headers: _Headers = None, data: object = None
    ) -> tuple[_Response, Any]:
        return self._send("PATCH", url, headers, data=data)

    def delete(self, url: str) -> tuple[_Response, Any]:
        return self._send("DELETE", url, None)

    def _send(
        self, method: str, url: str, headers: _Headers, **content: Any
    ) -> tuple[_Response, Any]:
        # The library passes the id of an earlier request, which may be None.
        sent = {name: value for name, value in (headers or {}).items() if value}
        sent.update(self._headers)
        return _Response(), self._adapter.document(method, url, headers=sent, **content)
