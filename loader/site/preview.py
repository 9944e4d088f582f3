# SPDX-License-Identifier: Apache-2.0

"""Show an author the pages of unfinished packages, with a web server for this host only.

The directories of the packages are searched for changes every second. After a change, the pages are
rendered again. They also show what ``package check`` finds in each package.
"""

import contextlib
import functools
import http
import http.server
import io
import os
import pathlib
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

from loader import errors
from loader.authoring import checking
from loader.site import rendering, sources
from loader.site.sources import Entry, Unreadable

_HOST = "127.0.0.1"
_SECONDS = 1.0


class Drafts(sources.Local):
    """The packages in directories, each with the findings of ``package check``.

    :param places: the directories, which are searched recursively.
    """

    def __init__(self, places: Sequence[str]) -> None:
        super().__init__(places)
        self._checked: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def entries(self) -> Iterator[Entry | Unreadable]:
        """Yield all packages. A package is checked again only if it has changed."""
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
    """Serve the pages of packages until the process is interrupted.

    :param places: the directories with the packages.
    :param port: the port on the loopback interface; 0 for any free port.
    :param report: a function that is called after each rendering, with the URL of the first page
        and the result of the rendering.
    :param stop: an event that also ends this function when it is set.
    :raises LoaderError: if the port cannot be used.
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
    def send_head(self) -> io.BytesIO | BinaryIO | None:
        # Another site could have its name lead to this host.
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        if host in (_HOST, "localhost"):
            return super().send_head()
        self.send_error(http.HTTPStatus.FORBIDDEN)
        return None

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
    """Check a package, and return the findings as JSON.

    :param place: the path of the package.
    """
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
    """Return the path, the time of the last change and the size of each file in directories.

    If a file changes, so does the result. Hidden directories are skipped.
    """
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
