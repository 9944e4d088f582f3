# SPDX-License-Identifier: Apache-2.0

"""The pages of packages that their author is writing."""

import http.client
import pathlib
import queue
import threading
import urllib.parse
from collections.abc import Iterator

import pytest

from loader import errors
from loader.site import paths, preview, rendering
from tests import packages

PAGE = f"/{paths.release('org.db', 'latest')}"
CLASS = f"/{paths.class_page('org.db', 'latest', 'org.db.Thing')}"


@pytest.fixture
def package(tmp_path: pathlib.Path) -> pathlib.Path:
    """The directory of a package."""
    folder = tmp_path / "packages" / "org.db"
    return packages.write(folder, packages.content("org.db"))


@pytest.fixture
def reports(package: pathlib.Path) -> Iterator["queue.Queue[tuple[str, rendering.Report]]"]:
    """The reports of a preview of the package, which ends after the test."""
    found: queue.Queue[tuple[str, rendering.Report]] = queue.Queue()
    stop = threading.Event()

    def report(url: str, done: rendering.Report) -> None:
        found.put((url, done))

    arguments = ([str(package.parent)], 0, report, stop)
    thread = threading.Thread(target=preview.serve, args=arguments)
    thread.start()
    yield found
    stop.set()
    thread.join()


def _get(url: str, path: str, host: str = "", method: str = "GET") -> tuple[int, str]:
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=10)
    connection.request(method, path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_a_change_is_on_the_page_with_its_finding(
    package: pathlib.Path, reports: "queue.Queue[tuple[str, rendering.Report]]"
) -> None:
    url, report = reports.get(timeout=20)
    assert report.packages == 1
    assert "Findings" not in _get(url, PAGE)[1]

    code = "Name: org.db.Thing\nProperties:\n  size:\n    Contract: $.int(\n"
    (package / "Classes" / "Thing.yaml").write_text(code)
    same, report = reports.get(timeout=20)
    assert (same, report.written) == (url, 1)
    for page in (PAGE, CLASS):
        status, text = _get(url, page)
        assert status == 200
        assert "Classes/Thing.yaml, line 4: " in text
        assert "<code>expression-invalid</code>" in text

    (package / "manifest.yaml").write_text("Version: [")
    _, report = reports.get(timeout=20)
    assert len(report.unreadable) == 1


def test_only_this_host_gets_the_pages(
    reports: "queue.Queue[tuple[str, rendering.Report]]",
) -> None:
    url, _ = reports.get(timeout=20)
    port = urllib.parse.urlsplit(url).port
    assert _get(url, "/", f"localhost:{port}")[0] == 200
    assert _get(url, "/", f"packages.example.org:{port}")[0] == 403
    assert _get(url, "/", f"packages.example.org:{port}", "HEAD")[0] == 403
    assert _get(url, "/../../etc/passwd")[0] == 404


def test_a_port_in_use_is_an_error(
    package: pathlib.Path, reports: "queue.Queue[tuple[str, rendering.Report]]"
) -> None:
    url, _ = reports.get(timeout=20)
    port = urllib.parse.urlsplit(url).port
    assert port is not None
    with pytest.raises(errors.LoaderError, match="choose another one with --port"):
        preview.serve([str(package.parent)], port, lambda *_: None)
