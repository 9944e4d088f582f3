# SPDX-License-Identifier: Apache-2.0

"""What an operator watches: the health check, the counters and the log."""

import pathlib
import re
from collections.abc import Callable

import pytest
import requests
import sqlalchemy as sa
from glare.db.sqlalchemy import api as database

from tests import packages
from tests.functional.client import Client


def test_the_health_check_needs_no_token(glare_url: str) -> None:
    answer = requests.get(f"{glare_url}/healthcheck", timeout=60)

    assert (answer.status_code, answer.text) == (200, "OK")


def test_the_health_check_fails_without_the_database(
    glare_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    nowhere = sa.create_engine(f"sqlite:///{tmp_path}/none/glare.sqlite")
    monkeypatch.setattr(database, "get_engine", lambda: nowhere)

    answer = requests.get(f"{glare_url}/healthcheck", timeout=60)

    assert (answer.status_code, answer.text) == (503, "the database does not answer")


def _counter(url: str, name: str) -> float:
    text = requests.get(f"{url}/metrics", timeout=60).text
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0


@pytest.mark.parametrize(
    ("counter", "act"),
    [
        (
            "glare_murano_uploads_total",
            lambda client, draft: client.upload(draft, packages.package("org.counted")),
        ),
        (
            'glare_murano_refused_total{rule="archive-format"}',
            lambda client, draft: client.upload(draft, b"no archive"),
        ),
        (
            'glare_murano_refused_total{rule="manifest-mismatch"}',
            lambda client, draft: client.upload(draft, packages.package("org.counted", "2.0.0")),
        ),
        (
            'glare_murano_refused_total{rule="name-reserved"}',
            lambda client, draft: client.create("io.murano", "0.97.0"),
        ),
        (
            'glare_murano_query_seconds_count{query="/murano/v1/dependencies"}',
            lambda client, draft: client.resolve(requirements={}),
        ),
        (
            'glare_murano_query_seconds_count{query="/murano/v1/subclasses"}',
            lambda client, draft: client.query("/murano/v1/subclasses", {"class": "a.B"}),
        ),
    ],
)
def test_what_happens_is_counted(
    glare: Client, counter: str, act: Callable[[Client, str], requests.Response]
) -> None:
    draft = glare.create("org.counted").json()["id"]
    before = _counter(glare.url, counter)

    act(glare, draft)

    assert _counter(glare.url, counter) == before + 1


def test_a_refused_activation_is_counted(glare: Client) -> None:
    counter = 'glare_murano_refused_total{rule="requirement-missing"}'
    before = _counter(glare.url, counter)
    draft = glare.create("org.lonely").json()["id"]
    glare.upload(draft, packages.package("org.lonely", Require={"org.nowhere": "1"}))

    assert glare.set(draft, "status", "active").status_code == 409
    assert _counter(glare.url, counter) == before + 1


Mistake = Callable[[Client, str], requests.Response]
MISTAKES: dict[str, tuple[Mistake, str]] = {
    "upload": (lambda client, draft: client.upload(draft, b"no archive"), "400: archive"),
    "activation": (
        lambda client, draft: client.set(draft, "status", "active"),
        "409: no visible package satisfies these requirements",
    ),
    "no content type": (
        lambda client, draft: client.request("PATCH", f"/{draft}"),
        "400: Content-Type must be specified.",
    ),
    "another project's": (
        lambda client, draft: Client(client.url, "user:strangers:member").set(draft, "name", "a"),
        "404: Artifact with id=",
    ),
    "again": (lambda client, draft: client.create("org.again"), "409: the project has a private"),
    "nobody": (lambda client, draft: Client(client.url, "").create("org.again"), "401: "),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_a_user_is_one_line_of_the_log_and_no_error(
    glare: Client, state_dir: pathlib.Path, name: str, mistake: str
) -> None:
    draft = glare.create(name).json()["id"]
    glare.upload(draft, packages.package(name, Require={"org.nowhere": "1"}))
    glare.create("org.again")
    start = _log_size(state_dir)
    make, words = MISTAKES[mistake]

    answer = make(glare, draft)

    (line,) = _log(state_dir, start).splitlines()
    assert f" INFO glare_murano.glare.api.refusal_log [None {_request_id(answer)} " in line
    assert f"{answer.request.path_url} with {words}" in line


def test_a_lost_archive_is_an_error_in_the_log(
    glare: Client, state_dir: pathlib.Path, name: str
) -> None:
    """Although the store's error becomes 404."""
    stored = set((state_dir / "blobs").iterdir())
    artifact = glare.publish(name, "1.0.0", packages.package(name))
    (lost,) = set((state_dir / "blobs").iterdir()) - stored
    lost.unlink()

    answer = glare.request("GET", f"/{artifact['id']}/archive")

    assert answer.status_code == 404
    written = f" ERROR glare_murano.glare.api.refusal_log [None {_request_id(answer)} "
    assert written in _log(state_dir)


def test_a_fault_of_the_server_during_an_upload_is_500_with_a_traceback(
    glare: Client, state_dir: pathlib.Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Glare itself blames the archive with 400."""
    draft = glare.create(name).json()["id"]
    monkeypatch.setattr("tempfile.tempdir", str(state_dir / "nowhere"))

    answer = glare.upload(draft, packages.package(name))

    assert answer.status_code == 500
    assert "nowhere" not in answer.text
    assert "FileNotFoundError: " in _log(state_dir)
    assert glare.show(draft)["archive"] is None


def test_other_requests_are_logged_as_glare_logs_them(
    glare: Client, state_dir: pathlib.Path
) -> None:
    start = _log_size(state_dir)

    requests.get(f"{glare.url}/artifacts/nothing", headers=dict(glare.headers), timeout=60)

    assert " ERROR glare.common.exception " in _log(state_dir, start)


def _request_id(answer: requests.Response) -> str:
    return answer.headers["x-openstack-request-id"]


def _log_size(state_dir: pathlib.Path) -> int:
    return (state_dir / "glare.log").stat().st_size


def _log(state_dir: pathlib.Path, start: int = 0) -> str:
    return (state_dir / "glare.log").read_bytes()[start:].decode()
