# SPDX-License-Identifier: Apache-2.0

"""Publications and yanks at the same time, by two processes of Glance over one database."""

import concurrent.futures
import itertools
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
import sqlalchemy

from glare_murano import images as form
from glare_murano import wire
from tests import packages
from tests.functional import databases
from tests.functional.client import refusal
from tests.functional.glance import service, stored
from tests.functional.glance.image_client import ImageClient

pytestmark = pytest.mark.services

UNPUBLISHED = {form.PUBLISHED: ""}
_counter = itertools.count()


@pytest.fixture(scope="module", params=[databases.mariadb, databases.postgresql])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[service.Glance]:
    """Two processes over one database, with the index for large clouds."""
    with stored.running(tmp_path_factory.mktemp("site"), request.param, count=2) as running:
        engine = sqlalchemy.create_engine(running.database, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql((service.ETC / "glance-indexes.sql").read_text())
        engine.dispose()
        yield running


@pytest.fixture
def fqn() -> str:
    return f"org.at.once{next(_counter)}"


def _clients(site: service.Glance, project: str, roles: str, count: int) -> list[ImageClient]:
    """Clients of all processes in turn."""
    urls = itertools.islice(itertools.cycle(site.urls), count)
    return [ImageClient(url, f"user:{project}:{roles}") for url in urls]


def _at_once(calls: list[Callable[[], requests.Response]]) -> list[requests.Response]:
    barrier = threading.Barrier(len(calls), timeout=60)

    def start(call: Callable[[], requests.Response]) -> requests.Response:
        barrier.wait()
        return call()

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(start, calls))


def _stored(site: service.Glance, fqn: str, project: str, **require: str) -> str:
    """Store a package that does not count yet, and return the id of its image."""
    data = packages.package(fqn, Require={"io.murano": "*", **require})
    package = stored.package(data, project, properties=UNPUBLISHED)
    stored.store(site, [package])
    return package.id


@pytest.mark.parametrize("attempt", range(2))
def test_one_of_two_packages_of_a_name_becomes_public(
    site: service.Glance, fqn: str, attempt: int
) -> None:
    names = [f"{fqn}.n{number}" for number in range(20)]
    ids = [[_stored(site, name, f"project{number}") for name in names] for number in range(2)]
    clients = _clients(site, "admin", "admin,member,reader", 4)

    answers = _at_once(
        [
            lambda client=client, own=own: client.publications(*own, visibility="public")
            for client, own in zip(clients, itertools.cycle(ids), strict=False)
        ]
    )

    found = [{clients[0].show(id_)["visibility"] for id_ in own} for own in ids]
    assert sorted(found, key=str) == [{"private"}, {"public"}]
    expected = [200 if own == {"public"} else 409 for own in found]
    assert [answer.status_code for answer in answers] == expected * 2


def test_a_yank_reads_the_package_again_after_its_lock(site: service.Glance, fqn: str) -> None:
    image_id = _stored(site, fqn, "yankers")
    (client,) = _clients(site, "yankers", "member,reader", 1)
    renaming = sqlalchemy.text("UPDATE images SET name = 'renamed' WHERE id = :id")

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with site.connection() as connection:
            connection.execute(renaming, {"id": image_id})
            yank = pool.submit(client.yank, image_id, "loses data")
            # The yank has read the package, and waits for the lock.
            assert not concurrent.futures.wait([yank], timeout=2).done
        refused = yank.result()

    assert refused.status_code == 409
    assert "its name or its project has changed" in refused.text
    assert form.YANKED not in client.show(image_id)


