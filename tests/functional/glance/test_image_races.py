# SPDX-License-Identifier: Apache-2.0

"""Publications in Glance, and removals of what they require, at once in two processes."""

import concurrent.futures
import functools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import requests
import sqlalchemy

from glare_murano import images, wire
from loader.catalogs.glance import GlanceRepository
from tests import packages
from tests.functional import databases, races
from tests.functional.glance import service, stored
from tests.functional.glance.image_client import ImageClient
from tests.functional.races import DONE, REFUSED, WARNED, End

pytestmark = [pytest.mark.services, pytest.mark.timeout(races.SECONDS)]

_OWNER, _MEMBER, _OTHER = "owners", "members", "others"
_ADMIN = "admin,member,reader"
_MEMBERS = {_MEMBER: "accepted"}
# States of images: the status, the visibility, and whether the package is published.
_RELEASE, _PUBLIC = "active private published", "active public published"
_SHARED = "active shared published"
_DRAFT, _PUBLIC_DRAFT = "active private draft", "active public draft"
_DEACTIVATED, _DELETED = "deactivated private published", "deleted"

_Send = Callable[[ImageClient, str], requests.Response]
_Packages = list[stored.Package]


@pytest.fixture(scope="module", params=[databases.mariadb, databases.postgresql])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[service.Glance]:
    with stored.running(tmp_path_factory.mktemp("site"), request.param, count=2) as running:
        yield running


@pytest.fixture
def names(request: pytest.FixtureRequest) -> list[str]:
    """A name for each round, which no other test uses."""
    prefix = "".join(each if each.isalnum() else "_" for each in request.node.name)
    return [f"org.{prefix}.n{number}" for number in range(races.ROUNDS)]


def _package(
    name: str,
    state: str,
    version: str = "1.0.0",
    owner: str = _OWNER,
    members: dict[str, str] | None = None,
    **require: str,
) -> stored.Package:
    status, visibility, kind = state.split()
    data = packages.package(name, version, Require={"io.murano": "*", **require})
    return stored.package(
        data,
        owner,
        visibility,
        members=members or {},
        changed={"status": status},
        properties={} if kind == "published" else {images.PUBLISHED: ""},
    )


def _race(
    site: service.Glance,
    first: tuple[_Send, _Packages],
    second: tuple[_Send, _Packages],
    tokens: Sequence[str] = (f"user:{_OWNER}:{_ADMIN}",) * 2,
) -> list[End]:
    """Send requests for two lists of packages; return how each round ends."""
    (send, ones), (send_other, others) = first, second
    one, another = (ImageClient(*each) for each in zip(site.urls, tokens, strict=True))
    answers = races.run(
        lambda number: send(one, ones[number].id),
        lambda number: send_other(another, others[number].id),
    )
    states = zip(_states(site, ones), _states(site, others), strict=True)
    return [End(*answer, state) for answer, state in zip(answers, states, strict=True)]


def _states(site: service.Glance, found: _Packages) -> list[str]:
    query = (
        "SELECT i.id, i.status, i.visibility, p.value FROM images i LEFT JOIN image_properties p "
        "ON p.image_id = i.id AND p.name = 'murano_published' AND NOT p.deleted "
        "WHERE NOT i.deleted"
    )
    with site.connection() as connection:
        if connection.dialect.name == "mysql":
            query = query.replace("NOT p.deleted", "p.deleted = 0").replace("NOT i.", "0 = i.")
        rows = {row.id: row for row in connection.exec_driver_sql(query)}
    return [_state(rows.get(each.id)) for each in found]


def _state(row: Any) -> str:
    if row is None:
        return _DELETED
    return f"{row.status} {row.visibility} {'published' if row.value else 'draft'}"


def _publish(client: ImageClient, id_: str) -> requests.Response:
    return client.request(
        "POST", wire.PUBLICATIONS_PATH, json={"ids": [id_], "visibility": "private"}
    )


def _publish_for_all(client: ImageClient, id_: str) -> requests.Response:
    return client.request(
        "POST", wire.PUBLICATIONS_PATH, json={"ids": [id_], "visibility": "public"}
    )


def _reactivate(client: ImageClient, id_: str) -> requests.Response:
    return client.request("POST", f"/v2/images/{id_}/actions/reactivate")


def _publicize(client: ImageClient, id_: str) -> requests.Response:
    return client.set(id_, "visibility", "public")


def _delete(client: ImageClient, id_: str) -> requests.Response:
    return client.delete(id_)


def _deactivate(client: ImageClient, id_: str) -> requests.Response:
    return client.request("POST", f"/v2/images/{id_}/actions/deactivate")


def _hide(client: ImageClient, id_: str) -> requests.Response:
    return client.set(id_, "visibility", "private")


def _hide_from_lists(client: ImageClient, id_: str) -> requests.Response:
    return client.set(id_, "visibility", "community")


def _remove_member(client: ImageClient, id_: str) -> requests.Response:
    return client.request("DELETE", f"/v2/images/{id_}/members/{_MEMBER}")


