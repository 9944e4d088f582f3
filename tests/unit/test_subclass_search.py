# SPDX-License-Identifier: Apache-2.0

"""How many subclasses a search returns."""

import pathlib

import pytest

from loader import DirectoryCatalog, PackageLoader
from tests import packages


@pytest.mark.parametrize(("maximum", "is_truncated"), [(1, True), (2, False), (3, False)])
def test_the_subclasses_beyond_the_maximum_are_left_out(
    tmp_path: pathlib.Path, maximum: int, is_truncated: bool
) -> None:
    root = tmp_path / "packages"
    packages.write(root / "org.base", packages.content("org.base"))
    for name in ("org.a", "org.b"):
        code = f"Name: {name}.Thing\nExtends: org.base.Thing\n"
        packages.write(root / name, packages.content(name, code=code, Require={"org.base": "1"}))
    loader = PackageLoader([DirectoryCatalog(root)], tmp_path / "cache", max_subclasses=maximum)

    found = loader.subclasses("org.base.Thing")

    names = [each.name for each in found.found]
    assert names == ["org.a.Thing", "org.b.Thing"][:maximum]
    assert found.is_truncated is is_truncated
