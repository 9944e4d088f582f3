# SPDX-License-Identifier: Apache-2.0

"""The commands on packages in the real Glance."""

import pathlib

import pytest

from glare_murano import images as form
from loader import PackageLoader
from loader.site import paths
from tests import packages
from tests.functional.glance import stored
from tests.functional.glance.image_client import ImageClient
from tests.functional.glance.service import Glance
from tests.functional.openstack_command import OpenStack


@pytest.fixture
def command(tmp_path: pathlib.Path, glance: Glance, project: str) -> OpenStack:
    """The command ``openstack`` as a member of the test's project, in a cloud without Glare."""
    made = OpenStack(tmp_path, glance.url, f"user:{project}:member,reader")
    made.add_glance("test", glance.url, f"user:{project}:member,reader")
    return made


@pytest.fixture
def fqn(glance: Glance, project: str) -> str:
    """A package of two versions, which requires another one."""
    name = f"org.{project}.wiki"
    needs = {"io.murano": "0", f"{name}.db": ">=1,<2"}
    archives = [
        packages.package(name, "1.0.0", Require=needs),
        packages.package(name, "1.1.0", Require=needs, Tags=["fast"]),
        packages.package(f"{name}.db", "1.2.0"),
    ]
    core = stored.package(packages.package("io.murano", "0.0.1"), project, "public")
    stored.store(glance, [core, *(stored.package(each, project) for each in archives)])
    return name


def test_packages_are_listed_and_shown(command: OpenStack, fqn: str, project: str) -> None:
    listed = command.json("package", "list", f"{fqn}*")
    assert [(row["Name"], row["Version"]) for row in listed] == [
        (fqn, "1.1.0"),
        (f"{fqn}.db", "1.2.0"),
    ]
    assert command.json("package", "list", "--tag", "fast")[0]["Version"] == "1.1.0"
    versions = command.json("package", "versions", fqn)
    assert [(row["Version"], row["Status"]) for row in versions] == [
        ("1.1.0", "active"),
        ("1.0.0", "active"),
    ]
    shown = command.json("package", "show", f"{fqn}.db")
    assert shown["id"] == form.image_id(project, f"{fqn}.db", "1.2.0")
    assert shown["required_by"] == [f"{fqn} 1.0.0", f"{fqn} 1.1.0"]
    command.fails("package", "show", "org.nothing", code=3)


