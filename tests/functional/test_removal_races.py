# SPDX-License-Identifier: Apache-2.0

"""Publications in Glare, and removals of what they require, at once in two API processes."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

import pytest
import requests
import sqlalchemy

from benchmarks import catalogue
from loader.catalogs.glare import GlareRepository
from tests.functional import races, sites
from tests.functional.client import Client, refusal
from tests.functional.races import DEACTIVATED, DRAFT, OWNER, PUBLIC, RELEASE, REMOVALS, Races
from tests.functional.sites import Site

pytestmark = [pytest.mark.services, pytest.mark.timeout(races.SECONDS)]

# The state of a package, and what Glare says of it.
_STATES = {
    RELEASE: "active private",
    PUBLIC: "active public",
    DRAFT: "drafted private",
    DEACTIVATED: "deactivated private",
}

site = sites.fixture(sites.of_database, sites.SHARED_DATABASES)


class TestGlare(Races):
    """The races of both services in Glare, and Glare's own."""

    def package(
        self, name: str, state: str, version: str = "1.0.0", owner: str = OWNER, **require: str
    ) -> catalogue.Artifact:
        status, visibility = _STATES[state].split()
        contents = catalogue.contents(name, version, {"io.murano": "*", **require})
        return catalogue.Artifact(contents, owner, visibility, status)

    def store(self, site: Site, *packages: Sequence[catalogue.Artifact]) -> None:
        with site.database.begin() as connection:
            for each in packages:
                catalogue.insert(connection, each)

    def states(self, site: Site, packages: Sequence[catalogue.Artifact]) -> list[str]:
        columns = map(sqlalchemy.column, ("id", "status", "visibility"))
        table = sqlalchemy.table("glare_artifacts", *columns)
        with site.database.connect() as connection:
            rows = {row.id: row for row in connection.execute(sqlalchemy.select(table))}
        found = (rows.get(each.id) for each in packages)
        return [races.state_of(row and f"{row.status} {row.visibility}", _STATES) for row in found]

    def client(self, site: Site, process: int = 0, role: str = "admin") -> Client:
        return site.client(OWNER, process, role)

    def repository(self, client: Client) -> GlareRepository:
        return GlareRepository(client.session(), project_id=OWNER, endpoint=client.url)

    def locked(
        self, site: Site, package: catalogue.Artifact, is_shared: bool
    ) -> AbstractContextManager[None]:
        return races.locked(site.database, "glare_artifacts", package.id, is_shared)

    def publish(self, client: Client, id_: str) -> requests.Response:
        return client.publish_all([id_], "private")

    def publish_for_all(self, client: Client, id_: str) -> requests.Response:
        return client.publish_all([id_], "public")

    def activate(self, client: Client, id_: str) -> requests.Response:
        return client.set(id_, "status", "active")

    def publicize(self, client: Client, id_: str) -> requests.Response:
        return client.set(id_, "visibility", "public")

    def delete(self, client: Client, id_: str) -> requests.Response:
        return client.delete(id_)

    def deactivate(self, client: Client, id_: str) -> requests.Response:
        return client.set(id_, "status", "deactivated")

    def yank(self, client: Client, id_: str) -> requests.Response:
        return client.yank(id_, "loses data")

    @REMOVALS
    def test_a_draft_is_activated_or_loses_what_it_requires(
        self, site: Site, names: list[str], remove: str, removed: str
    ) -> None:
        self.test_a_package_is_published_or_loses_what_it_requires(
            site, names, "activate", DRAFT, remove, removed
        )

    def test_the_first_request_of_a_process_may_be_a_publication(
        self, site: Site, names: list[str]
    ) -> None:
        artifact = self.package(names[0], DRAFT)
        self.store(site, [artifact])

        with sites.api(site.folder, "fresh") as url:
            answer = self.publish(Client(url, f"user:{OWNER}:member"), artifact.id)

        assert answer.status_code == 200, answer.text

    @pytest.mark.timeout(120)
    def test_a_change_does_not_wait_for_ever(self, site: Site, names: list[str]) -> None:
        package = self.package(names[0], RELEASE)
        self.store(site, [package])
        owner = self.client(site, role="member")

        with self.locked(site, package, is_shared=False):
            # The client waits for 60 seconds. MariaDB's own limit is 50 seconds, and Glare repeats
            # such a transaction; PostgreSQL has no limit.
            refused = refusal(owner.set(package.id, "yanked", "late"), 409)

        assert "other requests are changing these packages; try again" in refused
        assert owner.set(package.id, "yanked", "in time").ok
