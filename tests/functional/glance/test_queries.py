# SPDX-License-Identifier: Apache-2.0

"""Which packages the API of the real Glance finds, and in how many statements."""

import io
import itertools
import tarfile
from collections.abc import Callable
from typing import Any

import pytest

from glare_murano import images as form
from glare_murano.budget import Budget
from glare_murano.glance.db.glance_database import GlanceDatabase
from glare_murano.package import VersionSpec
from glare_murano.resolver import plan
from glare_murano.service.database import Viewer
from glare_murano.service.source import METADATA_CACHE, CatalogSource
from glare_murano.wire import ARCHIVES_PATH, Query
from tests import packages
from tests.functional.client import refusal
from tests.functional.glance import stored
from tests.functional.glance.conftest import Statements
from tests.functional.glance.image_client import ImageClient
from tests.functional.glance.service import Glance

Clients = Callable[..., ImageClient]
BUDGET = Budget(3600, "")

# The case -> how another project keeps the package, and who finds it by name, and by id:
# the test's project (P), an administrator (A).
CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "private": ({}, "A", "A"),
    "public": ({"visibility": "public"}, "PA", "PA"),
    "accepted": ({"visibility": "shared", "members": {"P": "accepted"}}, "PA", "PA"),
    "pending": ({"visibility": "shared", "members": {"P": "pending"}}, "A", "PA"),
    "rejected": ({"visibility": "shared", "members": {"P": "rejected"}}, "A", "PA"),
    "with others": ({"visibility": "shared", "members": {"X": "accepted"}}, "A", "A"),
    "no more shared": ({"visibility": "private", "members": {"P": "accepted"}}, "A", "A"),
    "community": ({"visibility": "community"}, "", "PA"),
    "deactivated": (
        {"visibility": "public", "changed": {"status": "deactivated"}},
        "",
        "PA",
    ),
    "renamed": ({"visibility": "public", "changed": {"name": "org.renamed"}}, "", ""),
    "given away": ({"visibility": "public", "changed": {"owner": "X"}}, "", ""),
    "unpublished": ({"visibility": "public", "properties": {form.PUBLISHED: ""}}, "", "PA"),
    "a server": ({"visibility": "public", "changed": {"container_format": "bare"}}, "", ""),
    "importing": ({"visibility": "public", "changed": {"status": "importing"}}, "", ""),
    "shown": ({"visibility": "public", "changed": {"os_hidden": False}}, "PA", "PA"),
    "forged version": ({"visibility": "public", "properties": {form.VERSION: "9.0.0"}}, "", ""),
    "no version": ({"visibility": "public", "properties": {form.VERSION: "one"}}, "", ""),
}


@pytest.mark.parametrize("case", CASES)
def test_packages_are_visible_as_glance_has_it(
    glance: Glance, images: ImageClient, image_admin: ImageClient, package_name: str, case: str
) -> None:
    kept, by_name, by_id = CASES[case]
    members = {images.project if m == "P" else m: s for m, s in kept.get("members", {}).items()}
    data = packages.package(package_name, Require={"io.murano": "*"})
    package = stored.package(data, f"{images.project}-other", **{**kept, "members": members})
    stored.store(glance, [package])

    def finders(**query: Any) -> str:
        found = ""
        for letter, client in (("P", images), ("A", image_admin)):
            answer = client.resolve(**query)
            releases = answer.json().get("releases", []) if answer.ok else []
            found += letter * (package.id in [release["id"] for release in releases])
        return found

    assert finders(requirements={package_name: "*"}) == by_name
    assert finders(objects=[{"class": f"{package_name}.Thing", "version": "*"}]) == by_name
    assert finders(package=package.id) == by_id
    # An administrator's token does not show what the project itself would not see.
    restricted = finders(requirements={package_name: "*"}, project_id=images.project)
    assert restricted == ("PA" if "P" in by_name else "")


@pytest.mark.parametrize(
    "case", [case for case, (_, found, _) in CASES.items() if found or case == "community"]
)
def test_archives_are_sent_to_those_who_may_download_them(
    glance: Glance, images: ImageClient, image_admin: ImageClient, package_name: str, case: str
) -> None:
    kept = CASES[case][0]
    members = {images.project if m == "P" else m: s for m, s in kept.get("members", {}).items()}
    data = packages.package(package_name)
    package = stored.package(data, f"{images.project}-other", **{**kept, "members": members})
    stored.store(glance, [package])

    for client in (images, image_admin):
        answer = client.query(ARCHIVES_PATH, artifacts=[package.id])
        with tarfile.open(fileobj=io.BytesIO(answer.content)) as batch:
            sent = [batch.extractfile(member).read() for member in batch]  # type: ignore[union-attr]
        download = client.request("GET", f"/v2/images/{package.id}/file")
        assert sent == ([data] if download.status_code == 200 else [])


