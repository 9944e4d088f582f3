# SPDX-License-Identifier: Apache-2.0

"""Requests that change one artifact at the same time, in two API processes."""

import concurrent.futures
import random
import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest
import requests

from tests import effort, packages
from tests.functional import sites
from tests.functional.client import Client
from tests.functional.sites import Site

pytestmark = pytest.mark.programs

# The longest time by which one request is ahead of the other.
AHEAD_SECONDS = 0.1


site = sites.fixture(sites.shared, ["development", *sites.SHARED_DATABASES])


def _together(*requests_: Callable[[], requests.Response]) -> tuple[int, ...]:
    """Send requests at once, give or take a moment; return the statuses."""
    barrier = threading.Barrier(len(requests_), timeout=60)

    def send(request: Callable[[], requests.Response]) -> int:
        barrier.wait()
        time.sleep(random.uniform(0, AHEAD_SECONDS))
        return request().status_code

    with concurrent.futures.ThreadPoolExecutor(len(requests_)) as executor:
        return tuple(executor.map(send, requests_))


def _upload(client: Client, artifact_id: str, data: bytes) -> requests.Response:
    return client.upload(artifact_id, data)


def _patch(client: Client, artifact_id: str, data: bytes) -> requests.Response:
    return client.set(artifact_id, "display_name", "Another")


def _activate(client: Client, artifact_id: str, data: bytes) -> requests.Response:
    return client.set(artifact_id, "status", "active")


@pytest.mark.timeout(effort.FULL_SECONDS or 120)
@pytest.mark.parametrize("write", [_upload, _patch, _activate])
def test_a_deletion_and_another_write_end_in_one_state(
    site: Site, name: str, write: Callable[[Client, str, bytes], requests.Response]
) -> None:
    project = name.rpartition(".")[2]
    one, another = (site.client(project, number) for number in range(2))
    data = packages.package(name, more={"UI/ui.yaml": packages.FORM}, Tags=["one", "two"])
    answers: Counter[tuple[int, int]] = Counter()

    for number in range(effort.RACES):
        artifact_id = one.create(name).json()["id"]
        if write is not _upload or number % 2:
            assert one.upload(artifact_id, data).status_code == 200
        answer = _together(
            lambda id_=artifact_id: write(one, id_, data),
            lambda id_=artifact_id: another.delete(id_),
        )
        answers[answer] += 1
        if answer[1] == 409:
            assert one.delete(artifact_id).status_code == 204
        assert another.request("GET", f"/{artifact_id}").status_code == 404, answers
        assert site.leftovers() == {}, answers

    # A deletion gives way to an activation alone, which changes what may be deleted.
    expected = {(200, 204), (404, 204), *([(200, 409)] if write is _activate else [])}
    assert answers.keys() <= expected, answers