@pytest.mark.parametrize(
    ("properties", "change"),
    [
        (UNPUBLISHED, lambda client, id_: client.publications(id_, visibility="private")),
        ({}, lambda client, id_: client.delete(id_)),
    ],
    ids=["publication", "deletion"],
)
def test_a_change_does_not_wait_for_ever(
    site: service.Glance,
    fqn: str,
    properties: dict[str, str],
    change: Callable[[ImageClient, str], requests.Response],
) -> None:
    data = packages.package(fqn, Require={"io.murano": "*"})
    package = stored.package(data, "patient", properties=properties)
    stored.store(site, [package])
    (client,) = _clients(site, "patient", "member,reader", 1)

    with site.connection() as connection:
        lock = sqlalchemy.text("SELECT id FROM images WHERE id = :id FOR UPDATE")
        connection.execute(lock, {"id": package.id})
        start = time.monotonic()
        refused = change(client, package.id)
        seconds = time.monotonic() - start

    assert refused.status_code == 409
    assert "other requests are changing these packages; try again" in refused.text
    # MariaDB's own limit is 50 seconds; PostgreSQL has none.
    assert seconds < 40
    assert change(client, package.id).ok


def test_a_draft_is_deleted_although_its_import_ends_meanwhile(
    site: service.Glance, fqn: str
) -> None:
    data = packages.package(fqn, Require={"io.murano": "*"})
    lock = {"os_glance_import_task": str(uuid.uuid4())}
    importing = {"status": "importing"}
    draft = stored.package(data, "importers", changed=importing, properties={**UNPUBLISHED, **lock})
    stored.store(site, [draft])
    (client,) = _clients(site, "importers", "member,reader", 1)
    unlocking = sqlalchemy.text("DELETE FROM image_properties WHERE value = :lock")

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with site.connection() as connection:
            connection.execute(unlocking, {"lock": lock["os_glance_import_task"]})
            deletion = pool.submit(client.delete, draft.id)
            # The deletion has read the property, and waits for the lock.
            assert not concurrent.futures.wait([deletion], timeout=2).done
        deleted = deletion.result()

    assert deleted.status_code == 204, deleted.text
    assert stored.count_rows(site, draft.id) == {}


def test_packages_of_a_cycle_are_seen_together_or_not_at_all(
    site: service.Glance, fqn: str
) -> None:
    names = [f"{fqn}.{letter}" for letter in "abcd"]
    ids = [
        _stored(site, name, "cyclists", **{required: "1"})
        for name, required in zip(names, [*names[1:], names[0]], strict=True)
    ]
    clients = _clients(site, "cyclists", "member,reader", 8)
    ended = threading.Event()
    seen = set()

    def watch() -> None:
        reader = clients[1]
        while not ended.is_set():
            answer = reader.resolve(requirements=dict.fromkeys(names, "1")).json()
            seen.add(len([r for r in answer["releases"] if r["name"] in names]))

    watcher = threading.Thread(target=watch)
    watcher.start()
    # Locks are taken in one order, whatever that of a request is.
    orders = [ids if number % 2 else ids[::-1] for number in range(len(clients))]
    answers = _at_once(
        [
            lambda client=client, order=order: client.publications(*order)
            for client, order in zip(clients, orders, strict=True)
        ]
    )
    ended.set()
    watcher.join()

    assert {answer.status_code for answer in answers} == {200}
    activated = [change["actions"] for answer in answers for change in answer.json()["artifacts"]]
    assert activated.count(["activate"]) == len(ids)
    assert seen <= {0, len(ids)}


def test_saves_by_glance_lose_neither_publication_nor_yank(site: service.Glance, fqn: str) -> None:
    id_ = _stored(site, fqn, "savers")
    writer, owner = _clients(site, "savers", "member,reader", 2)
    assert writer.set(id_, "note", "0", "add").ok
    ended = threading.Event()
    failed: list[Any] = []

    def save() -> None:
        for number in itertools.count():
            answer = writer.set(id_, "note", str(number))
            if not answer.ok:
                failed.append(answer.text)
            if ended.is_set():
                return

    thread = threading.Thread(target=save)
    thread.start()
    try:
        assert owner.publications(id_).status_code == 200
        for reason in ["one", "", "two", "", "three", "", "four"] * 3:
            assert owner.yank(id_, reason).status_code == 200
            for _ in range(3):
                found = owner.show(id_)
                assert found[form.PUBLISHED]
                assert found.get(form.YANKED, "") == reason
    finally:
        ended.set()
        thread.join()
    assert not failed