def _reject(client: ImageClient, id_: str) -> requests.Response:
    body = {"status": "rejected"}
    return client.request("PUT", f"/v2/images/{id_}/members/{_MEMBER}", json=body)


def _yank(client: ImageClient, id_: str) -> requests.Response:
    return client.request("POST", wire.YANKS_PATH, json={"id": id_, "reason": "loses data"})


_REMOVALS = pytest.mark.parametrize(
    ("remove", "removed"), [(_delete, _DELETED), (_deactivate, _DEACTIVATED)]
)


@_REMOVALS
@pytest.mark.parametrize(("publish", "before"), [(_publish, _DRAFT), (_reactivate, _DEACTIVATED)])
def test_a_package_is_published_or_loses_what_it_requires(
    site: service.Glance,
    names: list[str],
    publish: _Send,
    before: str,
    remove: _Send,
    removed: str,
) -> None:
    requiring = [_package(name, before, **{f"{name}.base": "1"}) for name in names]
    required = [_package(f"{name}.base", _RELEASE) for name in names]
    stored.store(site, [*requiring, *required])

    ends = _race(site, (publish, requiring), (remove, required))

    races.check(
        ends, {End(DONE, REFUSED, (_RELEASE, _RELEASE)), End(REFUSED, DONE, (before, removed))}
    )


@pytest.mark.parametrize(
    ("remove", "removed"),
    [
        (_delete, _DELETED),
        (_hide, _RELEASE),
        (_hide_from_lists, "active community published"),
    ],
)
@pytest.mark.parametrize("publish", [_publish_for_all, _publicize])
def test_a_package_becomes_public_or_loses_the_public_package_that_it_requires(
    site: service.Glance, names: list[str], publish: _Send, remove: _Send, removed: str
) -> None:
    # The project of the package has another version of what it requires.
    requiring = [_package(name, _RELEASE, **{f"{name}.base": "1"}) for name in names]
    own = [_package(f"{name}.base", _RELEASE, "1.1.0") for name in names]
    required = [_package(f"{name}.base", _PUBLIC) for name in names]
    stored.store(site, [*requiring, *own, *required])

    ends = _race(site, (publish, requiring), (remove, required))

    races.check(
        ends, {End(DONE, REFUSED, (_PUBLIC, _PUBLIC)), End(REFUSED, DONE, (_RELEASE, removed))}
    )


@pytest.mark.parametrize(
    ("remove", "removed", "remover"),
    [
        (_delete, _DELETED, _OWNER),
        (_hide, _RELEASE, _OWNER),
        (_remove_member, _SHARED, _OWNER),
        (_reject, _SHARED, _MEMBER),
    ],
)
def test_a_member_publishes_a_package_or_loses_the_shared_package_that_it_requires(
    site: service.Glance, names: list[str], remove: _Send, removed: str, remover: str
) -> None:
    requiring = [_package(name, _DRAFT, owner=_MEMBER, **{f"{name}.base": "1"}) for name in names]
    required = [_package(f"{name}.base", _SHARED, members=_MEMBERS) for name in names]
    stored.store(site, [*requiring, *required])
    tokens = [f"user:{project}:member,reader" for project in (_MEMBER, remover)]

    ends = _race(site, (_publish, requiring), (remove, required), tokens)

    races.check(
        ends, {End(DONE, REFUSED, (_RELEASE, _SHARED)), End(REFUSED, DONE, (_DRAFT, removed))}
    )


def test_a_yank_counts_or_warns(site: service.Glance, names: list[str]) -> None:
    requiring = [_package(name, _DRAFT, **{f"{name}.base": "1"}) for name in names]
    required = [_package(f"{name}.base", _RELEASE) for name in names]
    stored.store(site, [*requiring, *required])

    ends = _race(site, (_publish, requiring), (_yank, required))

    races.check(
        ends, {End(DONE, WARNED, (_RELEASE, _RELEASE)), End(REFUSED, DONE, (_DRAFT, _RELEASE))}
    )


@_REMOVALS
def test_one_of_two_packages_stays_that_satisfy_a_requirement(
    site: service.Glance, names: list[str], remove: _Send, removed: str
) -> None:
    requiring = [_package(name, _RELEASE, **{f"{name}.base": "1"}) for name in names]
    versions = [
        [_package(f"{name}.base", _RELEASE, version) for name in names]
        for version in ("1.0.0", "1.1.0")
    ]
    stored.store(site, [*requiring, *versions[0], *versions[1]])

    ends = _race(site, (_delete, versions[0]), (remove, versions[1]))

    races.check(
        ends, {End(DONE, REFUSED, (_DELETED, _RELEASE)), End(REFUSED, DONE, (_RELEASE, removed))}
    )


