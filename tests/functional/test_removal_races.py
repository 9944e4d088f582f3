# SPDX-License-Identifier: Apache-2.0

"""Publications in Glare, and removals of what they require, at once in two API processes."""

import concurrent.futures
import functools
import random
from collections.abc import Callable, Collection

import pytest
import requests
import sqlalchemy

from benchmarks import catalogue
from loader.catalogs.glare import GlareRepository
from tests.functional import races, sites
from tests.functional.client import Client
from tests.functional.races import DONE, REFUSED, WARNED, End
from tests.functional.sites import Site

pytestmark = [pytest.mark.services, pytest.mark.timeout(races.SECONDS)]

_OWNER, _OTHER = "publishers", "others"
_ACTIVE, _PUBLIC, _DRAFT = "active private", "active public", "drafted private"
_DEACTIVATED, _DELETED = "deactivated private", "deleted"

_Send = Callable[[Client, str], requests.Response]


site = sites.fixture(sites.of_database, sites.SHARED_DATABASES)


@pytest.fixture
def names(request: pytest.FixtureRequest) -> list[str]:
    """A name for each round, which no other test uses."""
    prefix = "".join(each if each.isalnum() else "_" for each in request.node.name)
    return [f"org.{prefix}.n{number}" for number in range(races.ROUNDS)]


def _artifact(
    name: str, state: str, version: str = "1.0.0", owner: str = _OWNER, **require: str
) -> catalogue.Artifact:
    status, visibility = state.split()
    contents = catalogue.contents(name, version, {"io.murano": "*", **require})
    return catalogue.Artifact(contents, owner, visibility, status)


def _store(site: Site, *artifacts: Collection[catalogue.Artifact]) -> None:
    with site.database.begin() as connection:
        for each in artifacts:
            catalogue.insert(connection, each)


def _race(
    site: Site,
    first: tuple[_Send, list[catalogue.Artifact]],
    second: tuple[_Send, list[catalogue.Artifact]],
) -> list[End]:
    """Send requests for two lists of artifacts; return how each round ends."""
    (send, ones), (send_other, others) = first, second
    one, another = (site.client(_OWNER, process, "admin") for process in range(2))
    answers = races.run(
        lambda number: send(one, ones[number].id),
        lambda number: send_other(another, others[number].id),
    )
    states = zip(_states(site, ones), _states(site, others), strict=True)
    return [End(*answer, state) for answer, state in zip(answers, states, strict=True)]


def _states(site: Site, artifacts: Collection[catalogue.Artifact]) -> list[str]:
    columns = map(sqlalchemy.column, ("id", "status", "visibility"))
    table = sqlalchemy.table("glare_artifacts", *columns)
    with site.database.connect() as connection:
        rows = {row.id: row for row in connection.execute(sqlalchemy.select(table))}
    found = (rows.get(each.id) for each in artifacts)
    return [f"{row.status} {row.visibility}" if row else _DELETED for row in found]


def _publish(client: Client, id_: str) -> requests.Response:
    return client.publish_all([id_], "private")


def _publish_for_all(client: Client, id_: str) -> requests.Response:
    return client.publish_all([id_], "public")


def _activate(client: Client, id_: str) -> requests.Response:
    return client.set(id_, "status", "active")


def _publicize(client: Client, id_: str) -> requests.Response:
    return client.set(id_, "visibility", "public")


def _delete(client: Client, id_: str) -> requests.Response:
    return client.request("DELETE", f"/{id_}")


def _deactivate(client: Client, id_: str) -> requests.Response:
    return client.set(id_, "status", "deactivated")


def _yank(client: Client, id_: str) -> requests.Response:
    return client.yank(id_, "loses data")


_REMOVALS = pytest.mark.parametrize(
    ("remove", "removed"), [(_delete, _DELETED), (_deactivate, _DEACTIVATED)]
)


@_REMOVALS
@pytest.mark.parametrize(
    ("publish", "before"), [(_publish, _DRAFT), (_activate, _DRAFT), (_activate, _DEACTIVATED)]
)
def test_a_package_is_published_or_loses_what_it_requires(
    site: Site, names: list[str], publish: _Send, before: str, remove: _Send, removed: str
) -> None:
    packages = [_artifact(name, before, **{f"{name}.base": "1"}) for name in names]
    required = [_artifact(f"{name}.base", _ACTIVE) for name in names]
    _store(site, packages, required)

    ends = _race(site, (publish, packages), (remove, required))

    races.check(
        ends, {End(DONE, REFUSED, (_ACTIVE, _ACTIVE)), End(REFUSED, DONE, (before, removed))}
    )


@pytest.mark.parametrize("publish", [_publish_for_all, _publicize])
def test_a_package_becomes_public_or_loses_the_public_package_that_it_requires(
    site: Site, names: list[str], publish: _Send
) -> None:
    # The project of the package has another version of what it requires.
    packages = [_artifact(name, _ACTIVE, **{f"{name}.base": "1"}) for name in names]
    own = [_artifact(f"{name}.base", _ACTIVE, "1.1.0") for name in names]
    required = [_artifact(f"{name}.base", _PUBLIC) for name in names]
    _store(site, packages, own, required)

    ends = _race(site, (publish, packages), (_delete, required))

    races.check(
        ends, {End(DONE, REFUSED, (_PUBLIC, _PUBLIC)), End(REFUSED, DONE, (_ACTIVE, _DELETED))}
    )