def test_a_refused_publication_leaves_nothing(site: service.Glance, fqn: str) -> None:
    ids = [_stored(site, f"{fqn}.a", "p"), _stored(site, f"{fqn}.b", "p", **{f"{fqn}.c": "1"})]
    client, _ = _clients(site, "p", "member,reader", 2)

    assert client.publications(*ids).status_code == 409
    assert client.publications(ids[0], dry_run=True).status_code == 200

    assert not client.show(ids[0]).get(form.PUBLISHED)
    found = client.resolve(requirements={f"{fqn}.a": "*"}).json()
    assert found["releases"] == []


def test_names_are_compared_by_case_and_wildcards_are_letters(
    site: service.Glance, fqn: str
) -> None:
    upper, other = fqn.upper(), fqn.replace(".", "_", 1)
    rows = [
        stored.package(packages.package(name, Require={"io.murano": "*"}), "cases")
        for name in (upper, other)
    ]
    stored.store(site, rows)
    client, _ = _clients(site, "cases", "member,reader", 2)

    objects = [{"class": f"{name}.Thing", "version": "*"} for name in (fqn, upper, other)]
    answer = client.resolve(requirements={fqn: "*", upper: "*"}, objects=objects).json()

    found = {each["name"] for each in answer["releases"]} - {"io.murano"}
    assert found == {upper, other}
    assert [each["name"] for each in answer["unsatisfied"]] == [fqn]
    assert [each["class"] for each in answer["undefined"]] == [f"{fqn}.Thing"]


def test_dependents_and_subclasses_are_found(site: service.Glance, fqn: str) -> None:
    base, extending = f"{fqn}.base", f"{fqn}.extending"
    require = {base: "1", "io.murano": "*"}
    rows = [
        stored.package(packages.package(base, Require={"io.murano": "*"}), "families"),
        stored.package(packages.extending(extending, f"{base}.Thing", Require=require), "families"),
    ]
    stored.store(site, rows)
    client, _ = _clients(site, "families", "member,reader", 2)

    found = client.subclasses(f"{base}.Thing").json()["subclasses"]
    assert [each["class"] for each in found] == [f"{extending}.Thing"]
    assert f"{extending} 1.0.0 ({base} 1)" in refusal(client.delete(rows[0].id), 409)


@pytest.mark.parametrize(
    "name", ["mur\u00e1no", "\u200bmurano", "\uff4durano"], ids=["accent", "no width", "wide"]
)
def test_a_property_that_a_database_takes_for_another_publishes_nothing(
    site: service.Glance, fqn: str, name: str
) -> None:
    client, _ = _clients(site, "lookalikes", "member,reader", 2)
    draft = stored.package(
        packages.package(fqn, Require={"io.murano": "*", f"{fqn}.missing": "1"}), "lookalikes"
    )
    stored.store(site, [draft])
    _delete_property(site, draft.id, form.PUBLISHED)

    assert client.set(draft.id, f"{name}_published", "x", "add").status_code == 200
    assert client.set(draft.id, f"{name}_yanked", "x", "add").status_code == 200

    found = client.resolve(requirements={fqn: "*"}).json()
    assert found["releases"] == []
    assert client.resolve(objects=[{"class": f"{fqn}.Thing"}]).json()["releases"] == []
    assert client.publications(draft.id).status_code == 409


