# SPDX-License-Identifier: Apache-2.0

"""Which releases may be chosen, by name, owner and visibility."""

import pytest

from glare_murano.eligibility import Eligibility
from glare_murano.package import Version
from glare_murano.package.reserved_names import ReservedNames
from glare_murano.wire import Release

RESERVED = ReservedNames.parse(b"io.murano: [ours]\norg.example: [ours]\norg.mine.: []", "names")


def _release(
    fqn: str, owner: str | None, visibility: str | None, version: str = "1.0.0"
) -> Release:
    id_ = f"{fqn} {version} {owner}"
    return Release(fqn, Version(version), {}, frozenset(), id_, owner=owner, visibility=visibility)


@pytest.mark.parametrize(
    ("fqn", "owner", "visibility", "without", "with_file"),
    [
        ("io.murano", "a", "public", True, False),
        ("io.murano", "a", "private", False, False),
        ("io.murano", "a", "shared", False, False),
        ("io.murano", "a", "community", False, False),
        ("io.murano", "ours", "private", False, True),
        ("io.murano", None, None, True, True),
        # Of a lock file that is not of public releases.
        ("io.murano", None, "private", False, False),
        ("io.murano.apps.a", "a", "private", True, False),
        ("org.example", "a", "public", True, False),
        ("org.example.db", "ours", "private", True, True),
        ("org.examples", "a", "private", True, True),
        ("org.mine.db", "ours", "public", True, False),
        ("org.mine.db", None, None, True, True),
    ],
)
def test_names(
    fqn: str, owner: str | None, visibility: str | None, without: bool, with_file: bool
) -> None:
    release = _release(fqn, owner, visibility)

    assert (Eligibility().find_objection(release) == "") is without
    assert (Eligibility(RESERVED).find_objection(release) == "") is with_file
    selected, excluded = Eligibility(RESERVED).select([release])
    assert (selected == [release], excluded == []) == (with_file, with_file)


def test_classes_count_like_names() -> None:
    rules = Eligibility(RESERVED)

    assert rules.allows_class("org.example.Db", _release("org.a", "ours", "private"))
    assert not rules.allows_class("org.example.Db", _release("org.a", "a", "public"))
    assert rules.allows_class("org.example.Db", _release("org.a", None, None))


def test_releases_that_are_not_public_are_behind_public_ones_of_their_name() -> None:
    public = _release("org.a", "a", "public")
    others = [_release("org.a", "b", kind, "2.0.0") for kind in ("private", "shared", "community")]
    alone = _release("org.b", "b", "private")
    rules = Eligibility(private_overrides=False)

    selected, excluded = rules.select([*others, public, alone])

    assert selected == [public, alone]
    assert {each.id for each in excluded} == {"org.a 2.0.0 b"}
    assert str(excluded[0]).startswith("org.a 2.0.0 of project b is not used: it is not public")
    assert Eligibility().select([*others, public]) == ([*others, public], [])


def test_a_public_release_that_is_excluded_itself_hides_no_other() -> None:
    foreign = _release("org.example", "a", "public")
    own = _release("org.example", "ours", "private")

    assert Eligibility(RESERVED, private_overrides=False).select([foreign, own])[0] == [own]


def test_a_directory_counts_as_public() -> None:
    folder, own = _release("org.a", None, None), _release("org.a", "b", "private")

    assert Eligibility(private_overrides=False).select([folder, own])[0] == [folder]
