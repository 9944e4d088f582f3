# SPDX-License-Identifier: Apache-2.0

"""The pages of lists in both services: what they cost, and packages that come and go."""

import datetime
import itertools
import json
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from glare_murano.budget import Budget
from glare_murano.glance.db.glance_database import GlanceDatabase
from glare_murano.glare.options import SETTINGS
from glare_murano.package import Unplannable
from glare_murano.package_order import Order
from glare_murano.selection import Selection
from glare_murano.service import listed_packages, package_pages
from glare_murano.service.database import Viewer
from glare_murano.service.settings import Settings
from loader.catalogs.glance import GlanceRepository
from loader.catalogs.glare import GlareRepository
from loader.catalogs.repository import Repository
from loader.commands import dependency_graph
from loader.commands.package_search import Search
from loader.murano_api.package_lists import PackageList
from loader.references import PackageReference
from tests import packages
from tests.functional import statements as of_glare
from tests.functional.client import CATEGORIES, PACKAGES, Client, refusal
from tests.functional.glance import long_texts, stored
from tests.functional.glance.conftest import Statements
from tests.functional.glance.image_client import ImageClient
from tests.functional.glance.service import Glance, running

_minutes = itertools.count()


class Service(NamedTuple):
    """One of both services, for a project.

    :ivar publish: publishes a package, and returns its id.
    """

    repository: Repository
    get: Callable[..., Any]
    publish: Callable[..., str]
    delete: Callable[[str], Any]


@pytest.fixture(params=["glare", "glance"])
def service(
    request: pytest.FixtureRequest,
    glance: Glance,
    as_user: Callable[[str], Client],
    images: ImageClient,
) -> Service:
    project = images.project
    if request.param == "glare":
        client = as_user(project)

        def publish(fqn: str, version: str = "1.0.0", **keys: Any) -> str:
            return str(client.publish(fqn, version, packages.package(fqn, version, **keys))["id"])

        repository: Repository = GlareRepository(
            client.session(), project_id=project, endpoint=client.url
        )
        return Service(repository, client.query, publish, lambda id_: client.delete(id_))

    def store(fqn: str, version: str = "1.0.0", **keys: Any) -> str:
        created_at = stored.NOW + datetime.timedelta(minutes=next(_minutes))
        package = stored.package(
            packages.package(fqn, version, **keys), project, changed={"created_at": created_at}
        )
        stored.store(glance, [package])
        return package.id

    session = images.session()
    repository = GlanceRepository(session, project_id=project, endpoint=glance.url)
    return Service(repository, images.read, store, images.delete)


@pytest.mark.parametrize("distinct", ["", "name"])
@pytest.mark.parametrize(
    "sort", ["name", "name:desc", "display_name", "created_at,name", "relevance:desc,version"]
)
def test_a_list_goes_on_while_packages_come_and_go(
    service: Service, package_name: str, sort: str, distinct: str
) -> None:
    def publish(letter: str, version: str = "1.0.0") -> str:
        return service.publish(f"{package_name}.{letter}", version, Name=f"Thing {letter}")

    stays, goes = "bdfh", "ceg"
    ids = {letter: publish(letter) for letter in stays + goes}
    query = [("name", f"{package_name}.*"), ("sort", sort), ("limit", "2")]
    query += [("distinct", distinct)] if distinct else []
    answer = service.get(PACKAGES, query).json()
    seen = answer["packages"]
    for version, letter in enumerate("aiz", 2):
        last = answer["packages"][-1]["name"][-1]
        # The marker's own package is deleted, or replaced.
        if last in goes:
            assert service.delete(ids[last]).status_code == 204
        else:
            publish(last, f"{version}.0.0")
        publish(letter)
        answer = service.get(answer["next"]).json()
        seen += answer["packages"]
    while "next" in answer:
        answer = service.get(answer["next"]).json()
        seen += answer["packages"]

    listed = [each["name"][-1] for each in seen if each["version"] == "1.0.0"]
    assert len({each["id"] for each in seen}) == len(seen)
    assert set(stays) <= set(listed)
    if distinct and not sort.startswith("created_at"):
        assert len({each["name"] for each in seen}) == len(seen)


