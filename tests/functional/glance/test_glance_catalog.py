# SPDX-License-Identifier: Apache-2.0

"""The catalogue over the real Glance: what a project finds there, and what it downloads."""

import hashlib

import pytest

from glare_murano import images as form
from glare_murano.package import VersionSpec
from glare_murano.wire import Query
from loader import errors
from loader.catalogs.glance import GlanceCatalog
from loader.publishing import exports
from tests import packages
from tests.functional.glance import stored
from tests.functional.glance.conftest import Catalogs
from tests.functional.glance.image_client import ImageClient
from tests.functional.glance.service import Glance


@pytest.fixture
def catalog(catalog_of: Catalogs, project: str) -> GlanceCatalog:
    return catalog_of(project)


@pytest.fixture
def fqn(project: str) -> str:
    return f"org.{project}.db"


def _found(catalog: GlanceCatalog, name: str) -> list[str]:
    return [f"{release.version} {release.owner}" for release in catalog.releases(name)]


def test_releases_are_found_the_newest_first(
    glance: Glance, catalog: GlanceCatalog, project: str, fqn: str
) -> None:
    archives = {v: packages.package(fqn, v) for v in ("1.0.0", "1.1.0", "2.0.0-rc.1")}
    stored.store(glance, [stored.package(a, project) for a in archives.values()])

    found = list(catalog.releases(fqn))

    assert [str(release.version) for release in found] == ["2.0.0-rc.1", "1.1.0", "1.0.0"]
    release = found[1]
    assert release.id == form.image_id(project, fqn, "1.1.0")
    assert release.digest == hashlib.sha256(archives["1.1.0"]).hexdigest()
    assert release.size == len(archives["1.1.0"])
    assert release.classes == {f"{fqn}.Thing"}
    assert str(release.requirements["io.murano"]) == "0"
    assert (release.owner, release.visibility) == (project, "private")
    assert list(catalog.releases_defining(f"{fqn}.Thing")) == found
    assert list(catalog.releases_defining(f"{fqn}.Other")) == []
    assert list(catalog.releases(f"{fqn}.other")) == list(catalog.releases("a b")) == []


def test_archives_are_downloaded_and_compared_with_the_hash_of_glance(
    glance: Glance, catalog: GlanceCatalog, project: str, fqn: str
) -> None:
    archive = packages.package(fqn, "1.0.0")
    stored.store(glance, [stored.package(archive, project)])
    (release,) = catalog.releases(fqn)

    assert b"".join(catalog.fetch(release)) == archive
    assert catalog.counters.bytes == len(archive)

    (glance.folder / "images" / release.id).write_bytes(archive[:-1] + b"x")
    with pytest.raises(errors.DigestMismatch, match=f"the archive of {fqn} 1.0.0 .image "):
        list(catalog.fetch(release))


def test_an_archive_that_cannot_be_had_any_more_is_an_error_of_its_package(
    glance: Glance,
    catalog: GlanceCatalog,
    image_admin: ImageClient,
    images: ImageClient,
    project: str,
    fqn: str,
) -> None:
    archives = [packages.package(fqn, version) for version in ("1.0.0", "1.1.0")]
    stored.store(glance, [stored.package(archive, project) for archive in archives])
    newer, older = catalog.releases(fqn)
    answer = image_admin.request("POST", f"/v2/images/{older.id}/actions/deactivate")
    assert answer.status_code == 204, answer.text
    assert images.delete(newer.id).status_code == 204

    with pytest.raises(errors.CatalogError, match=f"archive of {fqn} 1.1.0 .*: it was deleted"):
        list(catalog.fetch(newer))
    with pytest.raises(errors.CatalogError, match=f"did not send the archive of {fqn} 1.0.0"):
        list(catalog.fetch(older))


@pytest.mark.parametrize(
    ("visibility", "members", "expected"),
    [
        ("private", {}, False),
        ("public", {}, True),
        ("community", {}, False),
        ("shared", {"me": "pending"}, False),
        ("shared", {"me": "rejected"}, False),
        ("shared", {"me": "accepted"}, True),
        ("shared", {"another": "accepted"}, False),
    ],
)
@pytest.mark.parametrize(
    "token", [("member,reader", ""), ("admin,member,reader", "admin")], ids=["own", "admin"]
)
def test_a_project_finds_what_glance_shows_it(
    glance: Glance,
    catalog_of: Catalogs,
    project: str,
    fqn: str,
    visibility: str,
    members: dict[str, str],
    expected: bool,
    token: tuple[str, str],
) -> None:
    owner = f"{project}-owner"
    of = {"me": project}
    shared = {of.get(name, name): status for name, status in members.items()}
    archive = packages.package(fqn, "1.0.0")
    stored.store(glance, [stored.package(archive, owner, visibility, members=shared)])
    roles, of_project = token

    catalog = catalog_of(project, roles, of_project)
    assert _found(catalog, fqn) == ([f"1.0.0 {owner}"] if expected else [])
    # The filter gives the same answer.
    answer = catalog.resolve(Query(((fqn, VersionSpec.of("1")),)))
    assert answer is not None
    named = [release.fqn for release, _ in answer.releases if release.fqn == fqn]
    assert named == [fqn] * expected
    assert _found(catalog_of(owner), fqn) == [f"1.0.0 {owner}"]