def test_a_package_with_such_properties_can_be_published_and_yanked(
    site: service.Glance, fqn: str
) -> None:
    client, _ = _clients(site, "lookalikes", "member,reader", 2)
    draft = stored.package(packages.package(fqn, Require={"io.murano": "*"}), "lookalikes")
    stored.store(site, [draft])
    _delete_property(site, draft.id, form.PUBLISHED)
    for name in (form.PUBLISHED, form.YANKED):
        assert client.set(draft.id, name.replace("a", "\u00e1"), "x", "add").status_code == 200

    assert client.publications(draft.id).status_code == 200
    assert form.is_release(client.show(draft.id))
    (release,) = client.resolve(requirements={fqn: "1"}).json()["releases"][:1]
    assert not release.get("yanked")
    assert client.yank(draft.id, "a reason").status_code == 200
    assert client.show(draft.id)[form.YANKED] == "a reason"


def test_versions_that_cannot_be_published_again_are_listed(site: service.Glance, fqn: str) -> None:
    client, _ = _clients(site, "deletions", "member,reader", 2)
    kinds = ("deleted", "deleted.draft", "draft", "free")
    deleted, deleted_draft, draft, free = (f"{fqn}.{kind}" for kind in kinds)
    release = stored.package(packages.package(deleted, Require={"io.murano": "*"}), "deletions")
    stored.store(site, [release])
    assert client.delete(release.id).status_code == 204
    assert client.delete(client.create(deleted_draft).json()["id"]).status_code == 204
    assert client.create(draft).status_code == 201
    # On MariaDB, an id in capitals is the same.
    stranger = ImageClient(client.url, "user:stranger:member,reader")
    id_ = client.id_of(free, "1.0.0").upper()
    assert stranger.create(free, id=id_, container_format="bare").status_code == 403

    names = (deleted, deleted_draft, draft, free)
    assert client.lost(*((name, "1.0.0") for name in names)) == [(deleted, "1.0.0")]
    statuses = [client.create(name).status_code for name in names]
    assert statuses == [409, 201, 409, 201]


@pytest.mark.parametrize("number", range(6))
def test_a_draft_is_either_published_or_deleted_without_a_trace(
    site: service.Glance, fqn: str, number: int
) -> None:
    name = f"{fqn}.number{number}"
    client, other = _clients(site, "racing", "member,reader", 2)
    data = packages.package(name, Require={"io.murano": "*"})
    draft = stored.package(data, "racing", properties=UNPUBLISHED)
    stored.store(site, [draft])

    published, deleted = _at_once(
        [lambda: other.publications(draft.id), lambda: client.delete(draft.id)]
    )

    # The publication may be first, too late, or during the deletion.
    assert published.status_code in (200, 404, 409)
    assert ("another request is deleting" in published.text) is (published.status_code == 409)
    assert deleted.status_code == 204, deleted.text
    is_kept = published.status_code == 200
    assert client.lost((name, "1.0.0")) == [(name, "1.0.0")] * is_kept
    assert bool(stored.count_rows(site, draft.id)) is is_kept
    assert client.create(name).status_code == (409 if is_kept else 201)


def test_a_package_is_not_found_by_its_id_in_capitals(site: service.Glance, fqn: str) -> None:
    rows = [
        stored.package(packages.package(name, Require={"io.murano": "*", **require}), "capitals")
        for name, require in ((fqn, {}), (f"{fqn}.requiring", {fqn: "1"}))
    ]
    stored.store(site, rows)
    client, _ = _clients(site, "capitals", "member,reader", 2)
    draft = client.create(f"{fqn}.draft").json()["id"]
    machine = client.create("server", id=str(uuid.uuid4()), container_format="bare").json()["id"]

    for refused in (
        client.delete(rows[0].id.upper()),
        client.request("POST", f"/v2/images/{rows[0].id.upper()}/actions/deactivate"),
        client.set(rows[0].id.upper(), "name", "org.renamed"),
        client.put(draft.upper(), b"data"),
    ):
        assert refused.status_code == 404
    # The answer does not show whether somebody else's package exists.
    stranger = ImageClient(site.url, "user:strangers:member,reader")
    missing = stranger.id_of(f"{fqn}.missing", "1.0.0").upper()
    hidden, nothing = (
        stranger.request("GET", f"/v2/images/{id_}") for id_ in (rows[0].id.upper(), missing)
    )
    assert (hidden.status_code, hidden.headers["Content-Type"]) == (404, "application/json")
    assert hidden.text.replace(rows[0].id.upper(), missing) == nothing.text
    assert form.is_release(client.show(rows[0].id))
    assert not (site.staging / draft.upper()).exists()
    # Any other image is found as Glance finds it.
    is_found = site.database.startswith("mysql")
    found = client.request("GET", f"/v2/images/{machine.upper()}").status_code
    assert found == (200 if is_found else 404)