def test_each_list_takes_one_request(service: Service, package_name: str) -> None:
    for letter in "abc":
        service.publish(f"{package_name}.{letter}", Tags=["paged"])
    repository, counters = service.repository, service.repository._client._counters

    def count(use: Callable[[], Any]) -> int:
        before = counters.requests
        use()
        return counters.requests - before

    for filters in (
        {},
        {"order_by": ["name"]},
        {"order_by": ["created"], "sort_dir": "desc"},
        {"search": "thing,tag"},
        {"tag": ["paged", "other"]},
        {"category": ["Web"], "include_disabled": "true"},
        {"type": "library", "class_name": f"{package_name}.a.Thing"},
        {"id": ["5a4b5c5e-0000-4000-8000-000000000000"]},
        {"catalog": "true", "fqn": f"{package_name}.a"},
    ):
        listed = PackageList(filters, "project", is_catalog="catalog" in filters)
        assert count(lambda listed=listed: listed.page(repository, 2)) == 1, filters
    (first,) = PackageList({"tag": ["paged"]}, "project").page(repository, 1)
    second = PackageList({"tag": ["paged"], "marker": first.id, "search": "thing"}, "project")
    # Glance's client first reads a schema.
    repository.get(first.id)
    # The package of the marker is shown before.
    assert count(lambda: second.page(repository, 1)) == 2
    assert count(lambda: repository.categories(["active"])) == 1
    for search in (
        Search(f"{package_name}.*@<2"),
        Search(filters={"class_definitions": f"{package_name}.a.Thing"}),
        Search(subclass_of=f"{package_name}.a.Thing"),
    ):
        assert count(lambda search=search: list(search.run(repository))) == 1


def test_the_dependents_of_a_level_take_one_request(service: Service, package_name: str) -> None:
    names = [f"{package_name}.{letter}" for letter in "abc"]
    service.publish(package_name)
    for fqn in names:
        service.publish(fqn, Require={package_name: "1"})
    service.publish(f"{package_name}.all", Require=dict.fromkeys(names, "1"))
    repository = service.repository
    root = repository.find_one(PackageReference.parse(package_name))
    before = repository._client._counters.requests

    graph = dependency_graph.dependents_of(repository, root)

    assert len(graph) == 1 + 2 * len(names)
    # One for each level, and one more that finds nothing.
    assert repository._client._counters.requests - before == 3


QUERIES = ("", "distinct=name", "distinct=name&type=Library", "yanked=false&sort=name:desc")
OTHER_ORDERS = ("sort=display_name", "sort=created_at", "search=thing&sort=relevance")


@pytest.mark.parametrize("query", [*QUERIES, *OTHER_ORDERS])
def test_more_packages_take_no_more_statements_in_glare(
    glare: Client, name: str, query: str
) -> None:
    def executed() -> list[str]:
        with of_glare.recorded() as found:
            answer = glare.query(f"{PACKAGES}?{query}&limit=2&name={name}.*")
        assert "next" in answer.json()
        return [text for text, _ in found if "glare_artifact" in text]

    for letter in "abcd":
        glare.publish(f"{name}.{letter}", "1.0.0", packages.package(f"{name}.{letter}"))
    few = executed()
    for letter in "efghij":
        glare.publish(f"{name}.{letter}", "1.0.0", packages.package(f"{name}.{letter}"))

    # In the usual order, no more packages are even compared.
    assert executed() == few if query in QUERIES else len(executed()) == len(few)


