# SPDX-License-Identifier: Apache-2.0

"""Publications in Glance, and removals of what they require, at once in two processes."""

import contextlib
from collections.abc import Iterator, Sequence
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
from tests.functional.races import (
    DEACTIVATED,
    DELETED,
    DONE,
    DRAFT,
    OWNER,
    PUBLIC,
    REFUSED,
    RELEASE,
    End,
    Races,
)

pytestmark = [pytest.mark.services, pytest.mark.timeout(races.SECONDS)]

_MEMBER = "members"
_ROLES = {"admin": "admin,member,reader", "member": "member,reader"}
_MEMBERS = {_MEMBER: "accepted"}
_SHARED, _COMMUNITY, _PUBLIC_DRAFT = "shared", "community", "public draft"
# The state of a package, and what Glance says of its image: the status, the visibility, and
# whether the package is published.
_STATES = {
    RELEASE: "active private published",
    PUBLIC: "active public published",
    DRAFT: "active private draft",
    DEACTIVATED: "deactivated private published",
    _SHARED: "active shared published",
    _COMMUNITY: "active community published",
    _PUBLIC_DRAFT: "active public draft",
}


@pytest.fixture(scope="module", params=[databases.mariadb, databases.postgresql])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[service.Glance]:
    with stored.running(tmp_path_factory.mktemp("site"), request.param, count=2) as running:
        yield running


