# SPDX-License-Identifier: Apache-2.0

"""A web server on this host, from which Glance is told to fetch data."""

import contextlib
import http.server
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def serving(data: bytes) -> Iterator[str]:
    """Serve the same data at every path, and give the URL of one."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()

        def do_GET(self) -> None:
            self.do_HEAD()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/archive"
        server.shutdown()
