# SPDX-License-Identifier: Apache-2.0

"""A server that fails in ways that the real Glare and Murano cannot be made to.

It answers as Glare, as Murano's API and as the Keystone whose tokens it demands. It
has one package and a list of faults; each request but those to Keystone takes the
first fault. When none is left, the server answers as it should.
"""

import contextlib
import dataclasses
import hashlib
import http.server
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping

from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint

from glare_murano.package import Version
from glare_murano.wire import Release

PROJECT = "project"
STALL = 3.0

_IDENTITY = "/v3/auth/tokens"
_MURANO_LIST = "/v1/catalog/packages?"


@dataclasses.dataclass
class Faulty:
    """The server's state, which a test sets and reads.

    :param faults: what goes wrong, in this order.
    :param identity_faults: what goes wrong when a token is asked for, in this order.
    :param ranges: whether a download goes on where the client says.
    :param tag: the archive's ETag; empty if states are not told apart.
    :param tokens: the tokens that are valid; None if any is.
    :param seen: method, path and the header ``Range`` of each request.
    :param headers: all headers of the last one.
    :param connections: how many connections were opened.
    """

    archive: bytes
    url: str = ""
    faults: "list[Callable[[Handler], None]]" = dataclasses.field(default_factory=list)
    identity_faults: "list[Callable[[Handler], None]]" = dataclasses.field(default_factory=list)
    ranges: bool = False
    tag: str = ""
    tokens: set[str] | None = None
    seen: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    issued: int = 0
    connections: int = 0

    @property
    def release(self) -> Release:
        return Release(
            fqn="org.faulty",
            version=Version("1.0.0"),
            requirements={},
            classes=frozenset(),
            id="0",
            digest=hashlib.sha256(self.archive).hexdigest(),
            size=len(self.archive),
        )


