# SPDX-License-Identifier: Apache-2.0

"""Several API processes over one database and one object store."""

import uuid
from collections.abc import Iterator

import pytest

from tests import packages
from tests.functional import databases, sites, swift
from tests.functional.sites import Site

pytestmark = pytest.mark.services

FORM = packages.FORM


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two API processes over MariaDB and Swift."""
    folder = tmp_path_factory.mktemp("site")
    with (
        databases.mariadb(folder) as connection,
        swift.swift(folder) as store,
        sites.of_processes(folder, connection, store) as site,
    ):
        yield site


def _package(name: str, **keys: object) -> bytes:
    return packages.package(name, more={"UI/ui.yaml": FORM}, **keys)


def test_what_comes_through_one_process_goes_through_another(site: Site, name: str) -> None:
    one, another = (site.client("project", number) for number in range(2))
    data = _package(name)
    before = site.store.contents()

    artifact_id = one.publish(name, "1.0.0", data)["id"]

    assert len(site.store.contents() - before) == 2
    assert another.request("GET", f"/{artifact_id}/archive").content == data
    assert another.request("GET", f"/{artifact_id}/ui_definition").content == FORM
    assert site.leftovers() == {}
    assert one.delete(artifact_id).status_code == 204
    assert another.request("GET", f"/{artifact_id}/archive").status_code == 404
    assert site.store.contents() == before
    assert site.leftovers() == {}


def test_a_second_archive_takes_the_place_of_the_first(site: Site, name: str) -> None:
    one, another = (site.client("project", number) for number in range(2))
    artifact_id = one.create(name).json()["id"]
    before = site.store.contents()
    assert one.upload(artifact_id, _package(name)).status_code == 200
    first = site.store.contents() - before
    data = _package(name, Author="Somebody else")

    assert another.upload(artifact_id, data).status_code == 200

    assert one.request("GET", f"/{artifact_id}/archive").content == data
    assert len(site.store.contents() - before) == len(first) == 2
    assert not site.store.contents() & first
    assert site.leftovers() == {}


def test_of_a_refused_archive_nothing_is_stored(site: Site, name: str) -> None:
    client = site.client("project")
    artifact_id = client.create(name).json()["id"]
    before = site.store.contents()

    assert client.upload(artifact_id, _package(name, Version="2.0.0")).status_code == 400

    assert site.store.contents() == before
    assert site.leftovers() == {}


def test_objects_that_no_row_names_are_swept(site: Site, name: str) -> None:
    """A segment without its object is what a killed process leaves."""
    client = site.client("project")
    data = _package(name)
    artifact_id = client.publish(name, "1.0.0", data)["id"]
    orphan = str(uuid.uuid4())
    for suffix in ("", "-00001"):
        site.store.put(orphan + suffix)
    site.store.put("README")

    swept = site.manage("sweep")

    assert (swept.returncode, swept.stderr) == (0, "")
    assert len(swept.stdout.splitlines()) == 2
    assert f"Deleted blob swift+config://murano/glare/{orphan}:" in swept.stdout
    assert client.request("GET", f"/{artifact_id}/archive").content == data
    assert site.leftovers() == {"stored, but not named": {"swift+config://murano/glare/README"}}
