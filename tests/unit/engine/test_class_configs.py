# SPDX-License-Identifier: Apache-2.0

"""Who gets the operator's values of ``Usage: Config`` properties."""

import pathlib

import pytest

from glare_murano.package import Version
from glare_murano.package.reserved_names import ReservedNames
from glare_murano.wire import Release
from loader.engine import class_configs

NAME = "org.example.db.Database"


def _release(owner: str | None, visibility: str | None) -> Release:
    release = Release("org.example.db", Version("1.2.0"), {}, frozenset({NAME}))
    return Release(
        release.fqn, release.version, {}, release.classes, owner=owner, visibility=visibility
    )


def _reserved(text: str) -> ReservedNames:
    return ReservedNames.parse(text.encode(), "reserved-names.yaml")


@pytest.mark.parametrize(
    ("reserved", "owner", "visibility", "expected"),
    [
        ("{}", "one", "public", True),
        ("{}", "one", "private", False),
        ("{}", "one", "shared", False),
        ("{}", "one", "community", False),
        ("{}", None, None, True),
        ("{}", "one", None, False),
        ("{}", None, "private", False),
        ("org.example: [one]", "one", "private", True),
        ("org.example: [one]", "one", "public", True),
        ("org.example: [one]", "two", "private", False),
        ("org.example: [one]", "two", "public", False),
        ("org.example: [one]", None, None, True),
        ("org.example.db.Database: [one]", "one", "private", True),
        ("org.example.db.Database: [two]", "one", "public", False),
        ("org.example: []", "one", "public", False),
        ("org.other: [one]", "one", "private", False),
    ],
)
def test_values_are_for_public_packages_and_owners_of_the_name(
    reserved: str, owner: str | None, visibility: str | None, expected: bool
) -> None:
    release = _release(owner, visibility)

    assert class_configs.may_read(NAME, release, _reserved(reserved)) is expected


def test_the_files_of_a_class_are_those_of_all_its_versions(tmp_path: pathlib.Path) -> None:
    found = {f"{NAME}.yaml", f"{NAME}.json", f"{NAME}-1.yaml", f"{NAME}-1.2.3.json"}
    others = {f"{NAME}s.yaml", f"{NAME}-1.txt", "orgXexample.db.Database.yaml", f"{NAME}-x.yaml"}
    for name in found | others:
        (tmp_path / name).touch()

    assert {path.name for path in class_configs.find(str(tmp_path), NAME)} == found
    assert class_configs.class_names(str(tmp_path)) == {
        NAME,
        f"{NAME}s",
        f"{NAME}-x",
        "orgXexample.db.Database",
    }
    assert class_configs.find(str(tmp_path / "missing"), NAME) == []


def test_a_file_is_read_by_its_ending(tmp_path: pathlib.Path) -> None:
    contents = {"a.yaml": "port: 80\n", "a.json": '{"port": 80}', "b.yaml": "- 80\n"}
    for name, text in contents.items():
        (tmp_path / name).write_text(text)

    read = {name: class_configs.read(tmp_path / name) for name in contents}

    assert read == {"a.yaml": {"port": 80}, "a.json": {"port": 80}, "b.yaml": {}}


@pytest.mark.parametrize(("name", "text"), [("a.yaml", "a: ["), ("a.json", "{"), ("b.json", None)])
def test_a_mistake_names_the_file(tmp_path: pathlib.Path, name: str, text: str | None) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)

    with pytest.raises(ValueError, match=f"{name} cannot be read"):
        class_configs.read(tmp_path / name)
