# SPDX-License-Identifier: Apache-2.0

"""``openstack murano package init``, ``check`` and ``build``: before packages are published."""

import errno
import hashlib
import json
import logging
import os
import pathlib
import re
import shlex
import subprocess
from collections.abc import Callable

import pytest
import yaml

from loader.authoring import local_packages
from tests import packages
from tests.functional.client import Client
from tests.functional.openstack_command import OpenStack

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def place(tmp_path: pathlib.Path, name: str) -> pathlib.Path:
    return packages.write(tmp_path / "dev", packages.content(name))


def test_every_problem_is_shown_in_every_format(
    openstack: OpenStack, place: pathlib.Path, name: str
) -> None:
    valid = openstack.ok("package", "check", place.parent)
    assert (valid.out, valid.err) == ("", "packages: 1, errors: 0, warnings: 0\n")
    (place / "Classes/Thing.yaml").write_text(f"Name: {name}.Other\n")
    failed = openstack.fails("package", "check", place, place / "missing")
    assert "[class-missing]" in failed.out
    assert "Classes/Thing.yaml:1: error: does not define class" in failed.out
    assert "missing: error: No such file or directory [package-unreadable]" in failed.out
    assert failed.err == "packages: 2, errors: 2, warnings: 0\n"
    sarif = openstack.run("package", "check", place, "--format", "sarif")
    assert (sarif.code, len(sarif.json()["runs"][0]["results"])) == (1, 1)
    github = openstack.run("package", "check", place, "--format", "github")
    assert github.out.startswith(f"::error file={place}/Classes/")
    (place / "Classes/\x1b.yaml").write_text("")
    for form in ("text", "github", "sarif"):
        escaped = openstack.run("package", "check", place, "--format", form)
        assert "[path-characters]" in escaped.out or form != "text"
        assert "\x1b" not in escaped.out
    nothing = openstack.run("package", "check", place / "Classes")
    assert (nothing.code, "there is no package" in nothing.out) == (1, True)


def test_a_fault_in_a_manifest_is_annotated_at_its_line(
    openstack: OpenStack, tmp_path: pathlib.Path
) -> None:
    manifest = "Format: '1.4'\nType: Library\nFullName: org.a\nName: A\nVersion: 1.0.0\n"
    manifest += "UI: none.yaml\nClasses:\n  org.a.A: A.yaml\n"
    place = packages.write(tmp_path / "a", {"manifest.yaml": manifest.encode()})
    found = openstack.run("package", "check", place, "--format", "github").out
    assert f"::error file={place}/manifest.yaml,line=8,title=class-file::Classes.org.a.A: " in found
    assert f"::warning file={place}/manifest.yaml,line=6,title=form-missing::" in found


def test_a_misspelt_key_and_a_missing_version_are_shown_with_the_errors(
    openstack: OpenStack, tmp_path: pathlib.Path, name: str
) -> None:
    content = packages.manifest(name, None)
    place = packages.write(tmp_path / "wiki", packages.files(content))
    shown = openstack.ok("package", "check", place)
    assert f"{place}/manifest.yaml: warning: Version is missing, so the package is" in shown.out
    assert shown.err == "packages: 1, errors: 0, warnings: 1\n"
    content["Typ"] = content.pop("Type")
    packages.write(place, packages.files(content))
    failed = openstack.run("package", "check", place)
    assert "error: Type: is missing" in failed.out
    assert "warning: 'Typ': is unknown; did you mean Type?" in failed.out
    assert failed.err == "packages: 1, errors: 1, warnings: 1\n"
    for command in ("build", "publish"):
        assert "did you mean Type?" in openstack.run("package", command, place).err


def test_problems_of_a_form_are_shown_to_its_publisher(
    openstack: OpenStack,
    tmp_path: pathlib.Path,
    name: str,
    set_option: Callable[[str, object], None],
) -> None:
    """The server decides about them."""
    set_option("check_forms", "enforce")
    form = {"UI/ui.yaml": packages.FORM.replace(b"[]", b"x") + b"Template: {}\n"}
    place = packages.write(tmp_path / "wiki", packages.content(name, more=form))
    problem = f"{place}: UI/ui.yaml, line 5: Forms is 'x'; expected a list [form-section]\n"
    warning = f"{place}: UI/ui.yaml, line 6: the section 'Template' is unknown [form-section]\n"
    built = openstack.ok("package", "build", place, "--file", tmp_path / "wiki.zip")
    assert built.err == problem + warning
    refused = openstack.fails("package", "publish", place)
    assert refused.err.startswith(problem + warning)
    set_option("check_forms", "warn")
    assert openstack.ok("package", "publish", place).err.startswith(problem + warning)
    shown = f"{problem.splitlines()[0].replace(', line 5: ', ':5: LEVEL: ')}\n"
    shown = shown.replace(f"{place}: ", f"{place}/")
    checked = openstack.ok("package", "check", place)
    assert checked.out.startswith(shown.replace("LEVEL", "warning"))
    strict = openstack.fails("package", "check", "--strict", place)
    assert strict.out.startswith(shown.replace("LEVEL", "error"))