@pytest.mark.timeout(effort.FULL_SECONDS or 120)
@pytest.mark.parametrize("write", [_upload, _activate])
def test_an_upload_and_another_write_leave_the_archive_and_its_fields(
    site: Site, name: str, write: Callable[[Client, str, bytes], requests.Response]
) -> None:
    """An upload takes none of Glare's locks, so that another write may begin before its end."""
    project = name.rpartition(".")[2]
    one, another = (site.client(project, number) for number in range(2))
    answers: Counter[tuple[int, int]] = Counter()

    for number in range(effort.RACES // 2):
        fqn = f"{name}.n{number}"
        archives = {
            author: packages.package(fqn, Author=author) for author in ("first", "second", "third")
        }
        artifact_id = one.create(fqn).json()["id"]
        assert one.upload(artifact_id, archives["first"]).status_code == 200
        answer = _together(
            lambda id_=artifact_id, data=archives["second"]: one.upload(id_, data),
            lambda id_=artifact_id, data=archives["third"]: write(another, id_, data),
        )
        answers[answer] += 1
        assert 200 in answer
        artifact = one.show(artifact_id)
        kept = one.request("GET", f"/{artifact_id}/archive").content
        assert kept == archives[artifact["author"]], answers
        if answer[0] == 200 and write is _activate:
            assert artifact["author"] == "second"
        assert artifact["status"] == (
            "active" if (write, answer[1]) == (_activate, 200) else "drafted"
        )
        assert one.delete(artifact_id).status_code == 204
    assert site.leftovers() == {}, answers
    # An active package is refused with 403.
    expected = {(200, 200), (200, 409), (409, 200), *([(403, 200)] if write is _activate else [])}
    assert answers.keys() <= expected, answers


def _on_servers(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test over the databases that two API processes share."""
    servers = pytest.mark.parametrize("site", ["mariadb", "postgresql"], indirect=True)
    marked: Callable[..., None] = pytest.mark.services(servers(test))
    return marked


@pytest.mark.timeout(effort.FULL_SECONDS or 120)
def test_publications_of_overlapping_sets_all_succeed(site: Site, name: str) -> None:
    project = name.rpartition(".")[2]
    clients = [site.client(project, number, role="admin") for number in range(4)]

    for number in range(effort.PUBLICATIONS):
        names = [f"{name}.n{number}.{letter}" for letter in "abcd"]
        ids = [clients[0].draft(fqn, "1.0.0", packages.package(fqn)) for fqn in names]
        sets = [ids[:3], ids[:0:-1], ids, ids[::-1]]
        answers = _together(
            *(
                lambda client=client, ids=ids: client.publish_all(ids, "public")
                for client, ids in zip(clients, sets, strict=True)
            )
        )
        assert answers == (200,) * 4
        assert {clients[1].show(id_)["visibility"] for id_ in ids} == {"public"}
    assert site.leftovers() == {}


@_on_servers
@pytest.mark.timeout(effort.FULL_SECONDS or 120)
def test_of_two_projects_that_publish_one_version_one_wins(site: Site, name: str) -> None:
    """Whether by a publication or by Glare's own request."""
    project = name.rpartition(".")[2]
    clients = [site.client(f"{project}.{number}", number, role="admin") for number in range(3)]

    for number in range(effort.PUBLICATIONS):
        fqn = f"{name}.n{number}"
        ids = [client.publish(fqn, "1.0.0", packages.package(fqn))["id"] for client in clients]
        answers = _together(
            lambda id_=ids[0]: clients[0].publish_all([id_], "public"),
            lambda id_=ids[1]: clients[1].publish_all([id_], "public"),
            lambda id_=ids[2]: clients[2].set(id_, "visibility", "public"),
        )
        assert sorted(answers) == [200, 409, 409], answers
        public = clients[0].request("GET", "", params={"name": fqn, "visibility": "public"})
        assert [artifact["id"] for artifact in public.json()["artifacts"]] == [
            ids[answers.index(200)]
        ]
    assert site.leftovers() == {}


def _delete(client: Client, artifact_id: str, data: bytes) -> requests.Response:
    return client.delete(artifact_id)


@_on_servers
@pytest.mark.timeout(effort.FULL_SECONDS or 120)
@pytest.mark.parametrize("write", [_upload, _patch, _activate, _delete])
def test_a_publication_and_another_write_end_in_one_state(
    site: Site, name: str, write: Callable[[Client, str, bytes], requests.Response]
) -> None:
    project = name.rpartition(".")[2]
    one, another = (site.client(project, number) for number in range(2))
    names = [f"{name}.one", f"{name}.two"]
    first, second = (
        packages.package(fqn, Require={required: "1"})
        for fqn, required in zip(names, reversed(names), strict=True)
    )
    changed = packages.package(names[0], Require={names[1]: "1"}, Author="Another")
    answers: Counter[tuple[int, int]] = Counter()

    for _ in range(effort.PUBLICATIONS):
        ids = [one.draft(names[0], "1.0.0", first), one.draft(names[1], "1.0.0", second)]
        answer = _together(
            lambda ids=ids: one.publish_all(ids, "private"),
            lambda id_=ids[0]: write(another, id_, changed),
        )
        answers[answer] += 1
        states = [one.show(id_).get("status") for id_ in ids]
        if answer[0] == 200:
            assert states == ["active", "active"]
            archive = another.request("GET", f"/{ids[0]}/archive").content
            assert archive == (changed if write is _upload and answer[1] == 200 else first)
        else:
            assert states == [None if write is _delete else "drafted", "drafted"]
        forced = site.client(project, role="admin")
        forced.headers["X-Murano-Override-Checks"] = "true"
        for id_ in ids:
            assert forced.delete(id_).status_code in (204, 404)
        assert site.leftovers() == {}, answers
