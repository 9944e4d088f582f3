# SPDX-License-Identifier: Apache-2.0

"""Show the pages of packages that their author is writing, on this host alone.

The directories are searched for changes every second. After a change, the pages are rendered again,
with what ``package check`` finds in each package.
"""

import contextlib
import functools
import http
import http.server
import os
import pathlib
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from loader import errors
from loader.authoring import checking
from loader.site import rendering, sources
from loader.site.sources import Entry, Unreadable

_HOST = "127.0.0.1"
_SECONDS = 1.0


class Drafts(sources.Local):
    """The packages below directories, with the findings of a check in each entry.

    :param places: the directories.
    """

    def __init__(self, places: Sequence[str]) -> None:
        super().__init__(places)
        self._checked: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def entries(self) -> Iterator[Entry | Unreadable]:
        """Yield all packages; one that has not changed is not checked again."""
        checked = {}
        for entry in super().entries():
            if isinstance(entry, Entry):
                key = (entry.place, entry.stamp)
                found = self._checked[key] if key in self._checked else _check(entry.place)
                checked[key] = found
                entry.listed["findings"] = found
            yield entry
        self._checked = checked


def serve(
    places: Sequence[str],
    port: int,
    report: Callable[[str, rendering.Report], None],
    stop: threading.Event | None = None,
) -> None:
    """Show packages until the process is interrupted.

    :param places: the directories with the packages.
    :param port: the port on loopback; 0 takes any free port.
    :param report: a function that is called after each rendering, with the URL of the first page.
    :param stop: an event that ends the function as well.
    :raises LoaderError: if the port is not free.
    :raises OSError: if a directory cannot be read.
    """
    stop = stop or threading.Event()
    source = Drafts(places)
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder, "catalogue")
        before = _stamp(places)
        found = rendering.render(source, target)
        with _server(target, port) as server:
            url = f"http://{_HOST}:{server.server_port}/"
            while True:
                report(url, found)
                while (after := _stamp(places)) == before:
                    if stop.wait(_SECONDS):
                        return
                before = after
                found = rendering.render(source, target)


class _Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        # Another site could have its name lead to this host.
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        if host in (_HOST, "localhost"):
            super().do_GET()
        else:
            self.send_error(http.HTTPStatus.FORBIDDEN)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def _server(folder: pathlib.Path, port: int) -> Iterator[http.server.ThreadingHTTPServer]:
    handler = functools.partial(_Handler, directory=str(folder))
    try:
        server = http.server.ThreadingHTTPServer((_HOST, port), handler)
    except OSError as error:
        raise errors.LoaderError(
            f"port {port} cannot be used: {error.strerror}; choose another one with --port"
        ) from error
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _check(place: str) -> list[dict[str, Any]]:
    """Return the findings in a package, as JSON."""
    return [
        {
            "level": str(each.level),
            "file": os.path.relpath(each.path, place),
            "line": each.line,
            "message": each.message,
            "rule": str(each.rule),
        }
        for each in checking.check(pathlib.Path(place))
    ]


def _stamp(places: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return what changes if a file below the directories changes."""
    found = []
    for place in places:
        for folder, folders, names in os.walk(place):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                path = os.path.join(folder, name)
                with contextlib.suppress(FileNotFoundError):
                    status = os.stat(path)
                    found.append((path, status.st_mtime_ns, status.st_size))
    return found
