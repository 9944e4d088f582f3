# SPDX-License-Identifier: Apache-2.0

"""What the tests of all hosts use."""

import http.server
import threading
from collections.abc import Iterator

import pytest


class _Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(http.HTTPStatus.OK)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Keep the output of the tests short."""


@pytest.fixture(scope="session")
def service_port() -> Iterator[str]:
    """The port of a service that runs, for which DevStack waits."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield str(server.server_port)
        server.shutdown()
