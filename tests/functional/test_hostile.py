# SPDX-License-Identifier: Apache-2.0

"""The hostile packages, sent to the real Glare: each is refused, and leaves nothing behind."""

import pathlib
import socket
import tempfile
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import webob
from oslo_config import cfg

from glare_murano.package import Limits
from tests import effort, packages
from tests.descriptors import open_files
from tests.functional.client import ARTIFACTS, Client, message
from tests.hostile import cases
from tests.hostile.cases import CASES, HARMLESS, Case
from tests.hostile.test_refused import LONGEST_TEXT
from tests.hostile.views import VIEWS

pytestmark = pytest.mark.programs

GROUP = "artifact_type:murano"

# In the sample, one of each rule: tests/hostile reads them all.
SENT = CASES if effort.FULL else {case.rule: case for case in CASES}.values()


@pytest.fixture
def scratch(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The directory for temporary files of this process, in which the server runs."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def nothing_left(scratch: pathlib.Path, state_dir: pathlib.Path) -> Iterator[None]:
    """Neither a blob nor a temporary file stays, not even an open one without a name."""
    before = set((state_dir / "blobs").iterdir())
    yield
    assert set((state_dir / "blobs").iterdir()) == before
    assert list(scratch.iterdir()) == []
    assert open_files(scratch, state_dir / "blobs") == []


@pytest.fixture
def limits() -> Iterator[Callable[[Limits], None]]:
    """Set the operator's limits for a test."""
    names = {
        "max_archive_size": "archive_size",
        "max_unpacked_size": "unpacked_size",
        "max_archive_entries": "entries",
        "max_archive_ratio": "ratio",
    }

    def override(limits: Limits) -> None:
        for option, name in names.items():
            cfg.CONF.set_override(option, getattr(limits, name), GROUP)

    yield override
    for option in names:
        cfg.CONF.clear_override(option, GROUP)


def _draft(glare: Client) -> Any:
    return glare.create(cases.NAME, cases.VERSION).json()


def _is_untouched(glare: Client, draft: Any) -> bool:
    now = glare.show(draft["id"])
    return {**now, "updated_at": None} == {**draft, "updated_at": None}


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in SENT])
@pytest.mark.usefixtures("nothing_left")
def test_is_refused(
    glare: Client,
    limits: Callable[[Limits], None],
    set_option: Callable[[str, object], None],
    case: Case,
) -> None:
    draft = _draft(glare)
    limits(case.limits)
    if case in cases.FORMS:
        set_option("check_forms", "enforce")

    answer = glare.upload(draft["id"], case.build())

    assert answer.status_code == (413 if case.rule == "archive-size" else 400)
    assert f"[{case.rule}]" in message(answer)
    assert len(message(answer)) <= LONGEST_TEXT
    assert message(answer).isprintable()
    assert _is_untouched(glare, draft)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("nothing_left")
def test_what_programs_read_differently_is_refused(glare: Client) -> None:
    draft = _draft(glare)

    answers = {case: glare.upload(draft["id"], case.build()) for case in VIEWS}

    other = [
        (case.name, answer.status_code, answer.text)
        for case, answer in answers.items()
        if answer.status_code != 400 or f"[{case.rule}]" not in message(answer)
    ]
    assert other == []
    assert _is_untouched(glare, draft)
    assert glare.delete(draft["id"]).status_code == 204


@pytest.mark.parametrize("build", [pytest.param(build, id=name) for name, build in HARMLESS])
def test_what_only_looks_hostile_is_accepted(glare: Client, build: Callable[[], bytes]) -> None:
    draft = _draft(glare)

    assert glare.upload(draft["id"], build()).status_code == 200
    assert glare.delete(draft["id"]).status_code == 204


def test_a_draft_that_was_refused_everything_can_be_used(glare: Client) -> None:
    draft = _draft(glare)
    for case in CASES[::10]:
        if case.limits == Limits() and case not in cases.FORMS:
            assert glare.upload(draft["id"], case.build()).status_code == 400

    assert glare.upload(draft["id"], cases.good()).status_code == 200
    assert glare.request("GET", f"/{draft['id']}/archive").content == cases.good()
    assert glare.delete(draft["id"]).status_code == 204