@pytest.mark.parametrize("query", [*QUERIES, *OTHER_ORDERS])
def test_more_packages_take_no_more_statements_in_glance(
    glance: Glance, statements: Statements, project: str, query: str
) -> None:
    connection, executed = statements
    name = f"org.{project}"
    viewer, budget = Viewer(project, is_admin=False), Budget(60, "")
    database = GlanceDatabase(connection, viewer, budget)
    values = dict(each.split("=") for each in query.split("&") if each)
    order = Order.of(values.get("sort", "name,version:desc"))
    selection = Selection(
        {"name": [f"{name}.*"], **({"type": ["Library"]} if "type" in values else {})},
        [values["search"]] if "search" in values else (),
        distinct="name" if "distinct" in values else "",
    )

    def find(letters: str) -> list[str]:
        rows = [stored.package(packages.package(f"{name}.{each}"), project) for each in letters]
        stored.store(glance, rows)
        executed.clear()
        search = listed_packages.Search(selection, order, 2, None)
        found = list(itertools.islice(listed_packages.find(search, database, SETTINGS), 3))
        assert len(found) == 3
        return list(executed)

    few = find("abcd")
    many = find("efghij")
    assert many == few if query in QUERIES else len(many) == len(few)


def test_a_list_has_a_limit_of_time(
    service: Service,
    package_name: str,
    monkeypatch: pytest.MonkeyPatch,
    statements: Statements,
) -> None:
    service.publish(package_name)
    if isinstance(service.repository, GlareRepository):
        # On a fast machine, a list takes less than the smallest value of the option.
        monkeypatch.setattr(Settings, "plan_seconds", 0.0)
        for path, remedy in (
            (PACKAGES, "add conditions or request a smaller page"),
            (CATEGORIES, "request those of fewer statuses"),
        ):
            refused = service.get(path)
            expected = f" stopped, after 0 seconds; {remedy}, or raise the option plan_seconds"
            assert expected in refusal(refused, 400)
    else:
        viewer, budget = Viewer("project", is_admin=True), Budget(0, "add conditions")
        database = GlanceDatabase(statements[0], viewer, budget)
        for order in ("name", "display_name"):
            search = listed_packages.Search(Selection(), Order.of(order), 1, None)
            with pytest.raises(Unplannable, match=r"listing packages stopped.*; add conditions"):
                list(listed_packages.find(search, database, SETTINGS))
        with pytest.raises(Unplannable, match="stopped"):
            package_pages.list_categories(Selection(), database)


