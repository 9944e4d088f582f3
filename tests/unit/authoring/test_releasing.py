# SPDX-License-Identifier: Apache-2.0

"""Releases from ``dev``: their versions, requirements and directories."""

import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from glare_murano.package import Archive, Version, read_manifest
from loader.authoring import releasing
from loader.authoring.local_packages import InvalidPackages
from loader.authoring.releasing import ReleaseError
from loader.compatibility import Part
from tests import packages

NAME = "org.a"
OLD = "Name: org.a.Thing\nMethods:\n  go: {}\n"
ADDED = f"{OLD}  stay: {{}}\n"
REMOVED = "Name: org.a.Thing\n"


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "trees" / NAME


@pytest.fixture
def folders(tmp_path: pathlib.Path) -> Callable[[], pathlib.Path]:
    def new_folder() -> pathlib.Path:
        folder = tmp_path / f"folder{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        return folder

    return new_folder


def _write(place: pathlib.Path, code: str = OLD, **keys: Any) -> pathlib.Path:
    name = place.parent.name
    content = packages.content(name, keys.pop("version", None), **keys)
    return packages.write(
        place, content | {"Classes/Thing.yaml": code.replace(NAME, name).encode()}
    )


@pytest.mark.parametrize(
    ("released", "declared", "code", "proposed"),
    [
        ([], None, OLD, "0.1.0"),
        ([], "0.0.0", OLD, "0.1.0"),
        ([], "1.2.0", OLD, "1.2.0"),
        (["1.0.0"], None, ADDED, "1.1.0"),
        (["1.0.0"], None, REMOVED, "2.0.0"),
        (["1.0.0"], None, f"{OLD}# \n", "1.0.1"),
        (["0.3.0"], None, REMOVED, "0.4.0"),
        (["1.0.0", "1.10.0", "1.9.0"], None, ADDED, "1.11.0"),
        (["1.0.0"], "1.0.0", ADDED, "1.1.0"),
        (["1.0.0"], "3.0.0", ADDED, "3.0.0"),
        (["1.0.0"], "2.0.0-rc.1", REMOVED, "2.0.0"),
    ],
)
def test_the_guard_proposes_the_version(
    tree: pathlib.Path,
    folders: Callable[[], pathlib.Path],
    released: list[str],
    declared: str | None,
    code: str,
    proposed: str,
) -> None:
    for version in released:
        _write(tree / version, version=version)
    _write(tree / "dev", code, version=declared)
    release = releasing.prepare(tree, folders())
    assert str(release.version) == proposed
    releasing.check_version(release)
    assert not release.directory.exists()
    releasing.write(release)
    assert release.directory == tree / proposed
    with Archive.open(release.directory) as archive:
        assert str(read_manifest(archive).version) == proposed
    assert (release.directory / "Classes/Thing.yaml").read_text() == code
    assert [path.name for path in tree.iterdir() if path.name.startswith(".")] == []
    with pytest.raises(ReleaseError, match=f"dev has the files of .*{proposed}"):
        releasing.prepare(tree, folders())


def test_another_version_must_be_enough(
    tree: pathlib.Path, folders: Callable[[], pathlib.Path]
) -> None:
    for version in ("1.0.0", "2.0.0"):
        _write(tree / version, version=version)
    _write(tree / "dev", ADDED)
    # A backport is compared with the newest release before it.
    release = releasing.prepare(tree, folders(), Version("1.1.0"))
    assert release.comparison is not None
    assert (str(release.comparison.old_version), release.comparison.part) == ("1.0.0", Part.MINOR)
    releasing.check_version(release)
    small = releasing.prepare(tree, folders(), Version("1.0.1"))
    with pytest.raises(ReleaseError, match=r"1\.0\.1 is not enough.* use 1\.1\.0 or newer, or --f"):
        releasing.check_version(small)
    with pytest.raises(ReleaseError, match=r"2\.0\.0 is there already"):
        releasing.prepare(tree, folders(), Version("2.0.0"))


def test_requirements_without_a_range_get_that_of_the_newest_release(
    tree: pathlib.Path,
    folders: Callable[[], pathlib.Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trees = tree.parent
    for fqn, version in (("org.b", "1.4.2"), ("org.b", "1.3.0"), ("org.c", "0.3.1")):
        _write(trees / fqn / version, version=version)
    _write(trees / "org.d" / "2.0.0-rc.1", version="2.0.0-rc.1")
    _write(trees / "org.b" / "dev")
    require = {"org.b": "0", "org.c": "*", "org.d": "0.0.0", "io.murano": "0", "org.e": "0"}
    written = {"org.b": ">=1.4,<2", "org.c": ">=0.3,<0.4", "org.d": ">=2.0.0-rc.1,<3"}
    _write(tree / "dev", Require=require)
    release = releasing.prepare(tree, folders())
    assert release.ranges == written
    releasing.write(release)
    with Archive.open(release.directory) as archive:
        found = read_manifest(archive).requirements
    ranges = {fqn: str(spec) for fqn, spec in found.items()}
    assert ranges == {**require, **written, NAME: "0"}
    # The trees beside it are found from any directory.
    monkeypatch.chdir(tree / "dev")
    (tree / "0.1.0").rename(tree.parent / "moved")
    assert releasing.prepare(pathlib.Path(".."), folders()).ranges == written
    # What the author has written stays.
    for text in ("1", "<2", ">=1.3,<2", "0.3"):
        _write(tree / "dev", Require={"org.b": text})
        assert releasing.prepare(tree, folders()).ranges == {}
    _write(trees / "org.f" / "dev")
    _write(tree / "dev", Require={"org.f": "0"})
    with pytest.raises(ReleaseError, match=r"org\.a requires org\.f, which has no release"):
        releasing.prepare(tree, folders())


def test_members_are_inherited_from_packages_beside_the_tree(
    tree: pathlib.Path, folders: Callable[[], pathlib.Path]
) -> None:
    _write(tree / "1.0.0", version="1.0.0")
    _write(tree.parent / "org.b" / "1.0.0", version="1.0.0")
    _write(tree / "dev", "Name: org.a.Thing\nExtends: org.b.Thing\n", Require={"org.b": "1"})
    release = releasing.prepare(tree, folders())
    assert release.comparison is not None
    assert release.comparison.part is Part.MINOR
    # The range that the release gets counts, not that of dev.
    releasing.write(release)
    _write(tree / "dev", "Name: org.a.Thing\nExtends: org.b.Thing\n# \n", Require={"org.b": "0"})
    again = releasing.prepare(tree, folders())
    assert again.comparison is not None
    assert str(again.version) == "1.1.1", again.comparison.report()


def test_a_tree_without_a_valid_dev_is_refused(
    tree: pathlib.Path, folders: Callable[[], pathlib.Path]
) -> None:
    with pytest.raises(ReleaseError, match=r"dev has no manifest\.yaml"):
        releasing.prepare(tree, folders())
    _write(tree / "dev", Type="Nonsense")
    with pytest.raises(InvalidPackages, match=r"dev: Type, line .*manifest-type"):
        releasing.prepare(tree, folders())
    manifest = _write(tree / "dev") / "manifest.yaml"
    manifest.write_text(f"Name: &v '1'\nVersion: *v\nFullName: {NAME}\nType: Library\n")
    with pytest.raises(ReleaseError, match="write them as plain strings, without anchors"):
        releasing.prepare(tree, folders(), Version("2.0.0"))
