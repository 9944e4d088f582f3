# SPDX-License-Identifier: Apache-2.0

"""Two processes of Glance over one database, one store and one staging area."""

import concurrent.futures
import json
from collections.abc import Iterator

import pytest

from glare_murano import images as form
from tests import effort, packages
from tests.functional import databases
from tests.functional.glance import service
from tests.functional.glance.image_client import ImageClient

NAME = "org.example.db"
PUBLISHERS = 8

pytestmark = [pytest.mark.services, pytest.mark.timeout(300)]


@pytest.fixture(scope="module", params=["mariadb", "postgresql"])
def glance(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[service.Glance]:
    """Two processes, each with a URL of its own for the other to pass requests on to."""
    folder = tmp_path_factory.mktemp("workers")
    with service.running(folder, getattr(databases, request.param), count=2) as running:
        yield running


@pytest.fixture
def workers(glance: service.Glance, images: ImageClient) -> list[ImageClient]:
    """A client of each process, of a member of the test's project."""
    return [ImageClient(url, images.token) for url in glance.urls]


@pytest.mark.parametrize("_", range(effort.PUBLICATIONS))
def test_of_publishers_at_once_one_wins(workers: list[ImageClient], _: int) -> None:
    clients = [ImageClient(workers[i % 2].url, workers[0].token) for i in range(PUBLISHERS)]
    data = [packages.package(NAME, Description=f"By {number}") for number in range(PUBLISHERS)]
    with concurrent.futures.ThreadPoolExecutor(PUBLISHERS) as pool:
        created = list(pool.map(lambda client: client.create(NAME).status_code, clients))
        assert sorted(created) == [201] + [409] * (PUBLISHERS - 1)
        image_id = workers[0].id_of(NAME, "1.0.0")

        # The others do not stop there.
        staged = list(
            pool.map(lambda i: clients[i].put(image_id, data[i]).status_code, range(PUBLISHERS))
        )
        assert sorted(staged) == [204] + [409] * (PUBLISHERS - 1)
        winner = staged.index(204)
        # Of the process that has the data: Glance passes the others' requests on to it.
        owner = clients[winner]
        begun = list(
            pool.map(lambda _: owner.start_import(image_id).status_code, range(PUBLISHERS))
        )
        assert sorted(begun) == [202] + [409] * (PUBLISHERS - 1)

    found = workers[0].wait(image_id)
    assert found["status"] == "active"
    assert found[form.DESCRIPTION] == f"By {winner}"
    assert workers[0].request("GET", f"/v2/images/{image_id}/file").content == data[winner]


def test_one_process_imports_what_another_has_staged(
    workers: list[ImageClient], glance: service.Glance
) -> None:
    first, second = workers
    image_id = first.create(NAME).json()["id"]

    for data in (packages.package(NAME, "one"), packages.package(NAME)):
        assert first.put(image_id, data).status_code == 204
        answer = second.start_import(image_id)
        assert answer.status_code == 202, answer.text
        found = second.wait(image_id)
        assert list(glance.staging.iterdir()) == []
        first, second = second, first

    assert found["status"] == "active"
    assert form.REFUSAL not in found


def test_a_staging_area_of_dead_processes_is_read_by_others(
    workers: list[ImageClient], glance: service.Glance
) -> None:
    image_id = workers[0].create(NAME).json()["id"]
    assert workers[0].put(image_id, packages.package(NAME)).status_code == 204
    glance.processes[0].kill()
    try:
        answer = workers[1].start_import(image_id)
        # Glance passes it on to the process that has staged the data.
        assert answer.status_code in (500, 504)
        # Another try, once the time is up.
        service.wait_for_import_timeout()
        assert workers[1].put(image_id, packages.package(NAME)).status_code == 204
        assert workers[1].start_import(image_id).status_code == 202
        assert workers[1].wait(image_id)["status"] == "active"
    finally:
        glance.processes[0].start()


@pytest.fixture(scope="module")
def sharing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[service.Glance]:
    """Two processes with one URL for requests to one another."""
    folder = tmp_path_factory.mktemp("sharing")
    with service.running(folder, databases.mariadb, count=2, shares_url=True) as running:
        yield running


def test_processes_with_one_url_import_what_a_killed_one_has_staged(
    sharing: service.Glance,
) -> None:
    first, second = (ImageClient(url, "user:sharing:member,reader") for url in sharing.urls)
    image_id = first.create(NAME).json()["id"]
    assert first.put(image_id, packages.package(NAME)).status_code == 204
    sharing.processes[0].kill()
    try:
        with concurrent.futures.ThreadPoolExecutor(PUBLISHERS) as pool:
            begun = list(
                pool.map(lambda _: second.start_import(image_id).status_code, range(PUBLISHERS))
            )
        assert sorted(begun) == [202] + [409] * (PUBLISHERS - 1)
        assert second.wait(image_id)["status"] == "active"
    finally:
        sharing.processes[0].start()


def test_metadata_up_to_the_limit_is_stored(workers: list[ImageClient]) -> None:
    classes = {f"{NAME}.{'Class' * 20}{number}": f"{number}.yaml" for number in range(480)}

    found = workers[0].publish_draft(NAME, "1.0.0", packages.package(NAME, Classes=classes))

    assert found["status"] == "active", found.get(form.REFUSAL)
    assert len(found[form.CLASSES]) > 50_000
    assert sorted(json.loads(found[form.CLASSES])) == sorted(classes)


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param({"Author": "\U0001f600"}, id="beyond U+FFFF"),
        pytest.param({"Classes": {"\U0001f600": "a.yaml"}}, id="in the reason"),
        pytest.param({"Tags": ["a" * 80 + str(n) for n in range(700)]}, id="too much"),
    ],
)
def test_every_reason_is_stored(workers: list[ImageClient], keys: dict[str, object]) -> None:
    refused = workers[0].publish_draft(NAME, "1.0.0", packages.package(NAME, **keys))

    assert refused["status"] == "queued"
    assert refused[form.REFUSAL].endswith("]")
    assert workers[0].imported(refused["id"], packages.package(NAME))["status"] == "active"


@pytest.mark.parametrize(
    "name",
    ["mur\u00e1no_version", "\u00b5urano_version", "murano_versio\u00f1", "mur\u00e1no_version "],
)
def test_a_name_that_a_database_takes_for_another_forges_nothing(
    workers: list[ImageClient], name: str
) -> None:
    created = workers[0].create(NAME, **{name: "9.9.9"})
    if created.status_code == 403:
        return
    image_id = created.json()["id"]

    found = workers[0].imported(image_id, packages.package(NAME))

    if found["status"] == "active":
        assert found[form.VERSION] == "1.0.0"
    else:
        assert found[form.REFUSAL].endswith(
            "cannot distinguish this name from murano_version; delete the property [manifest-limit]"
        )
        assert form.VERSION not in found


def test_a_package_is_not_published_by_such_a_name(workers: list[ImageClient]) -> None:
    owner = workers[0]
    image_id = owner.publish_draft(NAME, "1.0.0", packages.package(NAME))["id"]

    changed = owner.set(image_id, "mur\u00e1no_published", "2026-01-01T00:00:00Z", "add")
    assert changed.status_code in (200, 403), changed.text
    query = {"requirements": {NAME: "1"}}
    answer = owner.request("POST", "/murano/v1/dependencies", json=query)

    assert answer.status_code == 200, answer.text
    assert NAME not in [release["name"] for release in answer.json()["releases"]]
