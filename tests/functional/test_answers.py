# SPDX-License-Identifier: Apache-2.0

"""Queries that come again are answered by the real Glare as if they came first."""

import gc
import itertools
import tracemalloc
from collections.abc import Callable
from typing import Any

import cachetools
import pytest

from glare_murano.glare.api import answers
from tests import packages
from tests.functional import statements
from tests.functional.client import Client

_Query = dict[str, Any]


def _publish(client: Client, fqn: str, version: str = "1.0.0", **requirements: str) -> Any:
    data = packages.package(fqn, version, Require=requirements)
    return client.publish(fqn, version, data)


@pytest.fixture
def published(glare: Client, name: str) -> str:
    """An application that requires a library, which requires another, and so on."""
    names = [name, *(f"{name}.library{number}" for number in range(5))]
    _publish(glare, names[-1])
    for required, fqn in itertools.pairwise(reversed(names)):
        _publish(glare, fqn, **{required: "1"})
    return name


def _queries(name: str) -> list[_Query]:
    return [
        {"requirements": {name: ">=1", f"{name}.missing": "1"}},
        {"objects": [{"class": f"{name}.Thing", "version": ">=1"}]},
        {"requirements": {name: ">=1"}, "pins": {name: ["1.0.0"]}},
        {"requirements": {name: ">=1"}, "prereleases": False},
    ]