def test_the_own_package_is_preferred_to_a_public_one(
    glance: Glance, images: ImageClient, package_name: str
) -> None:
    data = packages.package(package_name)
    owners = {images.project: "private", f"{images.project}-b": "public"}
    rows = [stored.package(data, owner, visibility) for owner, visibility in owners.items()]
    stored.store(glance, rows)

    releases = images.resolve(requirements={package_name: "*"}).json()["releases"]

    assert [each["id"] for each in releases if each["name"] == package_name] == [rows[0].id]


def test_a_public_package_is_preferred_to_shared_ones(
    glance: Glance, images: ImageClient, package_name: str
) -> None:
    data = packages.package(package_name)
    owners = sorted(
        (f"{images.project}-{letter}" for letter in "abcd"),
        key=lambda owner: form.image_id(owner, package_name, "1.0.0"),
    )
    members = {images.project: "accepted"}
    shared = [stored.package(data, owner, "shared", members=members) for owner in owners[1:]]
    # Without a preference, the package with the last id would be chosen.
    public = stored.package(data, owners[0], "public")
    stored.store(glance, [public, *shared])

    releases = images.resolve(requirements={package_name: "*"}).json()["releases"]

    assert [each["id"] for each in releases if each["name"] == package_name] == [public.id]


def test_names_are_compared_by_case(glance: Glance, images: ImageClient, package_name: str) -> None:
    data = packages.package(package_name.upper())
    stored.store(glance, [stored.package(data, images.project)])

    answer = images.resolve(
        requirements={package_name: "*"},
        objects=[{"class": f"{package_name}.Thing", "version": "*"}],
    ).json()

    assert answer["releases"] == []
    assert [missing["name"] for missing in answer["unsatisfied"]] == [package_name]
    assert [missing["class"] for missing in answer["undefined"]] == [f"{package_name}.Thing"]


def test_wildcards_of_databases_are_letters_of_names(
    glance: Glance, images: ImageClient, package_name: str
) -> None:
    names = [f"{package_name}.a_b", f"{package_name}.axb"]
    stored.store(glance, [stored.package(packages.package(n), images.project) for n in names])

    found = images.resolve(objects=[{"class": f"{names[0]}.Thing", "version": "*"}]).json()

    assert {each["name"] for each in found["releases"]} - {"io.murano"} == {names[0]}


def test_many_classes_are_looked_up_at_once(
    glance: Glance, images: ImageClient, package_name: str
) -> None:
    names = [f"{package_name}.n{number}" for number in range(20)]
    stored.store(glance, [stored.package(packages.package(n), images.project) for n in names])

    found = images.resolve(
        objects=[{"class": f"{name}.Thing", "version": "*"} for name in names]
    ).json()

    assert {each["name"] for each in found["releases"]} - {"io.murano"} == set(names)
    assert found["undefined"] == []


def test_the_package_of_a_query_needs_an_archive(
    images: ImageClient, images_of: Clients, package_name: str
) -> None:
    empty = images.create(package_name).json()["id"]

    assert images.resolve(package=empty).status_code == 409
    assert images_of("stranger").resolve(package=empty).status_code == 404


def test_members_are_shown_to_the_owner_alone(
    glance: Glance, images: ImageClient, images_of: Clients, package_name: str
) -> None:
    owner, other = (f"{images.project}-{letter}" for letter in "ab")
    data = packages.package(package_name, Require={"io.murano": "*"})
    members = {images.project: "accepted", other: "accepted"}
    stored.store(glance, [stored.package(data, owner, "shared", members=members)])

    def finds(project: str, project_id: str) -> bool:
        query = {"requirements": {package_name: "*"}, "project_id": project_id}
        releases = images_of(project).resolve(**query).json()["releases"]
        return package_name in [each["name"] for each in releases]

    assert finds(images.project, images.project)
    assert not finds(images.project, other)
    assert finds(owner, other)


# A property of a package -> what the import plug-in would not write.
UNREADABLE = [
    (form.REQUIREMENTS, "{"),
    (form.REQUIREMENTS, "[]"),
    (form.REQUIREMENTS, '{"a.b": 1}'),
    (form.REQUIREMENTS, '{"a.b": "newest"}'),
    (form.REQUIREMENTS, '{"a..b": "1"}'),
    (form.CLASSES, "["),
    (form.CLASSES, '[1, "a"]'),
    (form.SHA256, ""),
    (form.SHA256, "none"),
]