def test_a_version_is_checked_against_a_release(
    openstack: OpenStack, glare: Client, place: pathlib.Path, name: str
) -> None:
    glare.publish(name, "1.0.0", packages.package(name, "1.0.0"))
    # The method inherited now comes from a package that the cloud or a directory has.
    library = f"{name}.library"
    moved = f"Name: {library}.Base\nMethods:\n  version:\n    Body:\n      Return: 1\n"
    manifest = packages.manifest(library, "1.0.0", Classes={f"{library}.Base": "Base.yaml"})
    base = packages.files(manifest) | {"Classes/Base.yaml": moved.encode()}
    manifest = packages.manifest(name, "1.1.0", Require={library: "1"})
    code = f"Name: {name}.Thing\nExtends: {library}.Base\n".encode()
    packages.write(place, packages.files(manifest) | {"Classes/Thing.yaml": code})
    failed = openstack.fails("package", "check", place, "--against", name)
    assert "version 1.1.0 is not enough" in failed.out
    assert "method version was removed" in failed.out
    required = packages.write(place.parent / "required" / library, base).parent
    openstack.ok("package", "check", place, "--against", f"{name}@1", "--path", required)
    glare.publish(library, "1.0.0", packages.zipped(base))
    openstack.ok("package", "check", place, "--against", f"{name}@1")


def test_classes_are_searched_for_in_required_packages(
    openstack: OpenStack, glare: Client, place: pathlib.Path, name: str
) -> None:
    # Not below the name of the package, where Classes would have to list it.
    library = f"{name}_library"
    glare.publish(name, "1.0.0", packages.package(name, "1.0.0"))
    glare.publish(library, "1.0.0", packages.package(library))
    required = packages.write(
        place.parent / "required" / "core", packages.content("io.murano", "0.9.0")
    ).parent
    packages.write(required / "library", packages.content(library))
    code = f"Name: {name}.Thing\nExtends: {library}.Thing\nProperties:\n  other:\n"
    code += f"    Contract: $.class('{library}.Thing')\n"

    def check(requirements: dict[str, str], *options: object) -> tuple[list[tuple[str, ...]], str]:
        manifest = packages.manifest(name, "2.0.0", Require=requirements)
        packages.write(place, packages.files(manifest) | {"Classes/Thing.yaml": code.encode()})
        result = openstack.run("package", "check", place, *options)
        pattern = r"/Classes/Thing\.yaml:(\d+): (\w+): .+ \[(.+)\]$"
        return re.findall(pattern, result.out, re.MULTILINE), result.err

    # Without the required packages, those that were not read are named.
    found, notes = check({library: "1"})
    assert found == []
    assert f"base classes in these packages were not checked: io.murano 0, {library} 1;" in notes
    for options in (("--path", required), ("--against", f"{name}@1")):
        found, notes = check({library: "1"}, *options)
        assert found == []
        assert "were not checked" not in notes
        found, notes = check({}, *options)
        assert found == [("5", "warning", "class-unrequired"), ("2", "error", "base-unknown")]


@pytest.mark.parametrize(
    ("against", "code", "message"),
    [("org.missing", 3, "org.missing"), ("./missing", 1, "missing"), ("a@b@c", 2, "range")],
)
def test_a_wrong_release_is_reported(
    openstack: OpenStack, place: pathlib.Path, against: str, code: int, message: str
) -> None:
    result = openstack.run("package", "check", place, "--against", against)
    assert result.code == code
    assert message in result.err
    assert "Traceback" not in result.err


def test_a_release_is_compared_with_one_package(openstack: OpenStack, place: pathlib.Path) -> None:
    result = openstack.fails("package", "check", place, place, "--against", place)
    assert "--against needs the path of one package, and there are 2" in result.err


