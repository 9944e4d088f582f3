# SPDX-License-Identifier: Apache-2.0

"""The costly packages, sent to the real Glare: what comes of them, and what others notice."""

import concurrent.futures
import contextlib
import hashlib
import io
import os
import pathlib
import signal
import threading
import time
from collections.abc import Callable, Iterator

import prometheus_client
import pytest

from glare_murano import archive_reading
from glare_murano.package import parse_version
from glare_murano.package.sandbox import turns
from loader.catalogs.glare import GlareRepository
from tests import packages, processes
from tests.functional import databases, sites, stores
from tests.functional.client import Client, message, refusal
from tests.functional.test_hostile import nothing_left, scratch
from tests.hostile import cases
from tests.hostile.costly import ACCEPTED, COSTLY, LIMIT, Costly

pytestmark = pytest.mark.programs

__all__ = ["nothing_left", "scratch"]

SetOption = Callable[[str, object], None]


@pytest.fixture
def no_reader_left() -> Iterator[None]:
    """No child process stays but the one that waits for the next archive."""
    yield
    processes.wait_until(lambda: len(processes.readers(os.getpid())) <= 1, "the end of children")


@pytest.fixture
def all_turns(monkeypatch: pytest.MonkeyPatch) -> turns.Turns:
    """The turns of the server, which a test can take."""
    made = turns.Turns()
    monkeypatch.setattr(archive_reading, "_turns", made)
    return made


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in COSTLY])
@pytest.mark.usefixtures("nothing_left", "no_reader_left")
def test_a_costly_package_ends_as_it_should(
    glare: Client, set_option: SetOption, case: Costly
) -> None:
    for option, value in case.options.items():
        set_option(option, value)
    artifact_id = glare.create(cases.NAME, cases.VERSION).json()["id"]
    data = case.build()

    start = time.monotonic()
    answer = glare.upload(artifact_id, data)
    seconds = time.monotonic() - start

    if case.outcome == ACCEPTED:
        assert answer.status_code == 200, answer.text
    else:
        assert f"[{case.outcome}]" in refusal(answer, 400)
        assert glare.show(artifact_id)["archive"] is None
    if case.outcome == LIMIT:
        assert message(answer).endswith("; simplify the package [reading-limit]")
        # The limit is a second of processor time, or three seconds if other processes run
        # meanwhile; these also delay the rest of the upload.
        assert seconds < 20
    assert glare.delete(artifact_id).status_code == 204


def test_a_package_that_ended_at_a_limit_can_be_uploaded_again(
    glare: Client, set_option: SetOption
) -> None:
    (case,) = [each for each in COSTLY if "memory" in each.name]
    artifact_id = glare.create(cases.NAME, cases.VERSION).json()["id"]
    for option, value in case.options.items():
        set_option(option, value)
    assert glare.upload(artifact_id, case.build()).status_code == 400
    set_option("max_reading_memory", 512 * 1024**2)

    assert glare.upload(artifact_id, case.build()).status_code == 200
    assert glare.delete(artifact_id).status_code == 204


@pytest.mark.usefixtures("nothing_left")
def test_who_gets_no_turn_may_try_again_later(
    glare: Client, as_user: Callable[[str], Client], all_turns: turns.Turns, set_option: SetOption
) -> None:
    set_option("max_readings", 1)
    set_option("max_reading_wait", 1)
    draft = glare.create(cases.NAME, cases.VERSION).json()
    before = _refused_as_busy()
    with all_turns.turn("another", 1, 1, 0):
        start = time.monotonic()
        busy = glare.upload(draft["id"], cases.good())

    assert 1 <= time.monotonic() - start < 30
    assert (busy.status_code, busy.headers["Retry-After"]) == (503, "10")
    assert busy.headers["Content-Type"].startswith("application/json")
    assert message(busy) == (
        "archive: the service is reading other packages; upload the archive again later "
        "[service-busy]"
    )
    assert _refused_as_busy() == before + 1
    now = glare.show(draft["id"])
    assert {**now, "updated_at": None} == {**draft, "updated_at": None}
    assert glare.upload(draft["id"], cases.good()).status_code == 200
    assert glare.delete(draft["id"]).status_code == 204