def test_a_page_has_a_limit_of_size(
    glare: Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for letter in "abcde":
        glare.publish(f"{name}.{letter}", "1.0.0", packages.package(f"{name}.{letter}"))
    query = [("name", f"{name}.*")]
    (first, *others) = glare.query(PACKAGES, query).json()["packages"]
    size = len(json.dumps(first))
    monkeypatch.setattr(package_pages, "_MAX_SIZE", 2 * size + 1)

    answer = glare.query(PACKAGES, query).json()
    sizes = [len(answer["packages"])]
    while "next" in answer:
        answer = glare.query(answer["next"]).json()
        sizes.append(len(answer["packages"]))
    assert sizes == [2, 2, 1]
    # A package that is too large is listed alone.
    monkeypatch.setattr(package_pages, "_MAX_SIZE", 1)
    assert glare.query(PACKAGES, query).json()["packages"] == [first]
    assert others


@pytest.mark.parametrize(
    "selection", [Selection({"tags": ["wanted"]}), Selection(words=["wanted"])], ids=["tag", "word"]
)
def test_the_database_searches_no_long_texts(
    glance: Glance, images: ImageClient, statements: Statements, selection: Selection
) -> None:
    """A search for many strings in such texts could not be interrupted."""
    project = images.project
    long_texts.store(glance, f"org.{project}", project)
    searched = []

    def like(pattern: str, text: str, _: str) -> bool:
        searched.append(len(text))
        return pattern.strip("%") in text

    connection, _ = statements
    connection.connection.driver_connection.create_function("like", 3, like)
    database = GlanceDatabase(connection, Viewer(project, is_admin=False), Budget(60, ""))
    search = listed_packages.Search(selection, Order.of("name"), 10, None)
    found = list(listed_packages.find(search, database, SETTINGS))

    assert [each.package.name[-1] for each in found] == ["a", "c", "d"]
    assert 0 < max(searched) < long_texts.LENGTH
    long_texts.check(images, f"org.{project}")


def test_a_page_reads_no_long_values_of_other_properties(
    glance: Glance, images: ImageClient
) -> None:
    project, count = images.project, 10
    properties = {f"own{number}": "x" * long_texts.LENGTH for number in range(100)}
    written = [packages.package(f"org.{project}.{letter}") for letter in "abcdefghij"]
    stored.store(glance, [stored.package(each, project, properties=properties) for each in written])
    query = [("name", f"org.{project}.*")]
    (process,) = glance.processes
    images.read(PACKAGES, [*query, ("tags", "none")])
    before = process.peak_memory()

    answer = images.read(PACKAGES, query).json()

    assert len(answer["packages"]) == count
    assert process.peak_memory() - before < count * 100 * long_texts.LENGTH / 2


def test_a_list_follows_policies_that_compare_other_properties(
    tmp_path: pathlib.Path, package_name: str
) -> None:
    def restrict(etc: pathlib.Path) -> None:
        (etc / "policy.d").mkdir()
        rule = '"get_image": "\'everybody\':%(audience)s"\n'
        (etc / "policy.d" / "audience.yaml").write_text(rule)

    with running(tmp_path, change=restrict) as glance:
        for letter, audience in ("a", "everybody"), ("b", "nobody"), ("c", "everybody"):
            archive = packages.package(f"{package_name}.{letter}")
            properties = {"audience": audience, "other": "x" * long_texts.LENGTH}
            stored.store(glance, [stored.package(archive, "owner", properties=properties)])
        client = ImageClient(glance.url, "user:owner:member,reader")
        listed = client.read(PACKAGES, []).json()["packages"]

    assert [each["name"][-1] for each in listed] == ["a", "c"]


def test_a_later_page_compares_no_more_packages(glare: Client, name: str) -> None:
    for letter in "abcdefgh":
        glare.publish(f"{name}.{letter}", "1.0.0", packages.package(f"{name}.{letter}"))

    def executed(path: str, query: Any = ()) -> tuple[list[int], str]:
        with of_glare.recorded() as found:
            answer = glare.query(path, query).json()
        counts = [text.count("?") for text, _ in found if "glare_artifact" in text]
        return counts, answer["next"]

    first, following = executed(PACKAGES, [("name", f"{name}.*"), ("limit", "2")])
    second, _ = executed(following)

    # The place at which the names begin, and the name of the marker.
    assert (len(second), second[0]) == (len(first), first[0] + 1)
    assert sum(second) <= sum(first) + 2


def test_a_search_reads_older_versions_only_if_the_newest_does_not_match(
    glare: Client, name: str
) -> None:
    ids = []
    for minor in range(7):
        # SQLite and MariaDB do not compare the first letter as Python does.
        tag = "Übung" if minor == 0 else "abung"
        version = f"1.{minor}.0"
        archive = packages.package(name, version, Tags=[tag])
        ids.append(glare.publish(name, version, archive)["id"])

    def listed(word: str) -> tuple[list[str], set[str]]:
        query = [("name", name), ("distinct", "name"), ("search", word), ("limit", "1")]
        with of_glare.recorded() as found:
            answer = glare.query(PACKAGES, query).json()
        used = {value for _, parameters in found for value in parameters or ()}
        return [each["version"] for each in answer["packages"]], used.intersection(ids)

    assert listed("ABUNG") == (["1.6.0"], {ids[6]})
    assert listed("übung") == (["1.0.0"], set(ids))
    assert listed("nothing") == ([], set())