@pytest.mark.parametrize("remove", [_hide, _remove_member])
def test_one_of_two_shared_packages_stays_that_satisfy_a_requirement(
    site: service.Glance, names: list[str], remove: _Send
) -> None:
    requiring = [_package(name, _RELEASE, owner=_MEMBER, **{f"{name}.base": "1"}) for name in names]
    versions = [
        [_package(f"{name}.base", _SHARED, version, members=_MEMBERS) for name in names]
        for version in ("1.0.0", "1.1.0")
    ]
    stored.store(site, [*requiring, *versions[0], *versions[1]])

    ends = _race(site, (_hide, versions[0]), (remove, versions[1]))

    removed = _RELEASE if remove is _hide else _SHARED
    races.check(
        ends, {End(DONE, REFUSED, (_RELEASE, _SHARED)), End(REFUSED, DONE, (_SHARED, removed))}
    )


@pytest.mark.parametrize("publish", [_publish_for_all, _publicize])
def test_one_of_two_packages_of_a_name_and_version_becomes_public(
    site: service.Glance, names: list[str], publish: _Send
) -> None:
    ours, theirs = (
        [_package(name, _RELEASE, owner=owner) for name in names] for owner in (_OWNER, _OTHER)
    )
    stored.store(site, [*ours, *theirs])

    ends = _race(site, (_publicize, ours), (publish, theirs))

    races.check(
        ends, {End(DONE, REFUSED, (_PUBLIC, _RELEASE)), End(REFUSED, DONE, (_RELEASE, _PUBLIC))}
    )


def test_no_tag_is_lost(site: service.Glance, names: list[str]) -> None:
    package = _package(names[0], _RELEASE)
    stored.store(site, [package])
    clients = [ImageClient(url, f"user:{_OWNER}:member,reader") for url in (*site.urls, site.url)]
    repositories = [
        GlanceRepository(client.session(), project_id=_OWNER, endpoint=client.url)
        for client in clients
    ]

    races.add_tags(repositories, package.id)

    assert set(repositories[0].get(package.id).fields["tags"]) == races.TAGS


def test_saves_of_several_properties_do_not_undo_one_another(
    site: service.Glance, names: list[str]
) -> None:
    required = [_package(name, _RELEASE) for name in names]
    stored.store(site, required)

    def send(client: ImageClient, id_: str, name: str) -> requests.Response:
        return client.set(id_, name, "value", "add")

    ends = _race(
        site,
        (functools.partial(send, name="package_tags"), required),
        (functools.partial(send, name="package_description"), required),
    )

    races.check(ends, {End(DONE, DONE, (_RELEASE, _RELEASE))})
    client = ImageClient(site.url, f"user:{_OWNER}:member,reader")
    for package in required:
        assert {"package_tags", "package_description"} <= client.show(package.id).keys()


def test_no_release_lacks_what_it_requires_after_a_storm(
    site: service.Glance, names: list[str]
) -> None:
    base, middle, top = (f"{names[0]}.{part}" for part in ("base", "middle", "top"))
    found = [
        *(_package(base, _RELEASE, version) for version in ("1.0.0", "1.1.0")),
        *(_package(middle, _RELEASE, version, **{base: "1"}) for version in ("1.0.0", "1.1.0")),
        _package(top, _RELEASE, **{middle: "1", base: "1.1"}),
    ]
    stored.store(site, found)

    def send(client: ImageClient, dice: random.Random) -> requests.Response:
        change = dice.choice((_reactivate, _deactivate))
        return change(client, dice.choice(found).id)

    clients = [ImageClient(url, f"user:{_OWNER}:{_ADMIN}") for url in site.urls * 2]
    races.storm([functools.partial(send, client) for client in clients])

    states = _states(site, found)
    active = [each for each, state in zip(found, states, strict=True) if state == _RELEASE]
    races.check_satisfied([each.contents.manifest for each in active], {base, middle})


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_publication_waits_only_for_removals(
    site: service.Glance, names: list[str], is_shared: bool
) -> None:
    package = _package(names[0], _DRAFT, **{f"{names[0]}.base": "1"})
    required = _package(f"{names[0]}.base", _RELEASE)
    stored.store(site, [package, required])
    client = ImageClient(site.url, f"user:{_OWNER}:{_ADMIN}")
    engine = sqlalchemy.create_engine(site.database)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with races.locked(engine, "images", required.id, is_shared):
            sent = pool.submit(_publish, client, package.id)
            done = concurrent.futures.wait([sent], timeout=20 if is_shared else 1).done
        assert bool(done) is is_shared
        assert sent.result().status_code == 200
    engine.dispose()


def test_the_image_of_a_draft_becomes_public_or_the_draft_is_published_privately(
    site: service.Glance, names: list[str]
) -> None:
    """What the package requires is not public."""
    drafts = [_package(name, _DRAFT, **{f"{name}.base": "1"}) for name in names]
    stored.store(site, [*drafts, *(_package(f"{name}.base", _RELEASE) for name in names)])

    ends = _race(site, (_publish, drafts), (_publicize, drafts))

    races.check(
        ends,
        {
            End(DONE, REFUSED, (_RELEASE, _RELEASE)),
            End(REFUSED, DONE, (_PUBLIC_DRAFT, _PUBLIC_DRAFT)),
        },
    )