def test_the_hook_of_pre_commit_runs_the_command(
    openstack: OpenStack, place: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {"id", "name", "language"} <= hook.keys()
    program, group, *command = shlex.split(hook["entry"])
    assert (program, group) == ("openstack", "murano")
    monkeypatch.chdir(place.parent)
    assert openstack.ok(*command, *hook["args"]).err.startswith("packages: 1,")


def test_an_archive_is_built_and_published(
    openstack: OpenStack, place: pathlib.Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.parent)
    shown = openstack.json("package", "build", place)
    archive = place.parent / f"{name}.1.0.0.zip"
    assert shown == {
        "name": name,
        "version": "1.0.0",
        "file": archive.name,
        "size": archive.stat().st_size,
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
    }
    openstack.ok("package", "publish", archive)
    rows = json.loads(openstack.ok("package", "publish", place, "-f", "json").out)
    assert rows[0]["Result"] == "skipped, was published before"
    for arguments in ([place, "--file", place / "x.zip"], ["missing"], [place.parent]):
        result = openstack.fails("package", "build", *arguments)
        assert result.err
        assert "Traceback" not in result.err


def test_a_new_package_is_begun_and_published(
    openstack: OpenStack, name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    begun = openstack.ok("package", "init", name)
    assert f"{name}/manifest.yaml" in begun.out.splitlines()
    assert f"openstack murano package check {name}\n" in begun.err
    openstack.ok("package", "check", name)
    openstack.ok("package", "publish", name)
    assert openstack.json("package", "show", name)["type"] == "Application"
    # A release sets the version of the next directory.
    dev = f"tree/{name}/dev"
    openstack.ok("package", "init", name, "--directory", dev)
    assert openstack.ok("package", "check", dev).out == ""
    released = openstack.json("package", "release", f"tree/{name}")
    assert (released["version"], released["directory"]) == ("0.1.0", f"tree/{name}/0.1.0")
    openstack.ok("package", "check", f"tree/{name}/0.1.0")
    for arguments in ([name], ["wiki"], [name, "--directory", f"{name}/manifest.yaml"]):
        refused = openstack.run("package", "init", *arguments)
        assert refused.code in (1, 2)
        assert refused.err
        assert "Traceback" not in refused.err


def test_a_draft_is_no_release_to_compare_with(
    openstack: OpenStack, glare: Client, name: str, tmp_path: pathlib.Path
) -> None:
    """An interrupted publication leaves the new version as a draft, and perhaps without files."""
    glare.publish(name, "1.0.0", packages.package(name, "1.0.0"))
    yanked = glare.publish(name, "1.0.1", packages.package(name, "1.0.1"))["id"]
    assert glare.set(yanked, "yanked", "loses data").status_code == 200
    new = packages.content(name, "1.1.0", Classes={f"{name}.New": "New.yaml"})
    glare.draft(name, "1.1.0", packages.zipped(new))
    assert glare.create(name, "1.2.0").status_code == 201
    place = packages.write(tmp_path / "new", new)
    for reference in (name, f"{name}@1"):
        checked = openstack.fails("package", "check", place, "--against", reference)
        assert "version 1.1.0 is not enough: after 1.0.0" in checked.out
    compared = openstack.json("package", "compare", name, place)
    assert "class-removed" in [row["Rule"] for row in compared]
    assert f"-FullName: {name}" not in openstack.ok("package", "diff", name, place).out


def test_files_and_directories_that_are_hard_to_name_are_shown(
    openstack: OpenStack, name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # pytest's workers cannot send captured log lines with such a name.
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    odd = tmp_path / os.fsdecode(b"odd\xff%")
    files = packages.content(name)
    del files["Classes/Thing.yaml"]
    packages.write(odd, files)
    for form in ("text", "github"):
        shown = openstack.run("package", "check", odd, "--format", form)
        assert (shown.code, "class-file" in shown.out) == (1, True)
    sarif = openstack.run("package", "check", odd, "--format", "sarif").json()
    (result,) = sarif["runs"][0]["results"]
    location = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location["uri"].endswith("/odd%FF%25/manifest.yaml")


def test_directories_of_any_depth_are_searched(tmp_path: pathlib.Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("a", dir_fd=directory)
        inner = os.open("a", os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = inner
    os.close(directory)
    try:
        assert list(local_packages.find(tmp_path)) == []
    finally:
        # Python's own functions cannot remove it.
        subprocess.run(["rm", "-r", tmp_path / "a"], check=True)


def test_a_package_that_cannot_be_begun_leaves_nothing(
    openstack: OpenStack, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    folder = tmp_path / "new"
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", fail)
        result = openstack.run("package", "init", "org.test.full", "--directory", folder)
    assert result.code == 1
    assert "No space left on device" in result.err
    assert list(folder.iterdir()) == []
    openstack.ok("package", "init", "org.test.full", "--directory", folder)
