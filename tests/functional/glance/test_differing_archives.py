# SPDX-License-Identifier: Apache-2.0

"""The archives that programs read differently, imported into Glance, whose processes share them."""

import concurrent.futures
from collections.abc import Iterator

import pytest

from glare_murano import images as form
from tests.functional import databases
from tests.functional.glance import service
from tests.functional.glance.image_client import ImageClient
from tests.hostile import cases
from tests.hostile.views import VIEWS

pytestmark = [pytest.mark.services, pytest.mark.timeout(600)]

_IMPORTERS = 4


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[service.Glance]:
    with service.running(
        tmp_path_factory.mktemp("workers"), databases.mariadb, count=2, shares_url=True
    ) as running:
        yield running


def _import_some(workers: service.Glance, number: int) -> list[tuple[str, str, str]]:
    """Import every fourth archive into one image; return those that were not refused by their rule.

    After them, the image takes a good one.
    """
    client = ImageClient(workers.urls[number % 2], f"user:project{number}:member,reader")
    image_id = client.create(cases.NAME, cases.VERSION).json()["id"]
    other = []
    for case in VIEWS[number::_IMPORTERS]:
        image = client.imported(image_id, case.build())
        refusal = image.get(form.REFUSAL, "")
        kept = [name for name in image if name.startswith(form.PREFIX)]
        if image["status"] != "queued" or f"[{case.rule}]" not in refusal or len(kept) > 1:
            other.append((case.name, image["status"], refusal))
        if (workers.folder / "images" / image_id).exists():
            other.append((case.name, "data", ""))
    assert client.imported(image_id, cases.good())["status"] == "active"
    return other


def test_each_is_refused_by_its_rule_and_leaves_nothing(workers: service.Glance) -> None:
    with concurrent.futures.ThreadPoolExecutor(_IMPORTERS) as pool:
        found = list(pool.map(lambda number: _import_some(workers, number), range(_IMPORTERS)))

    assert found == [[]] * _IMPORTERS
    assert list(workers.staging.iterdir()) == []
