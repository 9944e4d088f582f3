# SPDX-License-Identifier: Apache-2.0

"""A process of Glance that is killed while it imports a package: the owner can try again."""

import pathlib
import random
import time
from collections.abc import Iterator

import pytest

from glare_murano import images as form
from tests import effort, packages, processes
from tests.functional.glance import service
from tests.functional.glance.image_client import ImageClient

NAME = "org.example.db"
# Reading and storing it takes a while.
CONTENT = random.Random(0).randbytes(20_000_000)
DATA = packages.package(NAME, more={"Resources/a": CONTENT})

# In seconds after the request.
DELAYS = [(number + 0.5) * 0.4 / effort.IMPORT_KILLS for number in range(effort.IMPORT_KILLS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("killed")


@pytest.fixture(scope="module")
def glance(folder: pathlib.Path) -> Iterator[service.Glance]:
    with service.running(folder) as running:
        yield running


@pytest.mark.parametrize("delay", DELAYS)
def test_a_killed_import_can_be_tried_again(
    glance: service.Glance, images: ImageClient, delay: float
) -> None:
    image_id = images.create(NAME).json()["id"]
    assert images.put(image_id, DATA).ok
    assert images.start_import(image_id).status_code == 202
    time.sleep(delay)
    (process,) = glance.processes
    process.kill()
    process.start()

    found = images.show(image_id)
    # Once it is active, only the staged file and Glance's lock may be left.
    if found["status"] != "active":
        assert not form.is_release(found)
        # Until the time is up, it may be running in another process.
        processes.wait_until(
            lambda: images.put(image_id, DATA).status_code == 204, "another try", 30
        )
        assert images.start_import(image_id).status_code == 202
        found = images.wait(image_id)
        # Kills after the end of an import have left files of other images.
        assert image_id not in [path.name for path in glance.staging.iterdir()]

    assert found["status"] == "active", found
    assert found[form.VERSION] == "1.0.0"
    assert images.request("GET", f"/v2/images/{image_id}/file").content == DATA
