# SPDX-License-Identifier: Apache-2.0

"""The documentation's map of the source code names only files that exist."""

import pathlib
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