def _ask(client: Client, query: _Query) -> Any:
    answer = client.ask(**query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _ask_anew(client: Client, query: _Query) -> Any:
    """The answer of a process that has given none before."""
    with pytest.MonkeyPatch.context() as nothing_kept:
        nothing_kept.setattr(answers, "_kept", cachetools.LRUCache(0))
        return _ask(client, query)


@pytest.mark.parametrize(("number", "count"), [(0, 1), (1, 3), (2, 1), (3, 1)])
def test_a_query_that_comes_again_asks_for_all_at_once(
    glare: Client, published: str, number: int, count: int
) -> None:
    query = _queries(published)[number]
    first = _ask(glare, query)
    with statements.recorded() as found:
        again = _ask(glare, query)

    assert again == first
    assert len(first["releases"]) == 7
    assert statements.of_artifacts(found) == count


def _publish_newer(client: Client, admin: Client, name: str) -> None:
    _publish(client, name, "1.1.0")


def _publish_newer_below(client: Client, admin: Client, name: str) -> None:
    _publish(client, f"{name}.library4", "1.1.0-rc.1")
    _publish(client, f"{name}.library4", "1.0.1")


def _publish_for_all(client: Client, admin: Client, name: str) -> None:
    admin.publish(name, "1.2.0", packages.package(name, "1.2.0"), public=True)


def _publish_missing(client: Client, admin: Client, name: str) -> None:
    _publish(client, f"{name}.missing")


def _define_elsewhere(client: Client, admin: Client, name: str) -> None:
    data = packages.package(f"{name}.other", "3.0.0", Classes={f"{name}.Thing": "Thing.yaml"})
    client.publish(f"{name}.other", "3.0.0", data)


def _delete(client: Client, admin: Client, name: str) -> None:
    (artifact,) = _ids(client, name)
    assert client.request("DELETE", f"/{artifact}").ok


def _deactivate(client: Client, admin: Client, name: str) -> None:
    (artifact,) = _ids(client, name)
    assert admin.set(artifact, "status", "deactivated").ok


def _make_public(client: Client, admin: Client, name: str) -> None:
    (artifact,) = _ids(client, f"{name}.library4")
    assert admin.set(artifact, "visibility", "public").ok


def _ids(client: Client, name: str) -> list[str]:
    found = client.request("GET", "", params={"name": name}).json()["artifacts"]
    return [artifact["id"] for artifact in found]


_CHANGES: list[tuple[Callable[[Client, Client, str], None], set[int]]] = [
    (_publish_newer, {0, 1, 3}),
    (_publish_newer_below, {0, 1, 2, 3}),
    (_publish_for_all, {0, 1, 3}),
    (_publish_missing, {0}),
    (_define_elsewhere, {1}),
    (_delete, {0, 1, 2, 3}),
    (_deactivate, {0, 1, 2, 3}),
    (_make_public, {0, 1, 2, 3}),
]


@pytest.mark.parametrize(("change", "changed"), _CHANGES)
def test_each_change_is_seen(
    glare: Client,
    admin: Client,
    published: str,
    change: Callable[[Client, Client, str], None],
    changed: set[int],
) -> None:
    queries = _queries(published)
    before = [_ask(glare, query) for query in queries]

    change(glare, admin, published)

    after = [_ask(glare, query) for query in queries]
    assert after == [_ask_anew(glare, query) for query in queries]
    assert {number for number in range(len(queries)) if after[number] != before[number]} == changed


def test_nobody_gets_the_answer_of_another(
    glare: Client, admin: Client, as_user: Callable[[str], Client], project: str, published: str
) -> None:
    others = as_user("others")
    for query in _queries(published):
        found = _ask(glare, query)
        assert len(found["releases"]) == 7
        for client in (others, admin, glare):
            for of_project in ({}, {"project_id": project}, {"project_id": ""}):
                asked = query | of_project
                assert _ask(client, asked) == _ask(client, asked) == _ask_anew(client, asked)
        assert published not in str(_ask(others, query)["releases"])
        assert _ask(glare, query) == found


def test_of_two_who_see_all_each_prefers_the_own_project(
    glare: Client, admin: Client, project: str, name: str
) -> None:
    public = admin.publish(name, "1.0.0", packages.package(name), public=True)["id"]
    own = _publish(glare, name)["id"]
    boss = Client(glare.url, f"boss:{project}:admin")

    for _ in range(2):
        for client, expected in ((admin, public), (boss, own)):
            releases = _ask(client, {"requirements": {name: "1"}})["releases"]
            assert [r["id"] for r in releases if r["name"] == name] == [expected]


def test_a_draft_of_others_costs_nothing(
    glare: Client, as_user: Callable[[str], Client], published: str
) -> None:
    query = _queries(published)[1]
    before = _ask(glare, query)
    others = as_user("others")
    draft = others.create(f"{published}.draft").json()["id"]
    data = packages.package(f"{published}.draft", Classes={f"{published}.Thing": "Thing.yaml"})
    assert others.upload(draft, data).ok

    with statements.recorded() as found:
        assert _ask(glare, query) == before
    assert statements.of_artifacts(found) == 3


def test_an_answer_about_a_draft_is_not_kept(glare: Client, name: str) -> None:
    draft = glare.create(name).json()["id"]
    for class_name in ("Thing", "Other", "Last"):
        data = packages.package(name, Classes={f"{name}.{class_name}": "Thing.yaml"})
        assert glare.upload(draft, data).ok
        if class_name == "Last":
            assert glare.set(draft, "status", "active").ok
        (found,) = [r for r in _ask(glare, {"package": draft})["releases"] if r["id"] == draft]
        assert found["class_definitions"] == [f"{name}.{class_name}"]


@pytest.mark.parametrize(
    "query",
    [
        {"requirements": {}},
        {"requirements": {f"org.none{number}": "1" for number in range(100)}},
        {"requirements": {f"org.{'long' * 50_000}": "1"}},
        {"objects": [{"class": f"org.{'Long' * 50_000}"}]},
        {"objects": [{"class": f"org.None{number}"} for number in range(100)]},
    ],
    ids=["nothing", "names", "name", "class", "classes"],
)
def test_what_is_kept_takes_no_more_than_it_is_weighed(
    glare: Client, monkeypatch: pytest.MonkeyPatch, query: _Query
) -> None:
    """Whatever a query is made of."""
    kept: Any = cachetools.LRUCache(1024**3, answers._weight)
    monkeypatch.setattr(answers, "_kept", kept)
    tracemalloc.start()
    try:
        for number in range(20):
            _ask(glare, query | {"pins": {f"org.pin{number}": ["1.0.0"] * 90}})
        # The server holds the last request for a while.
        _ask(glare, {"requirements": {}})
        assert len(kept) == 21
        weighed = kept.currsize
        gc.collect()
        full, _ = tracemalloc.get_traced_memory()
        kept.clear()
        gc.collect()
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    # The server and the tests keep something, too.
    assert full - left < weighed + 64 * 1024


def test_a_large_answer_is_given_but_not_kept(
    glare: Client, published: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (query, *_) = _queries(published)
    expected = _ask(glare, query)
    few: Any = cachetools.LRUCache(1000, answers._weight)
    monkeypatch.setattr(answers, "_kept", few)

    assert _ask(glare, query) == _ask(glare, query) == expected
    assert len(few) == 0