@pytest.mark.parametrize(("name", "value"), UNREADABLE)
def test_a_package_that_cannot_be_read_is_left_out(
    glance: Glance, images: ImageClient, package_name: str, name: str, value: str
) -> None:
    core = {"io.murano": "*"}
    good, bad, requiring = (
        stored.package(
            packages.package(fqn, version, Require={**core, **require}),
            images.project,
            properties=properties,
        )
        for fqn, version, require, properties in (
            (package_name, "1.0.0", {}, {}),
            (package_name, "2.0.0", {}, {name: value}),
            (f"{package_name}.requiring", "1.0.0", {package_name: ">=1"}, {}),
        )
    )
    stored.store(glance, [good, bad, requiring])

    for query in (
        {"requirements": {requiring.contents.manifest.fqn: "1"}},
        {"objects": [{"class": f"{package_name}.Thing", "version": "*"}]},
    ):
        answer = images.resolve(**query).json()
        assert package_name not in [missing["name"] for missing in answer["unsatisfied"]]
        assert {good.id} == {r["id"] for r in answer["releases"] if r["name"] == package_name}
    assert images.resolve(package=bad.id).status_code == 404
    assert images.resolve(package=good.id).status_code == 200
    refused = images.request("POST", f"/v2/images/{good.id}/actions/deactivate")
    assert refused.status_code in (204, 409)


@pytest.mark.parametrize("value", ["{", "[]", '{"%s.Thing": 1}'])
def test_subclasses_are_listed_without_what_cannot_be_read(
    glance: Glance, images: ImageClient, package_name: str, value: str
) -> None:
    unreadable = {form.property_name("inherits"): value.replace("%s", package_name)}
    package = stored.package(packages.package(package_name), images.project, properties=unreadable)
    stored.store(glance, [package])

    found = images.subclasses(f"{package_name}.Thing")

    assert (found.status_code, found.json()["subclasses"]) == (200, [])


def test_requirements_that_cannot_be_read_are_not_published(
    glance: Glance, images: ImageClient, package_name: str
) -> None:
    unpublished = {form.REQUIREMENTS: "{", form.PUBLISHED: ""}
    package = stored.package(packages.package(package_name), images.project, properties=unpublished)
    stored.store(glance, [package])

    refused = refusal(images.publications(package.id), 409)

    assert f"{form.REQUIREMENTS} is not valid JSON" in refused


@pytest.mark.parametrize("count", [1, 20, 100])
def test_the_packages_of_classes_are_looked_up_and_no_others(
    glance: Glance,
    statements: Statements,
    project: str,
    count: int,
) -> None:
    connection, executed = statements
    fqns = [f"org.{project}.n{number}" for number in range(40)]
    rows = [stored.package(packages.package(fqn), project) for fqn in fqns]
    stored.store(glance, rows)
    database = GlanceDatabase(connection, Viewer(project, is_admin=False), BUDGET)
    wanted = {f"{fqns[0]}.Thing", *(f"org.none.n{number}.Thing" for number in range(1, count))}

    assert list(database.find_defining(wanted)) == [(f"{fqns[0]}.Thing", rows[0].id)]
    *searches, looked_up = executed
    # Sixteen classes are searched at once; of more than 64, all lists are read.
    assert len(searches) == {1: 1, 20: 2, 100: 1}[count]
    # The id, and what is visible to the project.
    assert looked_up.count("?") < len(fqns)


def test_the_statements_grow_with_the_depth_alone(
    glance: Glance, statements: Statements, project: str
) -> None:
    connection, executed = statements
    counter = itertools.count()

    def count(width: int, depth: int, versions: int, **kept: Any) -> int:
        prefix = f"org.{project}.x{next(counter)}"
        rows = []
        for column, level, minor in itertools.product(range(width), range(depth), range(versions)):
            required = {f"{prefix}.c{column}.l{level + 1}": "1"} if level + 1 < depth else {}
            data = packages.package(
                f"{prefix}.c{column}.l{level}",
                f"1.{minor}.0",
                Require={"io.murano": "*", **required},
            )
            rows.append(stored.package(data, **{"owner": project, **kept}))
        stored.store(glance, rows)
        database = GlanceDatabase(connection, Viewer(project, is_admin=False), BUDGET)
        source = CatalogSource(database, Query())
        roots = [(f"{prefix}.c{column}.l0", VersionSpec.of("1")) for column in range(width)]
        executed.clear()
        METADATA_CACHE.clear()
        closure = plan(roots, {}, source)
        assert len([each for each in closure.releases if each.fqn.startswith(prefix)]) == (
            width * depth
        )
        assert len(list(source.releases(closure.releases))) == len(closure.releases)
        first = len(executed)
        again = CatalogSource(GlanceDatabase(connection, database.viewer, BUDGET), Query())
        assert plan(roots, {}, again).releases == closure.releases
        # The metadata is remembered: a statement for each level, and one for its members.
        is_shared = "members" in kept
        levels = (first - is_shared * depth) // 2
        assert len(executed) - first == levels + is_shared * depth
        return first

    few = count(width=1, depth=2, versions=1)
    assert count(width=6, depth=2, versions=3) == few
    deeper = [count(width=1, depth=depth, versions=1) for depth in (3, 4)]
    # Versions and metadata.
    assert deeper == [few + 2, few + 4]
    shared = {"owner": "another", "visibility": "shared", "members": {project: "accepted"}}
    # Members as well, on each level but for io.murano's.
    assert count(width=3, depth=2, versions=2, **shared) == few + 2