def test_a_loader_of_the_cloud_loads_what_a_package_requires(
    command: OpenStack, fqn: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", command.environment["OS_CLIENT_CONFIG_FILE"])

    with PackageLoader.from_cloud("test", tmp_path / "cache") as loaded:
        wiki = loaded.load(fqn, "1")
        required = [loaded.load_requirement(wiki, each) for each in wiki.requirements]
        code, path = wiki.read_class(f"{fqn}.Thing")

    assert [f"{each.full_name} {each.version}" for each in (wiki, *required)] == [
        f"{fqn} 1.1.0",
        "io.murano 0.0.1",
        f"{fqn}.db 1.2.0",
    ]
    assert (f"{fqn}.Thing".encode() in code, path) == (True, "Classes/Thing.yaml")


def test_the_tree_of_a_package_is_drawn(command: OpenStack, fqn: str) -> None:
    tree = command.ok("package", "tree", fqn).out
    assert f"{fqn}.db 1.2.0" in tree
    assert f"{fqn} 1.1.0" in command.ok("package", "tree", "--reverse", f"{fqn}.db").out


def test_a_package_is_saved_with_its_closure(
    command: OpenStack, fqn: str, tmp_path: pathlib.Path
) -> None:
    folder = tmp_path / "saved"
    command.ok("package", "save", fqn, "--closure", "--file", folder)
    assert {path.name for path in folder.iterdir()} == {
        "io.murano.0.0.1.zip",
        f"{fqn}.1.1.0.zip",
        f"{fqn}.db.1.2.0.zip",
        "packages.bundle",
    }


def test_a_lock_file_is_created_and_checked(
    command: OpenStack, fqn: str, tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "packages.lock"
    locked = command.json("lock", "create", fqn, "--file", file)
    assert {row["Name"] for row in locked} == {"io.murano", fqn, f"{fqn}.db"}
    command.ok("lock", "check", "--file", file)

    command.ok("package", "deactivate", f"{fqn}@1.1.0")
    command.fails("lock", "check", "--file", file)


def test_properties_are_set_and_unset(command: OpenStack, fqn: str) -> None:
    def shown() -> list[object]:
        found = command.json("package", "show", f"{fqn}@1.1.0")
        return [found[name] for name in ("display_name", "tags", "categories")]

    assert shown() == ["A Thing", ["fast"], []]
    command.ok("package", "set", f"{fqn}@1.1.0", "--display-name", "Wiki", "--category", "Web")
    command.ok("package", "unset", f"{fqn}@1.1.0", "--all-tags")
    assert shown() == ["Wiki", [], ["Web"]]


def test_a_version_is_deactivated_reactivated_and_deleted(command: OpenStack, fqn: str) -> None:
    command.ok("package", "deactivate", f"{fqn}@1.1.0")
    assert command.json("package", "list", fqn)[0]["Version"] == "1.0.0"
    command.ok("package", "reactivate", f"{fqn}@1.1.0")
    assert command.json("package", "list", fqn)[0]["Version"] == "1.1.0"
    command.ok("package", "delete", "--yes", f"{fqn}@1.1.0")
    assert command.json("package", "list", fqn)[0]["Version"] == "1.0.0"


def test_a_refused_change_begins_with_the_package_and_the_reason(
    command: OpenStack, glance: Glance, images: ImageClient, fqn: str
) -> None:
    foreign = stored.package(packages.package(f"{fqn}.foreign"), "another", "public")
    stored.store(glance, [foreign])

    def refused(*arguments: str) -> str:
        result = command.fails("package", *arguments)
        return result.err.splitlines()[-1]

    assert refused("deactivate", f"{fqn}.db").startswith(
        f"cannot deactivate {fqn}.db 1.2.0: only {fqn}.db 1.2.0 satisfies requirements of active "
        f"packages: {fqn} 1.0.0 ({fqn}.db >=1,<2), {fqn} 1.1.0 ({fqn}.db >=1,<2); delete or"
    )
    # Reasons of Glance's own.
    protected = images.id_of(fqn, "1.0.0")
    assert images.set(protected, "protected", True).status_code == 200
    assert refused("delete", "--yes", f"{fqn}@1.0.0") == (
        f"cannot delete {fqn} 1.0.0: Image {protected} is protected and cannot be deleted."
    )
    assert refused("set", f"{fqn}.foreign", "--tag", "x") == (
        f"cannot change {fqn}.foreign 1.0.0: "
        "You are not authorized to complete modify_image action."
    )
    assert refused("yank", f"{fqn}.foreign", "--reason", "x") == (
        f"cannot yank {fqn}.foreign 1.0.0: {fqn}.foreign 1.0.0 belongs to another project"
    )


def test_the_service_can_be_named(command: OpenStack, fqn: str) -> None:
    result = command.fails("package", "list", options=["--os-murano-catalog", "swift"], code=2)
    assert "murano_catalog = 'swift': expected glare or glance" in result.err
    result = command.run("package", "list", fqn, options=["--os-murano-catalog", "glance"])
    assert (result.code, fqn in result.out) == (0, True)


@pytest.mark.usefixtures("waits")
def test_a_glance_that_does_not_answer_has_an_exit_code(command: OpenStack) -> None:
    command.add_glance("test", "http://127.0.0.1:9", "user:any:member,reader")
    result = command.run("package", "list")
    assert (result.code, "Glance at http://127.0.0.1:9" in result.err) == (4, True)


def test_pages_show_the_packages_that_the_project_can_use(
    command: OpenStack, fqn: str, tmp_path: pathlib.Path, glance: Glance
) -> None:
    site = tmp_path / "pages"
    first = command.ok("catalog", "render", str(site), f"{fqn}*")
    assert "2 packages with 3 releases; 3 archives were read" in first.err
    page = (site / paths.release(fqn, "1.1.0")).read_text()
    # The plan, the command for a download, and a field of the service.
    assert f"{fqn}.db</text>" in page
    assert "openstack murano package save" in page
    assert "fast" in page
    again = command.ok("catalog", "render", str(site), f"{fqn}*")
    assert "0 archives were read, and the pages of 0 packages were written" in again.err

    (tmp_path / "other").mkdir()
    other = OpenStack(tmp_path / "other", glance.url, "user:admin:admin,member,reader")
    other.add_glance("test", glance.url, "user:admin:admin,member,reader")
    # Another project, even with an administrator's rights, has none of these private packages.
    assert other.run("package", "show", f"{fqn}.db").code == 0
    refused = other.fails("catalog", "render", str(tmp_path / "theirs"), f"{fqn}*", code=3)
    assert f"no package has the name {fqn}*" in refused.err