class TestGlance(Races):
    """The races of both services in Glance, and Glance's own."""

    def package(
        self, name: str, state: str, version: str = "1.0.0", owner: str = OWNER, **require: str
    ) -> stored.Package:
        status, visibility, kind = _STATES[state].split()
        return stored.package(
            packages.package(name, version, Require={"io.murano": "*", **require}),
            owner,
            visibility,
            members=_MEMBERS if state == _SHARED else {},
            changed={"status": status},
            properties={} if kind == "published" else {images.PUBLISHED: ""},
        )

    def store(self, site: service.Glance, *packages: Sequence[stored.Package]) -> None:
        stored.store(site, [each for some in packages for each in some])

    def states(self, site: service.Glance, packages: Sequence[stored.Package]) -> list[str]:
        query = (
            "SELECT i.id, i.status, i.visibility, p.value FROM images i "
            "LEFT JOIN image_properties p "
            "ON p.image_id = i.id AND p.name = 'murano_published' AND NOT p.deleted "
            "WHERE NOT i.deleted"
        )
        with site.connection() as connection:
            if connection.dialect.name == "mysql":
                query = query.replace("NOT p.deleted", "p.deleted = 0").replace("NOT i.", "0 = i.")
            rows = {row.id: row for row in connection.exec_driver_sql(query)}
        found = (rows.get(each.id) for each in packages)
        return [races.state_of(row and _written(row), _STATES) for row in found]

    def client(self, site: service.Glance, process: int = 0, role: str = "admin") -> ImageClient:
        return _client(site, process, OWNER, role)

    def repository(self, client: ImageClient) -> GlanceRepository:
        return GlanceRepository(client.session(), project_id=OWNER, endpoint=client.url)

    @contextlib.contextmanager
    def locked(
        self, site: service.Glance, package: stored.Package, is_shared: bool
    ) -> Iterator[None]:
        engine = sqlalchemy.create_engine(site.database)
        with races.locked(engine, "images", package.id, is_shared):
            yield
        engine.dispose()

    def publish(self, client: ImageClient, id_: str) -> requests.Response:
        body = {"ids": [id_], "visibility": "private"}
        return client.request("POST", wire.PUBLICATIONS_PATH, json=body)

    def publish_for_all(self, client: ImageClient, id_: str) -> requests.Response:
        body = {"ids": [id_], "visibility": "public"}
        return client.request("POST", wire.PUBLICATIONS_PATH, json=body)

    def activate(self, client: ImageClient, id_: str) -> requests.Response:
        return client.request("POST", f"/v2/images/{id_}/actions/reactivate")

    def publicize(self, client: ImageClient, id_: str) -> requests.Response:
        return client.set(id_, "visibility", "public")

    def delete(self, client: ImageClient, id_: str) -> requests.Response:
        return client.delete(id_)

    def deactivate(self, client: ImageClient, id_: str) -> requests.Response:
        return client.request("POST", f"/v2/images/{id_}/actions/deactivate")

    def hide(self, client: ImageClient, id_: str) -> requests.Response:
        return client.set(id_, "visibility", "private")

    def hide_from_lists(self, client: ImageClient, id_: str) -> requests.Response:
        return client.set(id_, "visibility", "community")

    def remove_member(self, client: ImageClient, id_: str) -> requests.Response:
        return client.request("DELETE", f"/v2/images/{id_}/members/{_MEMBER}")

    def reject(self, client: ImageClient, id_: str) -> requests.Response:
        body = {"status": "rejected"}
        return client.request("PUT", f"/v2/images/{id_}/members/{_MEMBER}", json=body)

    def yank(self, client: ImageClient, id_: str) -> requests.Response:
        return client.request("POST", wire.YANKS_PATH, json={"id": id_, "reason": "loses data"})

    def add_tags(self, client: ImageClient, id_: str) -> requests.Response:
        return client.set(id_, "package_tags", "value", "add")

    def add_description(self, client: ImageClient, id_: str) -> requests.Response:
        return client.set(id_, "package_description", "value", "add")

    @pytest.mark.parametrize(
        ("remove", "removed"), [("hide", RELEASE), ("hide_from_lists", _COMMUNITY)]
    )
    @pytest.mark.parametrize("publish", ["publish_for_all", "publicize"])
    def test_a_package_becomes_public_or_the_package_that_it_requires_is_hidden(
        self, site: service.Glance, names: list[str], publish: str, remove: str, removed: str
    ) -> None:
        self.test_a_package_becomes_public_or_loses_the_public_package_that_it_requires(
            site, names, publish, remove, removed
        )

    @pytest.mark.parametrize(
        ("remove", "removed", "remover"),
        [
            ("delete", DELETED, OWNER),
            ("hide", RELEASE, OWNER),
            ("remove_member", _SHARED, OWNER),
            ("reject", _SHARED, _MEMBER),
        ],
    )
    def test_a_member_publishes_a_package_or_loses_the_shared_package_that_it_requires(
        self, site: service.Glance, names: list[str], remove: str, removed: str, remover: str
    ) -> None:
        base = {name: {f"{name}.base": "1"} for name in names}
        requiring = [self.package(name, DRAFT, owner=_MEMBER, **base[name]) for name in names]
        required = [self.package(f"{name}.base", _SHARED) for name in names]
        self.store(site, requiring, required)
        clients = [_client(site, 0, _MEMBER, "member"), _client(site, 1, remover, "member")]

        ends = self.race(site, ("publish", requiring), (remove, required), clients)

        races.check(
            ends, {End(DONE, REFUSED, (RELEASE, _SHARED)), End(REFUSED, DONE, (DRAFT, removed))}
        )

    @pytest.mark.parametrize(("remove", "removed"), [("hide", RELEASE), ("remove_member", _SHARED)])
    def test_one_of_two_shared_packages_stays_that_satisfy_a_requirement(
        self, site: service.Glance, names: list[str], remove: str, removed: str
    ) -> None:
        base = {name: {f"{name}.base": "1"} for name in names}
        requiring = [self.package(name, RELEASE, owner=_MEMBER, **base[name]) for name in names]
        versions = [
            [self.package(f"{name}.base", _SHARED, version) for name in names]
            for version in ("1.0.0", "1.1.0")
        ]
        self.store(site, requiring, *versions)

        ends = self.race(site, ("hide", versions[0]), (remove, versions[1]))

        races.check(
            ends, {End(DONE, REFUSED, (RELEASE, _SHARED)), End(REFUSED, DONE, (_SHARED, removed))}
        )

    def test_saves_of_several_properties_do_not_undo_one_another(
        self, site: service.Glance, names: list[str]
    ) -> None:
        required = [self.package(name, RELEASE) for name in names]
        self.store(site, required)

        ends = self.race(site, ("add_tags", required), ("add_description", required))

        races.check(ends, {End(DONE, DONE, (RELEASE, RELEASE))})
        client = self.client(site, role="member")
        for package in required:
            assert {"package_tags", "package_description"} <= client.show(package.id).keys()

    def test_the_image_of_a_draft_becomes_public_or_the_draft_is_published_privately(
        self, site: service.Glance, names: list[str]
    ) -> None:
        """What the package requires is not public."""
        drafts = [self.package(name, DRAFT, **{f"{name}.base": "1"}) for name in names]
        self.store(site, drafts, [self.package(f"{name}.base", RELEASE) for name in names])

        ends = self.race(site, ("publish", drafts), ("publicize", drafts))

        races.check(
            ends,
            {
                End(DONE, REFUSED, (RELEASE, RELEASE)),
                End(REFUSED, DONE, (_PUBLIC_DRAFT, _PUBLIC_DRAFT)),
            },
        )


def _client(site: service.Glance, process: int, project: str, role: str) -> ImageClient:
    url = site.urls[process % len(site.urls)]
    return ImageClient(url, f"user:{project}:{_ROLES[role]}")


def _written(row: Any) -> str:
    return f"{row.status} {row.visibility} {'published' if row.value else 'draft'}"
