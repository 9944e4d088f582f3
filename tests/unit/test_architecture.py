# SPDX-License-Identifier: Apache-2.0

"""What the documentation says of the source code names only what exists."""

import pathlib
import pkgutil
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
MAP = ROOT / "doc" / "source" / "contributor" / "architecture.rst"
BASES = ("", "glare_murano/", "glare_murano/glare/", "loader/", "loader/formats/")


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"``([a-z_/]+\.(?:py|yaml|toml))``", MAP.read_text())))
)
def test_a_file_on_the_map_exists(name: str) -> None:
    assert any((ROOT / base / name).is_file() for base in BASES)


def test_the_map_names_files() -> None:
    assert "glare_murano/wire.py" in MAP.read_text()


def test_every_module_has_a_row_in_the_readme() -> None:
    folder, named = "", set()
    for line in (ROOT / "README.rst").read_text().splitlines():
        if heading := re.search(r": ``((?:glare_murano|loader)/[a-z_/]*)``$", line):
            folder = heading[1]
        elif row := re.match(r"``([a-z_]+\.py)`` ", line):
            named.add(folder + row[1])
    modules = {
        str(path.relative_to(ROOT))
        for package in ("glare_murano", "loader")
        for path in (ROOT / package).rglob("[a-z]*.py")
    }
    # One row for all of them.
    generator = {module for module in modules if module.startswith("glare_murano/package/hot/")}
    assert named == modules - generator


_PAGES = (ROOT / "doc" / "source").rglob("*.rst")


@pytest.mark.parametrize(
    "name",
    sorted(
        {n for page in _PAGES for n in re.findall(r"^\.\. auto\w+:: (\S+)", page.read_text(), re.M)}
    ),
)
def test_a_name_that_a_page_shows_exists(name: str) -> None:
    assert pkgutil.resolve_name(name) is not None
