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


def test_a_refusal_is_in_the_log_with_the_id_of_its_request(
    glare: Client, state_dir: pathlib.Path, name: str
) -> None:
    draft = glare.create(name).json()["id"]

    answer = glare.upload(draft, b"no archive")

    request_id = answer.headers["x-openstack-request-id"]
    lines = (state_dir / "glare.log").read_text().splitlines()
    (line,) = [line for line in lines if f"Refused an archive for {name} 1.0.0" in line]
    assert request_id in line
    assert "archive-format" in line