def test_refusals_leave_no_file_open(glare: Client) -> None:
    """Of any kind: sockets and the database's files are counted as well."""
    draft = _draft(glare)
    hostile = [case.build() for case in CASES[::30] if case not in cases.FORMS]

    def refuse_all() -> int:
        for data in hostile:
            assert glare.upload(draft["id"], data).status_code == 400
        return len(list(pathlib.Path("/proc/self/fd").iterdir()))

    counts = [refuse_all() for _ in range(5)]
    # Threads of the server may connect to the database meanwhile.
    assert counts[-1] - counts[0] < len(hostile)


class _Body:
    """A body whose end is known only when it is reached."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self.sent = 0

    def read(self, size: int = -1) -> bytes:
        chunk = next(self._chunks, b"")
        self.sent += len(chunk)
        return chunk


def _endless() -> Iterator[bytes]:
    while True:
        yield b"a" * 1000


def _put(
    application: Any, glare: Client, artifact_id: str, body: _Body, length: int | None = None
) -> Any:
    """Upload as a WSGI server does that hands a body on as it comes.

    :param length: as the client has declared it; None for a body in chunks.
    """
    request = webob.Request.blank(f"{ARTIFACTS}/{artifact_id}/archive", method="PUT")
    request.headers["X-Auth-Token"] = glare.token
    request.headers["Content-Type"] = "application/octet-stream"
    request.environ["wsgi.input"] = body
    request.content_length = length
    if length is None:
        request.headers["Transfer-Encoding"] = "chunked"
        request.environ["wsgi.input_terminated"] = True
    return request.get_response(application)


@pytest.mark.parametrize(
    ("length", "read"),
    [
        pytest.param(None, 101_000, id="told when it is reached"),
        pytest.param(100_001, 0, id="told before it is read"),
    ],
)
@pytest.mark.usefixtures("nothing_left")
def test_a_body_that_is_too_large_is_refused(
    application: Any,
    glare: Client,
    limits: Callable[[Limits], None],
    length: int | None,
    read: int,
) -> None:
    draft = _draft(glare)
    limits(Limits(archive_size=100_000))
    body = _Body(_endless())

    answer = _put(application, glare, draft["id"], body, length)

    assert answer.status_code == 413
    text = answer.json["error"]["message"]
    assert text == "the archive is larger than 100000 bytes [archive-size]"
    assert body.sent <= read
    assert _is_untouched(glare, draft)


def test_a_body_without_a_length_is_stored_if_it_is_right(application: Any, glare: Client) -> None:
    draft = _draft(glare)
    data = cases.good()
    pieces = (data[start : start + 7] for start in range(0, len(data), 7))

    answer = _put(application, glare, draft["id"], _Body(pieces))

    assert answer.status_code == 200
    assert glare.request("GET", f"/{draft['id']}/archive").content == data
    assert glare.delete(draft["id"]).status_code == 204


@pytest.mark.usefixtures("nothing_left")
def test_a_body_that_ends_too_soon_is_refused(application: Any, glare: Client) -> None:
    draft = _draft(glare)
    data = cases.good()

    answer = _put(application, glare, draft["id"], _Body(iter([data])), len(data) + 10)

    assert answer.status_code == 400
    assert "disconnected while sending the body" in answer.json["error"]["message"]
    assert _is_untouched(glare, draft)


@pytest.mark.usefixtures("nothing_left")
def test_a_client_that_goes_away_leaves_nothing(glare: Client) -> None:
    draft = _draft(glare)
    where = urllib.parse.urlsplit(glare.url)
    head = (
        f"PUT {ARTIFACTS}/{draft['id']}/archive HTTP/1.1\r\nHost: {where.netloc}\r\n"
        f"X-Auth-Token: {glare.token}\r\nContent-Type: application/octet-stream\r\n"
        f"Content-Length: 2000000\r\n\r\n"
    )
    with socket.create_connection((where.hostname, where.port), timeout=60) as connection:
        connection.sendall(head.encode() + cases.good() + b"a" * 1_000_000)
        connection.shutdown(socket.SHUT_WR)
        # The server closes as well; what it says before that does not matter.
        while connection.recv(4096):
            pass

    assert _is_untouched(glare, draft)
    assert glare.upload(draft["id"], packages.package("org.another")).status_code == 400
