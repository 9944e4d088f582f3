# SPDX-License-Identifier: Apache-2.0

"""``openstack murano lock``: create, update and check lock files."""

import pathlib
from collections.abc import Callable

import pytest

import loader
from tests import packages
from tests.functional.client import Client
from tests.functional.openstack_command import OpenStack


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "packages.lock"


@pytest.fixture
def library(glare: Client, name: str) -> str:
    """A library with the version 1.0.0, which the package of the test requires."""
    fqn = f"{name}.library"
    publish(glare, fqn, "1.0.0")
    archive = packages.package(name, "1.0.0", Require={fqn: ">=1,<3"})
    glare.publish(name, "1.0.0", archive)
    return fqn


def publish(glare: Client, name: str, version: str) -> str:
    artifact_id: str = glare.publish(name, version, packages.package(name, version))["id"]
    return artifact_id


def _locked(file: pathlib.Path) -> set[str]:
    return {str(r) for r in loader.Lock.load(file).releases if r.fqn != "io.murano"}


def test_a_lock_file_is_created_with_the_closure(
    openstack: OpenStack, name: str, library: str, file: pathlib.Path
) -> None:
    rows = openstack.json("lock", "create", f"{name}@1", "--file", file)
    listed = {(row["Name"], row["Version"], row["Visibility"]) for row in rows}
    assert {(name, "1.0.0", "private"), (library, "1.0.0", "private")} < listed
    assert ("io.murano", "0.0.1", "public") in listed
    lock = loader.Lock.load(file)
    assert {(r.fqn, r.digest) for r in lock.releases} == {(r["Name"], r["SHA-256"]) for r in rows}
    assert {fqn: spec.text for fqn, spec in lock.requirements.items()} == {name: "1"}


