# SPDX-License-Identifier: Apache-2.0

"""Imports into images that Glance leaves in odd states, which the real one does at times."""

import io
from typing import Any

import pytest

from loader import errors
from loader.transport import image_import
from loader.transport.failures import Conflict

ARCHIVE = b"PK"


class Images:
    """A Glance with one image, which a test changes between the requests.

    :ivar states: statuses that each look at the image takes in turn; the last one stays. A task
        follows a plus sign, and the rule of a refusal a colon.
    :ivar refused: the requests that are refused for a conflict, each once.
    :ivar sent: all requests.
    """

    def __init__(self, *states: str, refused: tuple[str, ...] = ()) -> None:
        self.states = list(states)
        self.refused = list(refused)
        self.sent: list[str] = []

    def get(self, image_id: str) -> dict[str, Any]:
        status = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        name, _, task = status.partition("+")
        name, _, refusal = name.partition(":")
        found = {"id": image_id, "status": name, "os_glance_import_task": task}
        return {**found, "murano_refusal": f"a reason [{refusal}]"} if refusal else found

    def stage(self, image_id: str, data: io.BytesIO, size: int, label: str) -> None:
        self._send("stage")

    def start_import(self, image_id: str) -> None:
        self._send("import")

    def _send(self, request: str) -> None:
        self.sent.append(request)
        if request in self.refused:
            self.refused.remove(request)
            raise Conflict("conflict")


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits, which take no time."""
    found: list[float] = []
    monkeypatch.setattr("loader.transport.image_import.time.sleep", found.append)
    return found


def _import(images: Images) -> str:
    service: Any = images
    found = image_import.import_archive(service, "1", io.BytesIO(ARCHIVE), 2, "the archive")
    return str(found["status"])


def test_an_archive_is_staged_and_imported() -> None:
    images = Images("queued", "uploading", "importing+1", "active+1", "active")

    assert _import(images) == "active"
    assert images.sent == ["stage", "import"]


def test_what_an_earlier_attempt_has_staged_is_imported_first() -> None:
    images = Images("uploading", "importing+1", "queued", "uploading", "importing+1", "active")

    assert _import(images) == "active"
    assert images.sent == ["import", "stage", "import"]


def test_a_refused_archive_is_not_staged_again() -> None:
    images = Images("queued", "uploading", "importing+1", "queued")

    assert _import(images) == "queued"
    assert images.sent == ["stage", "import"]


def test_an_archive_that_the_service_had_no_time_to_read_is_sent_again(
    waits: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    busy = ("uploading", "importing+1", "queued:service-busy")
    images = Images("queued", *busy, *busy, "uploading", "active")

    assert _import(images) == "active"
    assert images.sent == ["stage", "import"] * 3
    long = [wait for wait in waits if wait >= 5]
    assert len(long) == 2
    assert 5 <= long[0] <= 10 <= long[1] <= 20
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert caplog.messages[0].startswith(
        "The service is busy with other packages; sending the archive again in "
    )


def test_an_archive_is_not_sent_again_for_ever(waits: list[float]) -> None:
    busy = ("uploading", "importing+1", "queued:service-busy")
    images = Images("queued", *busy * 10)

    assert _import(images) == "queued"
    assert images.sent == ["stage", "import"] * 5
    assert len([wait for wait in waits if wait >= 5]) == 4


def test_an_archive_that_breaks_a_rule_is_not_sent_again(waits: list[float]) -> None:
    images = Images("queued", "uploading", "importing+1", "queued:service-busy] [manifest-name")

    assert _import(images) == "queued"
    assert images.sent == ["stage", "import"]
    assert not [wait for wait in waits if wait >= 5]


def test_another_client_that_is_staging_is_waited_for(waits: list[float]) -> None:
    images = Images("queued", "uploading", "active", refused=("stage", "import"))

    assert _import(images) == "active"
    assert images.sent == ["stage", "import"]
    assert len(waits) == 2


def test_an_import_without_progress_is_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_import, "_STAGE_AGAIN", 0.0)
    killed = ["importing+1"] * 3
    images = Images(*killed, "uploading", "importing+2", "active", refused=("stage", "stage"))

    assert _import(images) == "active"
    assert images.sent[:4] == ["stage", "stage", "stage", "import"]


def test_an_import_without_an_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_import, "_TIMEOUT", 0.3)

    with pytest.raises(errors.CatalogUnavailable, match="the image 1 has the status importing"):
        _import(Images("importing+1"))
