# SPDX-License-Identifier: Apache-2.0

"""A web server on this host, as a source of data or a stand-in for a service."""

import contextlib
import dataclasses
import functools
import http.server
import json
import pathlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def serving(
    data: bytes, status: int = 200, content_type: str = "application/octet-stream"
) -> Iterator[str]:
    """Send the same answer at every path, and yield the server's URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()

        def do_GET(self) -> None:
            self.do_HEAD()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with _running(Handler) as url:
        yield url


@dataclasses.dataclass(frozen=True)
class Paused:
    """A web server that sends half of its data, and then waits.

    :param half: is set when half of the data is sent.
    :param proceed: lets the server send the rest.
    """

    url: str
    half: threading.Event
    proceed: threading.Event


@contextlib.contextmanager
def pausing(data: bytes) -> Iterator[Paused]:
    """Send data in two halves, at every path."""
    half, proceed = threading.Event(), threading.Event()
    middle = len(data) // 2

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()

        def do_GET(self) -> None:
            self.do_HEAD()
            self.wfile.write(data[:middle])
            half.set()
            proceed.wait(60)
            self.wfile.write(data[middle:])

        def log_message(self, *_: object) -> None:
            pass

    with _running(Handler) as url:
        yield Paused(url, half, proceed)


@contextlib.contextmanager
def serving_files(folder: pathlib.Path) -> Iterator[str]:
    """Send the files in a folder, and yield the server's URL, with a slash."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with _running(functools.partial(Handler, directory=str(folder))) as url:
        yield f"{url}/"


@dataclasses.dataclass(frozen=True)
class Request:
    """A received request."""

    method: str
    path: str
    token: str | None
    body: bytes


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer to a request."""

    status: int
    body: object = None
    location: str | None = None


@dataclasses.dataclass(frozen=True)
class Recorder:
    """A web server that keeps its requests."""

    url: str
    requests: list[Request]


@contextlib.contextmanager
def recording(answer: Callable[[Request], Answer]) -> Iterator[Recorder]:
    """Answer each request by a function, with JSON."""
    received: list[Request] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            token = self.headers.get("X-Auth-Token")
            request = Request(self.command, self.path, token, body)
            received.append(request)
            found = answer(request)
            data = json.dumps(found.body).encode()
            self.send_response(found.status)
            if found.location:
                self.send_header("Location", found.location)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _answer  # noqa: N815 - the names that http.server looks for

        def log_message(self, *_: object) -> None:
            pass

    with _running(Handler) as url:
        yield Recorder(url, received)


@contextlib.contextmanager
def _running(handler: Callable[..., http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve requests in a thread, and yield the server's URL."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
