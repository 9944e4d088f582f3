# SPDX-License-Identifier: Apache-2.0

"""What active artifacts say is read once by the real Glare, and never wrong."""

import threading
from collections.abc import Callable
from typing import Any

import cachetools
import pytest

from glare_murano.service import source
from glare_murano.service.database import PackageMetadata
from tests import packages
from tests.functional import statements
from tests.functional.client import Client


def _application(client: Client, name: str) -> list[Any]:
    """Publish an application that requires a library; both are private."""
    library = f"{name}.library"
    requiring = packages.package(name, Require={library: "1"})
    return [
        client.publish(library, "1.0.0", packages.package(library)),
        client.publish(name, "1.0.0", requiring),
    ]


def _releases(client: Client, name: str) -> dict[str, Any]:
    """FQN -> release of the closure of a package."""
    answer = client.resolve(requirements={name: "1"})
    assert answer.status_code == 200, answer.text
    return {release["name"]: release for release in answer.json()["releases"]}


def test_what_was_read_is_not_read_again(glare: Client, name: str) -> None:
    _application(glare, name)

    found_each_time, counts = [], []
    for _ in range(2):
        with statements.recorded() as found:
            found_each_time.append(_releases(glare, name))
        counts.append(statements.of_artifacts(found))

    assert found_each_time[0] == found_each_time[1]
    assert len(found_each_time[0]) == 3
    # Versions and yanks are read each time: of the application, and of its requirements.
    assert counts == [6, 4]


@pytest.mark.parametrize("status", ["active", "deactivated"])
def test_nothing_of_it_can_change(glare: Client, admin: Client, name: str, status: str) -> None:
    artifact_id = _application(glare, name)[1]["id"]
    before = _releases(glare, name)
    if status == "deactivated":
        assert admin.set(artifact_id, "status", "deactivated").ok

    for client in (glare, admin):
        for field, value in (
            ("requirements", {"org.other": "1"}),
            ("class_definitions", ["org.other.Thing"]),
            ("archive", None),
        ):
            assert client.set(artifact_id, field, value).status_code in (400, 403), field
        other = packages.package(name, Classes={f"{name}.Other": "Thing.yaml"})
        assert client.upload(artifact_id, other).status_code in (403, 409)
    if status == "deactivated":
        assert admin.set(artifact_id, "status", "active").ok

    assert _releases(glare, name) == before
    source.METADATA_CACHE.clear()
    assert _releases(glare, name) == before


def test_a_draft_is_read_each_time(glare: Client, name: str) -> None:
    draft = glare.create(name).json()["id"]

    def classes() -> list[str]:
        releases = glare.resolve(package=draft).json()["releases"]
        (found,) = [release for release in releases if release["id"] == draft]
        named: list[str] = found["class_definitions"]
        return named

    assert glare.upload(draft, packages.package(name)).ok
    assert classes() == [f"{name}.Thing"]
    other = packages.package(name, Classes={f"{name}.Other": "Thing.yaml"})
    assert glare.upload(draft, other).ok
    assert classes() == [f"{name}.Other"]


@pytest.mark.parametrize("change", ["nothing", "deleted", "deactivated"])
def test_what_was_read_is_shown_to_those_alone_who_may_see_it(
    glare: Client, admin: Client, as_user: Callable[[str], Client], name: str, change: str
) -> None:
    library, application = _application(glare, name)
    assert _releases(glare, name)[name]["id"] == application["id"]

    assert _releases(as_user("others"), name) == {}
    if change == "nothing":
        assert _releases(glare, name)[name]["id"] == application["id"]
        return
    for artifact in (application, library):
        if change == "deactivated":
            assert admin.set(artifact["id"], "status", change).ok
        else:
            assert glare.delete(artifact["id"]).ok
        assert artifact["name"] not in _releases(glare, name)


def test_more_is_read_than_is_kept(
    glare: Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _application(glare, name)
    expected = _releases(glare, name)
    few: cachetools.LRUCache[str, PackageMetadata] = cachetools.LRUCache(10, source._size)
    monkeypatch.setattr(source.METADATA_CACHE, "_cache", few)

    for _ in range(3):
        assert _releases(glare, name) == expected
    assert 0 < len(few) < len(expected)


def test_many_who_ask_at_once_get_the_same(glare: Client, name: str) -> None:
    _application(glare, name)
    expected = _releases(glare, name)
    barrier = threading.Barrier(8, timeout=60)
    wrong = []

    def ask() -> None:
        client = Client(glare.url, glare.token)
        for _ in range(10):
            barrier.wait()
            source.METADATA_CACHE.clear()
            if _releases(client, name) != expected:
                wrong.append(name)

    threads = [threading.Thread(target=ask) for _ in range(barrier.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not wrong
