# SPDX-License-Identifier: Apache-2.0

"""What the documentation says of the source code names only what exists."""

import pathlib
import pkgutil
import re
import tomllib

import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[2]
MAP = ROOT / "doc" / "source" / "maintainers" / "architecture.rst"
BASES = ("", "glare_murano/", "glare_murano/glare/", "loader/", "loader/formats/")


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"``([a-z_/]+\.(?:py|yaml|toml))``", MAP.read_text())))
)
def test_a_file_on_the_map_exists(name: str) -> None:
    assert any((ROOT / base / name).is_file() for base in BASES)


def test_the_map_names_files() -> None:
    assert "glare_murano/wire.py" in MAP.read_text()


_PAGES = (ROOT / "doc" / "source").rglob("*.rst")


@pytest.mark.parametrize(
    "name",
    sorted(
        {n for page in _PAGES for n in re.findall(r"^\.\. auto\w+:: (\S+)", page.read_text(), re.M)}
    ),
)
def test_a_name_that_a_page_shows_exists(name: str) -> None:
    assert pkgutil.resolve_name(name) is not None


def test_the_picture_has_the_layers_of_the_loader() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (
        contract["layers"]
        for contract in contracts["contracts"]
        if contract.get("containers") == ["loader"]
    )
    picture = yaml.safe_load((ROOT / "doc" / "pictures" / "layers.yaml").read_text())
    drawn = [", ".join(box["lines"]).split(", ") for box in picture["boxes"] if "title" not in box]

    assert drawn == [re.split(r" [|:] ", layer) for layer in layers]


def test_the_picture_has_modules_that_both_parts_share() -> None:
    picture = yaml.safe_load((ROOT / "doc" / "pictures" / "layers.yaml").read_text())
    (shared,) = (box for box in picture["boxes"] if box.get("strong"))
    names = ", ".join(shared["lines"]).removesuffix(" and others").replace(" and others,", ",")

    for name in names.split(", "):
        assert pkgutil.resolve_name(f"glare_murano.{name}") is not None
