# SPDX-License-Identifier: Apache-2.0

"""``openstack murano package compare`` and ``release``: which version comes next."""

import pathlib

import pytest

from tests import packages
from tests.functional.client import Client
from tests.functional.openstack_command import OpenStack


@pytest.fixture
def tree(tmp_path: pathlib.Path, name: str) -> pathlib.Path:
    """A package in version 1.0.0, whose class lost its method in ``dev``."""
    tree = tmp_path / "trees" / name
    packages.write(tree / "1.0.0", packages.content(name, "1.0.0"))
    content = packages.content(name, None)
    changed = {"Classes/Thing.yaml": f"Name: {name}.Thing\n".encode()}
    packages.write(tree / "dev", content | changed)
    return tree


def test_the_changes_of_a_published_package_are_shown(
    openstack: OpenStack, glare: Client, name: str, tree: pathlib.Path
) -> None:
    glare.publish(name, "1.0.0", packages.package(name, "1.0.0"))
    new = packages.write(
        tree / "1.1.0",
        packages.content(name, "1.1.0", code=f"Name: {name}.Thing\nMethods:\n  go: {{}}\n"),
    )
    shown = openstack.ok("package", "compare", name, new, "-f", "json")
    assert shown.json() == [
        {
            "Part": "major",
            "File": "Classes/Thing.yaml",
            "Line": 3,
            "Version": "old",
            "Class": f"{name}.Thing",
            "Change": "method version was removed",
            "Rule": "method-removed",
        },
        {
            "Part": "minor",
            "File": "Classes/Thing.yaml",
            "Line": 3,
            "Version": "new",
            "Class": f"{name}.Thing",
            "Change": "method go was added",
            "Rule": "method-added",
        },
    ]
    assert "version 1.1.0 is not enough" in shown.err
    assert "use 2.0.0 or newer" in shown.err
    failed = openstack.run("package", "compare", name, new, "--check")
    assert (failed.code, "method version was removed" in failed.out) == (1, True)
    openstack.ok("package", "compare", f"{name}@1.0.0", tree / "1.0.0", "-f", "csv")


def test_the_development_of_a_package_has_no_version_that_could_be_too_small(
    openstack: OpenStack, name: str, tree: pathlib.Path
) -> None:
    code = f"Name: {name}.Thing\nExtends: io.murano.Application\n"
    (tree / "dev/Classes/Thing.yaml").write_text(code)
    shown = openstack.ok("package", "compare", tree / "1.0.0", tree / "dev", "--check")
    assert f"{name}: the release of these changes needs 2.0.0 or newer: after 1.0.0" in shown.err
    assert "not read: package io.murano 0: no package was given for it; add a dir" in shown.err


def test_a_form_that_only_a_dashboard_cannot_show_is_not_released(
    openstack: OpenStack, tree: pathlib.Path
) -> None:
    """For other commands it is a warning, since an option of the server decides."""
    (tree / "dev/UI").mkdir()
    (tree / "dev/UI/ui.yaml").write_bytes(packages.FORM.replace(b"2.3", b"2.5"))
    problem = "UI/ui.yaml, line 1: '2.5' is not a version from 2.0 to 2.4 [form-version]"
    for command in (
        ("build", tree / "dev", "--file", tree / "dev.zip"),
        ("publish", tree / "dev", "--as-version", "3.0.0", "--dry-run"),
    ):
        assert f"{tree}/dev: {problem}" in openstack.ok("package", *command).err
    refused = openstack.run("package", "release", tree)
    assert (refused.code, refused.err) == (1, f"{tree}/dev: {problem}\n")
    assert sorted(each.name for each in tree.iterdir()) == ["1.0.0", "dev", "dev.zip"]


def test_packages_that_cannot_be_compared_are_reported(
    openstack: OpenStack, name: str, tree: pathlib.Path
) -> None:
    other = packages.write(tree / "other", packages.content(f"{name}2"))
    for arguments, code, message in (
        ((tree / "1.0.0", other), 1, "are different packages"),
        ((f"{name}@3", other), 3, f"{name}@3"),
        ((tree, other), 1, f"{tree}: manifest.yaml: is missing"),
    ):
        result = openstack.run("package", "compare", *arguments)
        assert (result.code, message in result.err) == (code, True), result
        assert "Traceback" not in result.err


def test_a_release_is_proposed_written_and_published(
    openstack: OpenStack, glare: Client, name: str, tree: pathlib.Path
) -> None:
    dry = openstack.json("package", "release", tree, "--dry-run", "--publish")
    assert dry == {
        "name": name,
        "version": "2.0.0",
        "after": "1.0.0",
        "part": "major",
        "requirements": {},
        "directory": str(tree / "2.0.0"),
        "written": False,
    }
    small = openstack.fails("package", "release", tree, "--as-version", "1.1.0")
    assert "major: Classes/Thing.yaml, line 3 of the old version" in small.err
    assert "version 1.1.0 is not enough" in small.err
    assert {path.name for path in tree.iterdir()} == {"dev", "1.0.0"}
    assert glare.names(name=name) == []

    openstack.ok("package", "release", tree, "--as-version", "1.1.0", "--force")
    (tree / "dev" / "new.txt").write_text("")
    done = openstack.json("package", "release", tree, "--publish")
    assert (done["version"], done["after"], done["written"]) == ("1.1.1", "1.1.0", True)
    assert done["published"] == ["1.0.0: published", "1.1.0: published", "1.1.1: published"]
    versions = [(name, version) for version in ("1.0.0", "1.1.0", "1.1.1")]
    assert glare.names(name=name, status="active") == versions


def test_a_release_that_cannot_be_published_stays_written(
    openstack: OpenStack, tree: pathlib.Path
) -> None:
    # Only administrators may publish for every project.
    refused = openstack.fails("package", "release", tree, "--public")
    assert f"openstack murano package publish --public {tree}" in refused.err
    assert (tree / "2.0.0" / "manifest.yaml").is_file()
    openstack.ok("package", "publish", tree)


def test_a_second_release_says_how_to_publish_the_first(
    openstack: OpenStack, tree: pathlib.Path
) -> None:
    openstack.ok("package", "release", tree)
    again = openstack.fails("package", "release", tree)
    assert "there is nothing to release" in again.err
    assert f'run "openstack murano package publish {tree}"' in again.err


def test_a_place_without_dev_is_reported(openstack: OpenStack, tmp_path: pathlib.Path) -> None:
    for place in (tmp_path, tmp_path / "missing", tmp_path / "clouds.yaml"):
        result = openstack.fails("package", "release", place)
        assert "dev has no manifest.yaml" in result.err
        assert "Traceback" not in result.err