class Session(ksa_session.Session):
    """A session that is patient, except with a request that the next fault leaves silent."""

    def __init__(self, state: Faulty) -> None:
        self._state = state
        super().__init__(token_endpoint.Token(state.url, "token"))

    @property
    def timeout(self) -> float:
        is_silent = bool(self._state.faults) and self._state.faults[0] in (hang, stall)
        return 0.1 if is_silent else 30

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers for a ``Faulty``."""

    protocol_version = "HTTP/1.1"
    state: Faulty
    answer: Callable[[], None]

    def setup(self) -> None:
        super().setup()
        self.state.connections += 1

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == _IDENTITY:
            self.answer = self._issue
            faults = self.state.identity_faults
            (faults.pop(0) if faults else nothing)(self)
            return
        self._checked(lambda: self._answer(json.dumps(self._closure(body)).encode()))

    def do_GET(self) -> None:
        if self.path.startswith("/v3"):
            version = {
                "id": "v3.14",
                "status": "stable",
                "links": [{"rel": "self", "href": self._v3}],
            }
            self._answer(json.dumps({"version": version}).encode())
            return
        self._checked(self._list if self.path.startswith(_MURANO_LIST) else self._download)

    @property
    def _v3(self) -> str:
        return f"{self.state.url}/v3/"

    def _checked(self, answer: Callable[[], None]) -> None:
        state = self.state
        state.seen.append((self.command, self.path, self.headers.get("Range", "")))
        state.headers = dict(self.headers)
        if state.tokens is not None and self.headers["X-Auth-Token"] not in state.tokens:
            self.refuse(401)
        elif state.faults:
            self.answer = answer
            state.faults.pop(0)(self)
        else:
            answer()

    def _issue(self) -> None:
        self.state.issued += 1
        token = f"token{self.state.issued}"
        if self.state.tokens is not None:
            self.state.tokens = {token}
        content = {
            "token": {
                "methods": ["password"],
                "expires_at": "2999-01-01T00:00:00.000000Z",
                "issued_at": "2020-01-01T00:00:00.000000Z",
                "project": {"id": PROJECT, "name": PROJECT, "domain": {"id": "d", "name": "d"}},
                "user": {"id": "u", "name": "u", "domain": {"id": "d", "name": "d"}},
                "roles": [],
                "catalog": [],
            }
        }
        self._answer(json.dumps(content).encode(), {"X-Subject-Token": token}, 201)

    def _closure(self, body: bytes) -> object:
        release = self.state.release
        root = {"name": release.fqn, "range": json.loads(body)["requirements"][release.fqn]}
        return {
            "releases": [
                {
                    "id": release.id,
                    "name": release.fqn,
                    "version": str(release.version),
                    "owner": PROJECT,
                    "visibility": "private",
                    "requirements": {},
                    "class_definitions": [],
                    "sha256": release.digest,
                    "size": release.size,
                    "required_by": [{**root, "requirer": None}],
                }
            ],
            "unsatisfied": [],
            "undefined": [],
        }

    def _list(self) -> None:
        package = {"id": self.state.release.id, "owner_id": PROJECT, "is_public": False}
        self._answer(json.dumps({"packages": [package]}).encode())

    def _download(self) -> None:
        archive = self.state.archive
        tag = {"ETag": self.state.tag} if self.state.tag else {}
        first = self.headers.get("Range", "").removeprefix("bytes=").removesuffix("-")
        is_same = self.headers.get("If-Range", self.state.tag) == self.state.tag
        if not self.state.ranges or not is_same or not first:
            self._answer(archive, tag)
            return
        if int(first) >= len(archive):
            self._answer(b"", {"Content-Range": f"bytes */{len(archive)}"}, 416)
        else:
            self.send_part(int(first), archive[int(first) :], **tag)

    def _answer(
        self, body: bytes, headers: dict[str, str] | None = None, status: int = 200
    ) -> None:
        self.send_response_only(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status: int, **headers: str) -> None:
        """Send an error without the archive."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        self._answer(b'{"error": {"message": "a fault"}}', names, status)

    def send_part(self, start: int, body: bytes, **headers: str) -> None:
        """Send a part of the archive, or anything under its headers."""
        place = f"bytes {start}-{start + len(body) - 1}/{len(self.state.archive)}"
        self._answer(body, {"Content-Range": place, **headers}, 206)

    def send_then_end(self, body: bytes, **headers: str) -> None:
        """Send some headers and the beginning of a body, and close the connection."""
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
        self.close_connection = True

    def send_half(self) -> None:
        """Send half of the archive under the length of the whole."""
        archive = self.state.archive
        tag = {"ETag": self.state.tag} if self.state.tag else {}
        half = archive[: len(archive) // 2]
        self.send_then_end(half, Content_Length=str(len(archive)), **tag)

    def send_chunks(self, size: int) -> None:
        """Send bytes of the archive in chunks, without the last chunk."""
        archive = self.state.archive
        chunks = [archive[start : start + 4096] for start in range(0, size, 4096)]
        body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
        self.send_then_end(body, Transfer_Encoding="chunked")

    def send_other(self, body: bytes, **headers: str) -> None:
        """Send something else in place of the archive."""
        self._answer(body, {name.replace("_", "-"): value for name, value in headers.items()})


def understate(handler: Handler) -> None:
    """Say that the archive is shorter than it is."""
    archive = handler.state.archive
    handler.send_then_end(archive, Content_Length=str(len(archive) // 2))


def overstate(handler: Handler) -> None:
    """Say that the archive is longer than it is."""
    archive = handler.state.archive
    handler.send_then_end(archive, Content_Length=str(len(archive) + 1000))


def cut_chunks(handler: Handler) -> None:
    """End between two chunks."""
    handler.send_chunks(len(handler.state.archive) // 2)


def cut_last_chunk(handler: Handler) -> None:
    """Send all chunks but the empty one, which says that these are all."""
    handler.send_chunks(len(handler.state.archive))


def break_chunk(handler: Handler) -> None:
    """End within a chunk."""
    body = b"%x\r\n%b" % (len(handler.state.archive), handler.state.archive[:100_000])
    handler.send_then_end(body, Transfer_Encoding="chunked")


def go_on_elsewhere(handler: Handler) -> None:
    """Send the beginning of the archive in place of the requested end."""
    handler.send_part(0, handler.state.archive)


def replaced_by(archive: bytes, tag: str = "") -> Callable[[Handler], None]:
    """Have the archive replaced in the middle of a download that breaks off."""

    def replace(handler: Handler) -> None:
        handler.send_half()
        handler.state.archive, handler.state.tag = archive, tag

    return replace


def _wait() -> None:
    # Not by time.sleep, which tests of waits replace for the whole process.
    threading.Event().wait(STALL)


def nothing(handler: Handler) -> None:
    """Answer as one should."""
    handler.answer()


def drip(handler: Handler) -> None:
    """Send the archive slowly, and to its end."""
    archive = handler.state.archive
    handler.send_then_end(b"", Content_Length=str(len(archive)))
    size = len(archive) // 50
    for start in range(0, len(archive), size):
        handler.wfile.write(archive[start : start + size])
        threading.Event().wait(0.002)


def trickle(handler: Handler) -> None:
    """Send byte after byte, in time each, but no end for long."""
    handler.send_then_end(b"", Content_Length="1000000")
    _trickle(handler)


def trickle_chunk(handler: Handler) -> None:
    """Send byte after byte of one chunk, in time each, but no end for long."""
    handler.send_then_end(b"F4240\r\n", Transfer_Encoding="chunked")
    _trickle(handler)


def trickle_trailers(handler: Handler) -> None:
    """Send the whole archive in chunks, and then trailers without an end."""
    body = handler.state.archive
    handler.send_then_end(b"%x\r\n%b\r\n0\r\n" % (len(body), body), Transfer_Encoding="chunked")
    _trickle(handler, b"X: x\r\n")


def trickle_headers(handler: Handler) -> None:
    """Send byte after byte of headers, in time each, but no end for long."""
    handler.close_connection = True
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    _trickle(handler)


def _trickle(handler: Handler, piece: bytes = b" ") -> None:
    with contextlib.suppress(OSError):
        for _ in range(int(STALL / 0.02)):
            handler.wfile.write(piece)
            handler.wfile.flush()
            threading.Event().wait(0.02)


def truncate(handler: Handler) -> None:
    """End in the middle."""
    handler.send_half()


def reset(handler: Handler) -> None:
    """Reset the connection in the middle."""
    handler.send_half()
    # An end without lingering is a reset.
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def stall(handler: Handler) -> None:
    """Say nothing more in the middle, for longer than a client waits."""
    handler.send_half()
    _wait()


def hang(handler: Handler) -> None:
    """Say nothing at all, for longer than a client waits."""
    _wait()
    handler.close_connection = True


def drop(handler: Handler) -> None:
    """End before any answer."""
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def status(code: int, **headers: str) -> Callable[[Handler], None]:
    """Answer with a status and headers (with underscores for dashes)."""
    return lambda handler: handler.refuse(code, **headers)


def flip(handler: Handler) -> None:
    """Send the archive with one byte changed."""
    archive = bytearray(handler.state.archive)
    archive[len(archive) // 2] ^= 1
    handler.send_other(bytes(archive))


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Nothing: clients that hang up are part of the tests."""


@contextlib.contextmanager
def serving(archive: bytes) -> Iterator[Faulty]:
    """A server on loopback, and its state."""
    state = Faulty(archive)
    handler = type("BoundHandler", (Handler,), {"state": state})
    with _Server(("127.0.0.1", 0), handler) as server:
        state.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield state
        server.shutdown()
        thread.join()