def test_the_file_is_in_the_current_directory_by_default(
    openstack: OpenStack,
    library: str,
    file: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(file.parent)
    openstack.ok("lock", "create", library)
    openstack.ok("lock", "check")
    assert _locked(file) == {f"{library} 1.0.0"}


def test_an_extension_plug_in_satisfies_requirements(
    openstack: OpenStack,
    glare: Client,
    name: str,
    file: pathlib.Path,
    set_option: Callable[[str, object], None],
) -> None:
    set_option("provided_packages", ["org-mail:1.4.0"])
    glare.publish(name, "1.0.0", packages.package(name, Require={"org-mail": "1"}))
    set_option("provided_packages", [])
    created = ("lock", "create", name, "--file", file)
    openstack.fails(*created, code=3)
    openstack.ok(*created, "--provided", "org-mail@1.4.0")
    assert _locked(file) == {f"{name} 1.0.0"}
    openstack.fails(*created, "--provided", "org-mail", code=2)


def test_an_existing_file_is_replaced_only_by_force(
    openstack: OpenStack, library: str, file: pathlib.Path
) -> None:
    file.write_text("precious")
    refused = openstack.fails("lock", "create", library, "--file", file)
    assert "--force" in refused.err
    assert file.read_text() == "precious"
    openstack.ok("lock", "create", library, "--file", file, "--force")
    assert _locked(file) == {f"{library} 1.0.0"}


def test_what_cannot_be_locked_is_an_error(
    openstack: OpenStack, library: str, file: pathlib.Path
) -> None:
    missing = openstack.fails("lock", "create", f"{library}@7", "--file", file, code=3)
    assert "(available: 1.0.0)" in missing.err
    twice = openstack.fails("lock", "create", library, f"{library}@1", "--file", file)
    assert "is listed twice" in twice.err
    invalid = openstack.fails("lock", "create", f"{library}@x", "--file", file, code=2)
    assert not file.exists()
    unreadable = openstack.fails("lock", "update", "--file", file)
    assert str(file) in unreadable.err
    for result in (missing, twice, invalid, unreadable):
        assert "Traceback" not in result.err


@pytest.mark.parametrize("command", ["check", "update"])
def test_a_missing_lock_file_is_created_by_another_command(
    openstack: OpenStack, tmp_path: pathlib.Path, command: str
) -> None:
    missing = openstack.fails("lock", command, "--file", tmp_path / "missing.lock")
    assert f"there is no lock file {tmp_path}/missing.lock" in missing.err
    assert 'such as by "openstack murano lock create"' in missing.err


def test_an_update_shows_its_changes_first(
    openstack: OpenStack, glare: Client, name: str, library: str, file: pathlib.Path
) -> None:
    openstack.ok("lock", "create", name, "--file", file)
    before = file.read_bytes()
    publish(glare, library, "2.1.0")
    publish(glare, name, "1.5.0")
    expected = [
        {"Name": name, "Before": ["1.0.0"], "After": ["1.5.0"]},
        {"Name": library, "Before": ["1.0.0"], "After": []},
    ]
    assert openstack.json("lock", "update", "--file", file, "--dry-run") == expected
    assert file.read_bytes() == before

    expected = [{"Name": library, "Before": ["1.0.0"], "After": ["2.1.0"]}]
    assert openstack.json("lock", "update", library, "--file", file) == expected
    assert _locked(file) == {f"{name} 1.0.0", f"{library} 2.1.0"}
    assert openstack.json("lock", "update", library, "--file", file) == []

    unknown = openstack.fails("lock", "update", "org.typo", "--file", file)
    assert "org.typo: not in the lock" in unknown.err


def test_an_update_shows_another_archive_of_the_same_version(
    openstack: OpenStack, glare: Client, name: str, library: str, file: pathlib.Path
) -> None:
    openstack.ok("lock", "create", library, "--file", file)
    openstack.ok("package", "delete", name, "--yes")
    _replace(openstack, glare, library)
    updated = openstack.ok("lock", "update", "--file", file, "-f", "json")
    assert updated.json() == [{"Name": library, "Before": ["1.0.0"], "After": ["1.0.0"]}]
    assert updated.err == f"{library}: another archive of the same version\n"


def _replace(openstack: OpenStack, glare: Client, library: str) -> None:
    """Publish another archive of the library's version, once nothing requires it."""
    openstack.ok("package", "delete", library, "--yes")
    glare.publish(library, "1.0.0", packages.package(library, "1.0.0", Author="Another"))


def _states(openstack: OpenStack, file: pathlib.Path) -> tuple[int, dict[str, tuple[str, str]]]:
    checked = openstack.run("lock", "check", "--file", file, "-f", "json")
    return checked.code, {
        row["Name"]: (row["State"], row["Newer"])
        for row in checked.json()
        if row["Name"] != "io.murano"
    }


def test_a_check_lists_newer_and_yanked_releases(
    openstack: OpenStack, glare: Client, library: str, file: pathlib.Path
) -> None:
    openstack.ok("lock", "create", library, "--file", file)
    assert _states(openstack, file) == (0, {library: ("valid", "")})
    publish(glare, library, "3.0.0")
    yanked = publish(glare, library, "4.0.0")
    glare.set(yanked, "yanked", "broken")
    assert _states(openstack, file) == (0, {library: ("valid", "3.0.0")})
    openstack.ok("package", "yank", f"{library}@1.0.0", "--reason", "loses data")
    assert _states(openstack, file) == (0, {library: ("yanked: loses data", "3.0.0")})


def test_a_check_fails_for_a_missing_release_and_for_another_archive(
    openstack: OpenStack, glare: Client, library: str, name: str, file: pathlib.Path
) -> None:
    openstack.ok("lock", "create", name, "--file", file)
    openstack.ok("package", "delete", name, "--yes")
    _replace(openstack, glare, library)
    code, states = _states(openstack, file)
    assert code == 1
    assert states[name] == ("not found", "")
    assert states[library][0].startswith("another archive, ")
    checked = openstack.run("lock", "check", "--file", file)
    assert f"2 of 3 locked releases cannot be fetched: {name} 1.0.0 (not found)" in checked.err
