# SPDX-License-Identifier: Apache-2.0

"""The paths of pages: each leads back to its name, and none leaves the directory."""

import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.site import paths

NAMES = st.from_regex(
    r"[A-Za-z_][A-Za-z0-9_]{0,40}(\.[A-Za-z_][A-Za-z0-9_]{0,40}){0,6}", fullmatch=True
)
VERSIONS = st.from_regex(
    r"[0-9]{1,5}\.[0-9]{1,5}\.[0-9](-[0-9A-Za-z.-]*[0-9A-Za-z])?(\+[0-9A-Za-z.-]*[0-9a-z])?",
    fullmatch=True,
)


@given(NAMES | VERSIONS)
def test_a_path_leads_back_to_its_name(name: str) -> None:
    path = paths.part(name)
    assert paths.name(path) == name
    assert path == path.casefold()
    for piece in path.split("/"):
        assert 0 < len(piece) <= 201
        assert piece not in (".", "..")


def test_names_that_differ_only_by_case_have_different_paths() -> None:
    assert paths.part("org.Db") == "org.~db"
    assert paths.part("org.db") == "org.db"
    assert paths.part("1.0.0-rc.1+Build") == "1.0.0-rc.1~0~build"


def test_a_long_name_is_several_directories() -> None:
    path = paths.part("A" * 250)
    assert [len(piece) for piece in path.split("/")] == [201, 201, 100]
    assert paths.name(path) == "A" * 250


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../a", "a/b", "a\\b", "a~", "ä", ".a", "a\0", "a b"]
)
def test_what_is_no_name_has_no_path(name: str) -> None:
    with pytest.raises(ValueError, match=r"path|no name"):
        paths.part(name)


def test_the_way_to_the_root() -> None:
    page = paths.class_page("org.db", "1.0.0", "org.db.Db")
    assert page == "packages/org.db/1.0.0/classes/org.db.~db.html"
    assert paths.to_root(page) == "../../../../"
    assert pathlib.PurePosixPath(paths.release("org.db", "1.0.0")).parent.name == "1.0.0"