def test_the_command_sends_a_package_again_while_the_service_is_busy(
    glare: Client,
    project: str,
    all_turns: turns.Turns,
    set_option: SetOption,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    set_option("max_readings", 1)
    set_option("max_reading_wait", 0)
    repository = GlareRepository(glare.session(), endpoint=glare.url, project_id=project)
    draft = repository.create(cases.NAME, parse_version(cases.VERSION))
    data = cases.good()
    waits: list[float] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(all_turns.turn("another", 1, 1, 0))

        def wait(seconds: float) -> None:
            # The server, in the same process, lets other threads run.
            if seconds:
                waits.append(seconds)
            if len(waits) == 2:
                stack.close()

        monkeypatch.setattr("tenacity.nap.time.sleep", wait)
        stored = repository.upload(draft, io.BytesIO(data), len(data))

    assert stored.digest == hashlib.sha256(data).hexdigest()
    assert waits == [10, 10]
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert len(warnings) == 2
    assert "the service is reading other packages" in warnings[0]
    assert warnings[0].endswith("; trying again in 10.0 seconds")
    assert glare.delete(draft.id).status_code == 204


def _refused_as_busy() -> float:
    labels = {"rule": "service-busy"}
    return prometheus_client.REGISTRY.get_sample_value("glare_murano_refused_total", labels) or 0


def test_an_upload_that_waits_does_not_expire(
    glare: Client, all_turns: turns.Turns, set_option: SetOption
) -> None:
    """Otherwise another request would cancel it after ``upload_timeout``."""
    set_option("max_readings", 1)
    set_option("upload_timeout", 2)
    artifact_id = glare.create(cases.NAME, cases.VERSION).json()["id"]
    with concurrent.futures.ThreadPoolExecutor() as executor:
        with all_turns.turn("another", 1, 1, 0):
            running = executor.submit(glare.upload, artifact_id, cases.good())
            time.sleep(4)
            # Whoever looks at an artifact cancels an upload that has expired.
            assert glare.show(artifact_id)["archive"]["status"] == "saving"
        assert running.result().status_code == 200
    assert glare.delete(artifact_id).status_code == 204


def test_a_killed_reader_is_replaced(glare: Client, name: str) -> None:
    assert glare.upload(glare.create(name).json()["id"], packages.package(name)).status_code == 200
    for pid in processes.readers(os.getpid()):
        os.kill(pid, signal.SIGKILL)

    again = glare.create(f"{name}.again").json()["id"]
    assert glare.upload(again, packages.package(f"{name}.again")).status_code == 200


def test_a_process_of_green_threads_answers_while_it_reads(
    tmp_path: pathlib.Path, project: str
) -> None:
    """The operators' server, Glare's own, runs one thing at a time."""
    (case,) = [each for each in COSTLY if "half a gigabyte" in each.name]
    data = case.build()
    with (
        databases.sqlite_with_log(tmp_path) as connection,
        stores.files(tmp_path) as store,
        sites.of_processes(tmp_path, connection, store, 1) as site,
        concurrent.futures.ThreadPoolExecutor() as executor,
    ):
        client, other = site.client(project), site.client(project)
        artifact_id = client.create(cases.NAME, cases.VERSION).json()["id"]
        start = time.monotonic()
        running = executor.submit(client.upload, artifact_id, data)
        waits = []
        while not running.done():
            before = time.monotonic()
            assert other.request("GET", f"/{artifact_id}").status_code == 200
            waits.append(time.monotonic() - before)
        took = time.monotonic() - start
        assert running.result().status_code == 200
        assert site.leftovers() == {}

    # Unless others run meanwhile, there is one request, and it waits nearly as long.
    assert len(waits) > 5
    assert max(waits) < took / 2


def test_one_project_does_not_keep_the_others_waiting(
    as_user: Callable[[str], Client], project: str, set_option: SetOption
) -> None:
    (case,) = [each for each in COSTLY if "more time" in each.name]
    data = case.build()
    set_option("max_readings", 2)
    # Each is read for this long.
    set_option("max_reading_seconds", 1)
    set_option("max_project_readings", 2)
    ended: list[str] = []
    lock = threading.Lock()

    def draft(owner: str, number: int) -> tuple[str, str]:
        created = as_user(owner).create(f"{cases.NAME}.n{number}", cases.VERSION)
        return owner, created.json()["id"]

    def upload(owner: str, artifact_id: str) -> int:
        answer = as_user(owner).upload(artifact_id, data)
        with lock:
            ended.append(owner)
        as_user(owner).delete(artifact_id)
        return answer.status_code

    # A draft for each, since one takes one upload at a time.
    drafts = [draft(project, number) for number in range(6)]
    draft_of_other = draft(f"{project}.other", 0)
    with concurrent.futures.ThreadPoolExecutor(8) as executor:
        greedy = [executor.submit(upload, *each) for each in drafts]
        processes.wait_until(lambda: len(processes.readers(os.getpid())) > 2, "two readers", 30)
        other = executor.submit(upload, *draft_of_other)
        assert other.result() == 400
        assert {each.result() for each in greedy} == {400}

    # Two archives were being read before it, and it had the next turn.
    assert ended.index(f"{project}.other") <= 3
