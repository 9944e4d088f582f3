# SPDX-License-Identifier: Apache-2.0

"""The page of the loader promises every public name, and no other."""

import pathlib
import re

import loader

PAGE = pathlib.Path(__file__).parents[2] / "doc" / "source" / "reference" / "loader.rst"


def test_the_promised_names_are_the_public_ones() -> None:
    _, _, promise = PAGE.read_text().partition("* The names in ``loader``: ")
    names, _, _ = promise.partition("\n* ")
    assert sorted(re.findall("``(\\w+)``", names)) == sorted(loader.__all__)
