# SPDX-License-Identifier: Apache-2.0

"""Names that belong to projects, in the real Glance: who publishes, and what is chosen."""

import pathlib
import uuid
from collections.abc import Callable, Iterator

import pytest

from glare_murano import images as form
from glare_murano.package import VersionSpec
from glare_murano.package.reserved_names import ReservedNames
from glare_murano.wire import Query
from loader import resolution
from tests import packages
from tests.functional.client import message, refusal
from tests.functional.glance import service, stored
from tests.functional.glance.conftest import Catalogs
from tests.functional.glance.image_client import ImageClient
from tests.functional.openstack_command import OpenStack

NAMES = """
org.reserved: [owner]
org.nobody.: []
"""
_ADMIN = "admin,member,reader"
_OVERRIDE = {"X-Murano-Override-Checks": "true"}


def with_names(file: pathlib.Path) -> Callable[[pathlib.Path], object]:
    """Return a change of the configuration that names a file of reserved names."""

    def change(folder: pathlib.Path) -> None:
        conf = folder / "glance-api.conf"
        conf.write_text(f"{conf.read_text()}\n[murano_packages]\nreserved_names_file = {file}\n")

    return change


@pytest.fixture(scope="module")
def reserving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[service.Glance]:
    """A Glance with a file of reserved names."""
    file = tmp_path_factory.mktemp("names") / "reserved-names.yaml"
    file.write_text(NAMES)
    folder = tmp_path_factory.mktemp("glance")
    with stored.running(folder, change=with_names(file)) as running:
        yield running