def test_community_packages_are_found_if_configured(
    glance: Glance, catalog_of: Catalogs, project: str, fqn: str
) -> None:
    archive = packages.package(fqn, "1.0.0")
    stored.store(glance, [stored.package(archive, "another", "community")])

    assert _found(catalog_of(project, community=True), fqn) == ["1.0.0 another"]


def test_own_packages_precede_public_ones_and_those_precede_shared_ones(
    glance: Glance, catalog: GlanceCatalog, project: str, fqn: str
) -> None:
    def version(text: str) -> bytes:
        return packages.package(fqn, text)

    accepted = {project: "accepted"}
    stored.store(
        glance,
        [
            *(
                stored.package(version(v), "p1", "shared", members=accepted)
                for v in ("1.0.0", "1.1.0", "1.2.0")
            ),
            *(stored.package(version(v), "p2", "public") for v in ("1.0.0", "1.1.0")),
            stored.package(version("1.0.0"), project),
        ],
    )

    expected = ["1.2.0 p1", "1.1.0 p2", f"1.0.0 {project}"]
    assert _found(catalog, fqn) == [
        *("1.2.0 p1", "1.1.0 p2", "1.1.0 p1"),
        *(f"1.0.0 {project}", "1.0.0 p2", "1.0.0 p1"),
    ]
    for text, owner in (found.split() for found in expected):
        answer = catalog.resolve(Query(((fqn, VersionSpec.of(text)),)))
        assert answer is not None
        owners = [release.owner for release, _ in answer.releases if release.fqn == fqn]
        assert owners == [owner]


@pytest.mark.parametrize(
    "change",
    [
        {"changed": {"status": "deactivated"}},
        {"changed": {"status": "queued"}},
        {"changed": {"container_format": "bare"}},
        {"changed": {"name": "org.forged"}},
        {"properties": {form.PUBLISHED: ""}},
        {"properties": {form.VERSION: "9.0.0"}},
        {"properties": {form.REQUIREMENTS: "{"}},
    ],
    ids=[
        *("deactivated", "queued", "another format", "renamed", "unpublished", "another version"),
        "broken",
    ],
)
def test_an_image_that_is_not_a_release_is_left_out(
    glance: Glance,
    catalog: GlanceCatalog,
    project: str,
    fqn: str,
    change: dict[str, dict[str, str]],
) -> None:
    archive = packages.package(fqn, "1.0.0")
    stored.store(glance, [stored.package(archive, project, **change)])

    for name in (fqn, "org.forged"):
        assert _found(catalog, name) == []
    assert list(catalog.releases_defining(f"{fqn}.Thing")) == []


def test_an_image_that_is_not_hidden_is_found_as_well(
    glance: Glance, catalog: GlanceCatalog, project: str, fqn: str
) -> None:
    archive = packages.package(fqn, "1.0.0")
    shown = stored.package(archive, project, changed={"os_hidden": False})
    stored.store(glance, [shown])

    assert _found(catalog, fqn) == [f"1.0.0 {project}"]


def test_missing_packages_are_named_with_range_and_requirer(
    glance: Glance, catalog: GlanceCatalog, project: str, fqn: str
) -> None:
    needs = {"io.murano": "0", f"{fqn}.client": ">=2"}
    stored.store(
        glance,
        [
            stored.package(packages.package(fqn, "1.0.0", Require=needs), project),
            stored.package(packages.package(f"{fqn}.client", "1.0.0"), project),
            stored.package(packages.package("io.murano", "0.0.1"), project, "public"),
        ],
    )

    with pytest.raises(errors.NoSuchPackage) as missing:
        exports.choose(catalog, fqn, VersionSpec.of("1"))

    assert str(missing.value).startswith(
        f"package {fqn}.client in the range >=2, required by {fqn} 1.0.0, was not found in Glance "
    )
    assert "available: 1.0.0" in str(missing.value)


def test_a_glance_that_is_down_or_refuses_is_an_error(
    catalog_of: Catalogs, project: str, fqn: str
) -> None:
    down = catalog_of(project, url="http://127.0.0.1:9", attempts=1)
    with pytest.raises(errors.CatalogUnavailable, match="Glance at http"):
        list(down.releases(fqn))

    nobody = catalog_of(project, roles="nothing")
    with pytest.raises(errors.CatalogError, match="status 403"):
        list(nobody.releases(fqn))


def test_a_service_that_is_not_glance_is_an_error(
    catalog_of: Catalogs, project: str, fqn: str, glare_url: str
) -> None:
    catalog = catalog_of(project, url=glare_url)
    # The filters of both services give the same answers.
    catalog._answers_queries = False

    with pytest.raises(errors.CatalogError, match="check that the configured URL"):
        list(catalog.releases(fqn))
