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

"""A web server of static files, with ranges and without, and with faults."""

import contextlib
import functools
import hashlib
import http.server
import pathlib
import re
import threading
from collections.abc import Callable
from collections.abc import Iterator

_RANGE = re.compile(r"bytes=(\d*)-(\d*)\Z")


class Files(http.server.SimpleHTTPRequestHandler):
    """Python's own server of files: ``Last-Modified``, and no ranges."""

    server: "Server"

    def do_GET(self) -> None:
        self.server.requests.append((self.path, dict(self.headers)))
        if not (self.server.fault and self.server.fault(self)):
            self.serve()

    def serve(self) -> None:
        super().do_GET()

    def copyfile(self, source: object, outputfile: object) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            super().copyfile(source, self)  # type: ignore[type-var, arg-type]

    def write(self, data: bytes) -> int:
        self.server.sent += len(data)
        return self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing: the server remembers its requests."""


class Ranges(Files):
    """The same with ETags and ranges."""

    def serve(self) -> None:
        path = pathlib.Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
        if self.headers["If-None-Match"] == tag:
            self.answer(304, b"", ETag=tag)
            return
        wanted = _RANGE.match(self.headers["Range"] or "")
        if not wanted:
            self.answer(200, data, ETag=tag)
            return
        first, last = wanted.groups()
        start = int(first) if first else max(len(data) - int(last), 0)
        end = min(int(last) + 1, len(data)) if first and last else len(data)
        described = {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}
        self.answer(206, data[start:end], ETag=tag, **described)

    def answer(self, status: int, data: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.write(data)


class Server(http.server.ThreadingHTTPServer):
    """A running server.

    :ivar requests: path and headers of each request.
    :ivar sent: bytes of files.
    :ivar fault: what answers a request in the place of the server; what
        returns false leaves it to the server.
    """

    daemon_threads = True

    def __init__(self, handler: type[Files], folder: pathlib.Path) -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.sent = 0
        self.fault: Callable[[Files], object] | None = None
        super().__init__(("127.0.0.1", 0), functools.partial(handler, directory=str(folder)))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def paths(self) -> list[str]:
        """The paths that have been asked for since this was asked the last time."""
        found = [path for path, _ in self.requests]
        self.requests.clear()
        return found


@contextlib.contextmanager
def serving(handler: type[Files], folder: pathlib.Path) -> Iterator[Server]:
    """Run a server."""
    with Server(handler, folder) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