@pytest.mark.parametrize("project", ["Neighbour", "neighb\u00f6ur", "neighbour"])
def test_projects_are_compared_by_case_and_accents(
    site: service.Glance, fqn: str, project: str
) -> None:
    """The package of a project and one that is shared with it, for projects with similar ids."""
    own, shared = (
        stored.package(
            packages.package(f"{fqn}.{owner}", Require={"io.murano": "*"}),
            owner,
            visibility,
            members=members,
        )
        for owner, visibility, members in (
            ("neighbour", "private", {}),
            ("owner", "shared", {"neighbour": "accepted"}),
        )
    )
    stored.store(site, [own, shared])
    client = ImageClient(site.url, f"user:{project}:member,reader".encode().decode("latin-1"))
    names = [f"{fqn}.{owner}" for owner in ("neighbour", "owner")]
    is_same = project == "neighbour"

    found = client.resolve(requirements=dict.fromkeys(names, "1")).json()["releases"]
    classes = [{"class": f"{name}.Thing", "version": "*"} for name in names]
    defined = client.resolve(objects=classes).json()
    closures = [client.resolve(package=each.id).status_code for each in (own, shared)]
    archives = client.query(wire.ARCHIVES_PATH, artifacts=[own.id, shared.id])
    yanks = [client.yank(each.id, "a reason").status_code for each in (own, shared)]

    expected = names if is_same else []
    assert sorted({each["name"] for each in found} - {"io.murano"}) == expected
    assert sorted({each["name"] for each in defined["releases"]} - {"io.murano"}) == expected
    assert closures == [200 if is_same else 404] * 2
    assert all((each.id.encode() in archives.content) is is_same for each in (own, shared))
    assert yanks == ([200, 403] if is_same else [404, 404])


def test_an_id_with_nul_is_refused(site: service.Glance, fqn: str) -> None:
    client, _ = _clients(site, "nul", "member,reader", 2)
    draft = client.create(fqn).json()["id"]
    data = {"data": b"x", "headers": {"Content-Type": "application/octet-stream"}}

    answers = [
        client.request("GET", f"/v2/images/{draft}%00"),
        client.request("DELETE", "/v2/images/%00"),
        client.set(f"{draft}%00", "note", "a", "add"),
        client.request("POST", f"/v2/images/{draft}%00/actions/deactivate"),
        client.request("PUT", f"/v2/images/{draft}%00/stage", **data),
        client.start_import(f"{draft}%00"),
        client.request("DELETE", f"/v2/images/{draft}/members/%00"),
        client.request("GET", f"/v2/images?marker={draft}%00"),
        client.request("GET", "/v2/tasks/%00"),
        client.create(fqn, id="\0"),
        client.resolve(package="\0"),
        client.publications("\0"),
        client.yank("\0", "a reason"),
    ]

    assert {answer.status_code for answer in answers} == {400}
    assert "the URL contains the character NUL" in answers[0].json()["error"]["message"]


def _delete_property(site: service.Glance, image_id: str, name: str) -> None:
    table = sqlalchemy.table("image_properties", *map(sqlalchemy.column, ("image_id", "name")))
    with site.connection() as connection:
        is_this = sqlalchemy.and_(table.c.image_id == image_id, table.c.name == name)
        connection.execute(sqlalchemy.delete(table).where(is_this))
