# SPDX-License-Identifier: Apache-2.0

"""The costly packages, imported into the real Glance: what comes of them, and of who waits."""

import contextlib
import io
import os
import pathlib
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping

import pytest

from glare_murano import images as form
from glare_murano.package import parse_version
from loader import errors
from loader.catalogs.glance import GlanceRepository
from loader.transport import image_import
from tests import packages, processes
from tests.functional.glance import service
from tests.functional.glance.image_client import ImageClient
from tests.hostile import cases
from tests.hostile.costly import ACCEPTED, COSTLY, LIMIT, Costly

_USUAL = [case for case in COSTLY if not case.options]
_LIMITED = [case for case in COSTLY if case.options]


@contextlib.contextmanager
def _running(folder: pathlib.Path, options: Mapping[str, int]) -> Iterator[service.Glance]:
    """Run a Glance with options of packages."""

    def set_options(etc: pathlib.Path) -> None:
        lines = [f"{name} = {value}\n" for name, value in options.items()]
        with (etc / "glance-image-import.conf").open("a") as conf:
            conf.write("\n[murano_packages]\n" + "".join(lines))

    with service.running(folder, change=set_options) as glance:
        yield glance


def _check(glance: service.Glance, owner: ImageClient, case: Costly) -> None:
    image_id = owner.create(cases.NAME, cases.VERSION).json()["id"]
    assert owner.put(image_id, case.build()).ok

    start = time.monotonic()
    assert owner.start_import(image_id).ok
    found = owner.wait(image_id)
    seconds = time.monotonic() - start

    if case.outcome == ACCEPTED:
        assert found["status"] == "active", found.get(form.REFUSAL)
    else:
        assert found["status"] == "queued"
        assert f"[{case.outcome}]" in found[form.REFUSAL]
        assert [name for name in found if name.startswith(form.PREFIX)] == [form.REFUSAL]
        assert not (glance.folder / "images" / image_id).exists()
    if case.outcome == LIMIT:
        assert found[form.REFUSAL].endswith("; simplify the package [reading-limit]")
        # The limit is a second of processor time, or three seconds if other processes run
        # meanwhile; these also delay the rest of the import.
        assert seconds < 20
    assert list(glance.staging.iterdir()) == []
    assert owner.delete(image_id).status_code == 204
    pid = glance.processes[0].pid
    processes.wait_until(lambda: len(processes.readers(pid)) <= 1, "the end of children")


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in _USUAL])
def test_a_costly_package_ends_as_it_should(
    glance: service.Glance, images: ImageClient, case: Costly
) -> None:
    _check(glance, images, case)


def test_a_costly_package_ends_at_the_limits_of_the_operator(
    tmp_path: pathlib.Path, project: str
) -> None:
    options = {name: value for case in _LIMITED for name, value in case.options.items()}
    with _running(tmp_path, options) as glance:
        owner = ImageClient(glance.url, f"user:{project}:member,reader")
        for case in _LIMITED:
            _check(glance, owner, case)
        assert owner.publish_draft(cases.NAME, cases.VERSION, cases.good())["status"] == "active"


def test_a_killed_reader_is_replaced(glance: service.Glance, images: ImageClient) -> None:
    assert images.publish_draft("org.one", "1.0.0", packages.package("org.one"))[
        "status"
    ] == "active"  # fmt: skip
    for pid in processes.readers(glance.processes[0].pid):
        os.kill(pid, signal.SIGKILL)

    found = images.publish_draft("org.two", "1.0.0", packages.package("org.two"))
    assert found["status"] == "active", found.get(form.REFUSAL)


def test_no_reader_is_left_after_a_process_was_killed(tmp_path: pathlib.Path, project: str) -> None:
    with service.running(tmp_path) as glance:
        owner = ImageClient(glance.url, f"user:{project}:member,reader")
        owner.publish_draft(cases.NAME, cases.VERSION, cases.good())
        (process,) = glance.processes
        found = processes.descendants(process.pid)
        assert found
        # Alone, as the kernel does for lack of memory.
        os.kill(process.pid, signal.SIGKILL)
        processes.wait_until(lambda: not any(map(_runs, found)), "the end of the readers", 10)


def _runs(pid: int) -> bool:
    with contextlib.suppress(OSError):
        status = pathlib.Path(f"/proc/{pid}/stat").read_text()
        return status.rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.fixture
def busy(tmp_path: pathlib.Path) -> Iterator[service.Glance]:
    """A Glance that reads one archive at a time, for whose turn nobody waits."""
    with _running(tmp_path, {"max_readings": 1, "max_reading_wait": 0}) as glance:
        yield glance


@contextlib.contextmanager
def _reading(glance: service.Glance) -> Iterator[Callable[[], None]]:
    """Stop a reader of another project in the midst of an archive.

    :returns: a function that lets it go on, as the end of the block does.
    """
    (case,) = [each for each in COSTLY if "more time" in each.name]
    other = ImageClient(glance.url, f"user:{uuid.uuid4().hex}:member,reader")
    # The first archive of all starts the readers.
    other.publish_draft("org.hostile.first", cases.VERSION, packages.package("org.hostile.first"))
    image_id = other.create(cases.NAME, cases.VERSION).json()["id"]
    assert other.put(image_id, case.build()).ok
    before = processes.readers(glance.processes[0].pid)
    assert other.start_import(image_id).ok
    pid = glance.processes[0].pid
    # One reads it, and one waits for the next archive.
    processes.wait_until(lambda: len(processes.readers(pid)) > 1, "the reader")
    (reader,) = before & processes.readers(pid)
    os.kill(reader, signal.SIGSTOP)

    def go_on() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(reader, signal.SIGCONT)

    yield go_on
    go_on()
    read = other.wait(image_id)
    assert read["status"] == "active", read.get(form.REFUSAL)


def test_who_gets_no_turn_may_stage_the_package_again(busy: service.Glance, project: str) -> None:
    owner = ImageClient(busy.url, f"user:{project}:member,reader")
    with _reading(busy):
        refused = owner.publish_draft(cases.NAME, cases.VERSION, cases.good())
        assert refused["status"] == "queued"
        assert refused[form.REFUSAL] == (
            "archive: the service is reading other packages; upload the archive again later "
            "[service-busy]"
        )
        assert not (busy.staging / refused["id"]).exists()

    found = owner.imported(refused["id"], cases.good())
    assert found["status"] == "active"
    assert form.REFUSAL not in found


def test_the_command_sends_a_package_again_while_the_service_is_busy(
    busy: service.Glance,
    project: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = ImageClient(busy.url, f"user:{project}:member,reader")
    repository = GlanceRepository(client.session(), endpoint=busy.url, project_id=project)
    draft = repository.create(cases.NAME, parse_version(cases.VERSION))
    archive = cases.good()

    monkeypatch.setattr(image_import, "_BUSY_WAITS", (1, 2, 4, 8, 16, 32))
    with _reading(busy) as go_on:
        end = threading.Timer(3, go_on)
        end.start()
        stored = repository.upload(draft, io.BytesIO(archive), len(archive))
        end.join()
    assert stored.digest
    assert "The service is busy with other packages; sending the archive of" in caplog.text

    monkeypatch.setattr(image_import, "_BUSY_WAITS", (0.1,))
    again = repository.create("org.hostile.again", parse_version("1.0.0"))
    with (
        _reading(busy),
        pytest.raises(errors.CatalogUnavailable, match=r"in several attempts: .*\[service-busy\]"),
    ):
        repository.upload(again, io.BytesIO(archive), len(archive))