def test_a_mistake_in_the_file_keeps_glance_from_starting(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "names.yaml"
    file.write_text("org: x")

    with (
        pytest.raises(AssertionError, match=r" ended: "),
        service.running(tmp_path, change=with_names(file)),
    ):
        pass

    logged = "".join(path.read_text() for path in tmp_path.rglob("*.log"))
    assert f"[murano_packages] reserved_names_file: {file}, line 1: org: expected a list" in logged


def _client(glance: service.Glance, project: str, roles: str = "member,reader") -> ImageClient:
    return ImageClient(glance.url, f"user:{project}:{roles}")


def test_a_core_library_is_refused_to_those_who_may_not_publicize(
    glance: service.Glance, images: ImageClient, core_library: str
) -> None:
    refused = images.create("io.murano", "0.99.0")

    assert "io.murano is Murano's core library" in refusal(refused, 403)
    # A draft that was created in another way is not published either.
    data = packages.package("io.murano", "0.98.0")
    draft = stored.package(data, images.project, properties={form.PUBLISHED: ""})
    stored.store(glance, [draft])
    answer = images.publications(draft.id)
    assert (answer.status_code, "[name-reserved]" in message(answer)) == (403, True)


@pytest.mark.parametrize("roles", ["member,reader", _ADMIN])
def test_a_draft_of_another_project_is_refused(reserving: service.Glance, roles: str) -> None:
    client = _client(reserving, f"tenant-{len(roles)}", roles)
    name = "org.reserved.db"

    text = refusal(client.create(name), 403)

    assert "under the prefix org.reserved, which is reserved for project owner" in text
    assert client.request("GET", f"/v2/images/{client.id_of(name, '1.0.0')}").status_code == 404
    # The name of an image of another kind is not the name of a package.
    machine = client.create(name, id=str(uuid.uuid4()), container_format="bare")
    assert machine.status_code == 201
    owner = _client(reserving, "owner")
    version = f"1.{len(roles)}.0"
    draft = owner.publish_draft(name, version, packages.package(name, version))
    assert owner.publications(draft["id"]).status_code == 200


def test_a_class_of_another_project_is_refused_at_the_import(reserving: service.Glance) -> None:
    client = _client(reserving, "classes")
    files = packages.content("org.own", Classes={"org.nobody.Db": "Thing.yaml"})

    image = client.publish_draft("org.own", "1.0.0", packages.zipped(files))

    assert image["status"] == "queued"
    assert (
        "may not define org.nobody.Db, which is under the prefix org.nobody" in image[form.REFUSAL]
    )
    assert "reserved for the operator" in image[form.REFUSAL]


def test_an_earlier_package_is_neither_published_nor_chosen(
    reserving: service.Glance, catalog_of: Catalogs, tmp_path: pathlib.Path
) -> None:
    name = "org.reserved.old"
    rows = [
        stored.package(packages.package(name, version), project, visibility, properties=properties)
        for version, project, visibility, properties in (
            ("3.0.0", "tenant", "private", {}),
            ("2.0.0", "other", "public", {}),
            ("1.0.0", "owner", "public", {}),
            ("4.0.0", "tenant", "private", {form.PUBLISHED: ""}),
        )
    ]
    stored.store(reserving, rows)
    admin = _client(reserving, "tenant", _ADMIN)

    for id_, visibility in ((rows[0].id, "public"), (rows[3].id, "private")):
        body = {"ids": [id_], "visibility": visibility}
        answer = admin.request("POST", "/murano/v1/publications", json=body, headers=_OVERRIDE)
        assert answer.status_code == 403, answer.text
    assert admin.set(rows[0].id, "visibility", "public").status_code == 403
    # Its name does not matter to other changes.
    for visibility in ("shared", "private"):
        assert admin.set(rows[0].id, "visibility", visibility).status_code == 200

    reserved = ReservedNames.parse(NAMES.encode(), "names")
    thing = ((f"{name}.Thing", VersionSpec.of("*")),)
    for query in (Query(((name, VersionSpec.of("*")),), why=True), Query(classes=thing, why=True)):
        catalog = catalog_of("tenant", url=reserving.url)
        for resolved in (
            resolution.resolve([catalog], query),
            resolution.by_level([catalog], query, reserved=reserved),
        ):
            chosen = [c.release for c in resolved.chosen if c.release.fqn == name]
            assert [str(release.version) for release in chosen] == ["1.0.0"]
            assert {str(each.key.version) for each in resolved.excluded} == {"2.0.0", "3.0.0"}

    file = tmp_path / "names.yaml"
    file.write_text(NAMES)
    command = OpenStack(tmp_path, reserving.url, admin.token)
    command.add_glance("test", reserving.url, admin.token)
    listed = command.json("package", "reserved", file)
    found = {(row["Version"], row["Owner"]) for row in listed if row["Name"] == name}
    assert found == {("4.0.0", "tenant"), ("3.0.0", "tenant"), ("2.0.0", "other")}


def test_a_core_library_that_is_only_shared_is_not_chosen(
    glance: service.Glance, core_library: str, catalog_of: Catalogs, project: str
) -> None:
    accepted = {project: "accepted"}
    stored.store(
        glance,
        [
            stored.package(packages.package("io.murano", "0.97.0"), project),
            stored.package(
                packages.package("io.murano", "0.96.0"), "p1", "shared", members=accepted
            ),
            stored.package(packages.package("io.murano", "0.95.0"), "p1", "community"),
        ],
    )
    query = Query((("io.murano", VersionSpec.of("*")),))

    for catalog in (catalog_of(project), catalog_of(project, community=True)):
        for resolve in (resolution.resolve, resolution.by_level):
            (choice,) = resolve([catalog], query).chosen
            assert choice.release.visibility == "public"


def test_private_packages_behind_public_ones_are_left_out(
    glance: service.Glance, core_library: str, catalog_of: Catalogs, project: str
) -> None:
    name = f"org.{project}.db"
    accepted = {project: "accepted"}
    stored.store(
        glance,
        [
            stored.package(packages.package(name, "1.0.0"), "p2", "public"),
            stored.package(packages.package(name, "1.0.0"), project),
            stored.package(packages.package(name, "3.0.0"), "p1", "shared", members=accepted),
        ],
    )
    catalog = catalog_of(project)

    for private_overrides, expected in ((True, ("3.0.0", "p1")), (False, ("1.0.0", "p2"))):
        query = Query(((name, VersionSpec.of("*")),), private_overrides=private_overrides)
        for resolve in (resolution.resolve, resolution.by_level):
            chosen = (choice.release for choice in resolve([catalog], query).chosen)
            (found,) = (release for release in chosen if release.fqn == name)
            assert (str(found.version), found.owner) == expected