def test_a_yank_counts_or_warns(site: Site, names: list[str]) -> None:
    packages = [_artifact(name, _DRAFT, **{f"{name}.base": "1"}) for name in names]
    required = [_artifact(f"{name}.base", _ACTIVE) for name in names]
    _store(site, packages, required)

    ends = _race(site, (_publish, packages), (_yank, required))

    races.check(
        ends, {End(DONE, WARNED, (_ACTIVE, _ACTIVE)), End(REFUSED, DONE, (_DRAFT, _ACTIVE))}
    )


@_REMOVALS
def test_one_of_two_packages_stays_that_satisfy_a_requirement(
    site: Site, names: list[str], remove: _Send, removed: str
) -> None:
    packages = [_artifact(name, _ACTIVE, **{f"{name}.base": "1"}) for name in names]
    versions = [
        [_artifact(f"{name}.base", _ACTIVE, version) for name in names]
        for version in ("1.0.0", "1.1.0")
    ]
    _store(site, packages, *versions)

    ends = _race(site, (_delete, versions[0]), (remove, versions[1]))

    races.check(
        ends, {End(DONE, REFUSED, (_DELETED, _ACTIVE)), End(REFUSED, DONE, (_ACTIVE, removed))}
    )


@pytest.mark.parametrize("publish", [_publish_for_all, _publicize])
def test_one_of_two_packages_of_a_name_and_version_becomes_public(
    site: Site, names: list[str], publish: _Send
) -> None:
    packages = [
        [_artifact(name, _ACTIVE, owner=owner) for name in names] for owner in (_OWNER, _OTHER)
    ]
    _store(site, *packages)

    ends = _race(site, (_publicize, packages[0]), (publish, packages[1]))

    races.check(
        ends, {End(DONE, REFUSED, (_PUBLIC, _ACTIVE)), End(REFUSED, DONE, (_ACTIVE, _PUBLIC))}
    )


def test_the_first_request_of_a_process_may_be_a_publication(site: Site, names: list[str]) -> None:
    artifact = _artifact(names[0], _DRAFT)
    _store(site, [artifact])

    with sites.api(site.folder, "fresh") as url:
        answer = _publish(Client(url, f"user:{_OWNER}:member"), artifact.id)

    assert answer.status_code == 200, answer.text


def test_no_tag_is_lost(site: Site, names: list[str]) -> None:
    artifact = _artifact(names[0], _ACTIVE)
    _store(site, [artifact])
    clients = [site.client(_OWNER, process) for process in range(3)]
    repositories = [
        GlareRepository(client.session(), project_id=_OWNER, endpoint=client.url)
        for client in clients
    ]

    races.add_tags(repositories, artifact.id)

    assert set(clients[0].show(artifact.id)["tags"]) >= races.TAGS


def test_no_active_package_lacks_what_it_requires_after_a_storm(
    site: Site, names: list[str]
) -> None:
    base, middle, top = (f"{names[0]}.{part}" for part in ("base", "middle", "top"))
    packages = [
        *(_artifact(base, _ACTIVE, version) for version in ("1.0.0", "1.1.0")),
        *(_artifact(middle, _ACTIVE, version, **{base: "1"}) for version in ("1.0.0", "1.1.0")),
        _artifact(top, _ACTIVE, **{middle: "1", base: "1.1"}),
    ]
    _store(site, packages)

    def send(client: Client, dice: random.Random) -> requests.Response:
        change = dice.choice((_activate, _deactivate))
        return change(client, dice.choice(packages).id)

    clients = [site.client(_OWNER, process, "admin") for process in range(4)]
    races.storm([functools.partial(send, client) for client in clients])

    states = _states(site, packages)
    active = [each for each, state in zip(packages, states, strict=True) if state == _ACTIVE]
    races.check_satisfied([each.contents.manifest for each in active], {base, middle})


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_publication_waits_only_for_removals(
    site: Site, names: list[str], is_shared: bool
) -> None:
    package = _artifact(names[0], _DRAFT, **{f"{names[0]}.base": "1"})
    required = _artifact(f"{names[0]}.base", _ACTIVE)
    _store(site, [package, required])

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with races.locked(site.database, "glare_artifacts", required.id, is_shared):
            sent = pool.submit(_publish, site.client(_OWNER), package.id)
            done = concurrent.futures.wait([sent], timeout=20 if is_shared else 1).done
        assert bool(done) is is_shared
        assert sent.result().status_code == 200


@pytest.mark.timeout(120)
def test_a_change_does_not_wait_for_ever(site: Site, names: list[str]) -> None:
    package = _artifact(names[0], _ACTIVE)
    _store(site, [package])
    owner = site.client(_OWNER)
    lock = sqlalchemy.text("SELECT id FROM glare_artifacts WHERE id = :id FOR UPDATE")

    with site.database.connect() as connection, connection.begin():
        connection.execute(lock, {"id": package.id})
        # The client waits for 60 seconds. MariaDB's own limit is 50 seconds, and Glare repeats
        # such a transaction; PostgreSQL has no limit.
        refused = owner.set(package.id, "yanked", "late")

    assert refused.status_code == 409, refused.text
    assert "other requests are changing these packages; try again" in refused.text
    assert owner.set(package.id, "yanked", "in time").ok
