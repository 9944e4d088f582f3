# SPDX-License-Identifier: Apache-2.0

"""The smallest version after changes of a part, and which declared versions are enough."""

import pytest

from glare_murano.package import Version, VersionSpec
from loader.compatibility import Part, Verdict, smallest_version

MAJOR, MINOR, PATCH = Part.MAJOR, Part.MINOR, Part.PATCH


@pytest.mark.parametrize(
    ("old", "part", "smallest"),
    [
        ("1.2.3", MAJOR, "2.0.0"),
        ("1.2.3", MINOR, "1.3.0"),
        ("1.2.3", PATCH, "1.2.4"),
        ("0.2.3", MAJOR, "0.3.0"),
        ("0.2.3", MINOR, "0.2.4"),
        ("0.2.3", PATCH, "0.2.4"),
        ("0.0.3", MAJOR, "0.1.0"),
        ("0.0.3", MINOR, "0.0.4"),
        ("0.0.0", MAJOR, "0.0.0"),
        ("2.0.0-rc.1", MAJOR, "2.0.0"),
        ("2.0.0-rc.1", PATCH, "2.0.0"),
        ("1.2.3+build.5", PATCH, "1.2.4"),
    ],
)
def test_the_smallest_version(old: str, part: Part, smallest: str) -> None:
    assert smallest_version(Version(old), part) == Version(smallest)


@pytest.mark.parametrize(
    ("old", "part", "declared", "is_enough"),
    [
        ("1.2.3", MAJOR, "2.0.0", True),
        ("1.2.3", MAJOR, "1.9.9", False),
        ("1.2.3", MINOR, "1.3.0", True),
        ("1.2.3", MINOR, "2.0.0", True),
        ("1.2.3", MINOR, "1.2.4", False),
        ("1.2.3", PATCH, "1.2.4", True),
        ("1.2.3", PATCH, "1.2.3", False),
        ("1.2.3", PATCH, "1.2.3+build.5", False),
        ("1.2.3", PATCH, "1.2.2", False),
        ("1.2.3", MAJOR, "2.0.0-rc.1", True),
        ("1.2.3", MAJOR, "1.9.0-rc.1", False),
        ("2.0.0-rc.1", MAJOR, "2.0.0-rc.2", True),
        ("2.0.0-rc.1", MAJOR, "2.0.0", True),
        ("2.0.0-rc.2", MAJOR, "2.0.0-rc.1", False),
        ("0.2.3", MAJOR, "0.2.9", False),
        ("0.2.3", MAJOR, "0.3.0", True),
        ("0.2.3", MAJOR, "1.0.0", True),
        ("0.0.0", MAJOR, "0.0.0", True),
        ("0.0.0", MAJOR, "0.0.1", True),
    ],
)
def test_whether_a_version_is_enough(old: str, part: Part, declared: str, is_enough: bool) -> None:
    smallest = smallest_version(Version(old), part)
    verdict = Verdict(part, Version(old), Version(declared), smallest)

    assert verdict.is_enough is is_enough
    assert ("is not enough" in str(verdict)) is not is_enough
    assert str(smallest) in str(verdict)


@pytest.mark.parametrize(
    ("old", "declared", "note"),
    [
        ("1.2.3", "1.2.3+b", "==1.2.3 contains every build of 1.2.3, ==1.2.3+b only this one"),
        ("1.2.3+a", "1.2.4", "==1.2.3 contains every build of 1.2.3, ==1.2.3+a only this one"),
        ("1.2.3", "2.0.0-rc.1+b", "==2.0.0-rc.1 contains every build of 2.0.0-rc.1, =="),
    ],
)
def test_with_build_metadata_the_verdict_describes_what_ranges_contain(
    old: str, declared: str, note: str
) -> None:
    verdict = Verdict(PATCH, Version(old), Version(declared), Version("1.2.4"))

    assert f"; the range {note}" in str(verdict)
    assert "every build" not in str(Verdict(PATCH, *map(Version, ["1.2.3", "1.2.4", "1.2.4"])))
    # So does the parser of ranges.
    without, build = Version("1.2.3"), Version("1.2.3+b")
    assert [VersionSpec.of("==1.2.3").match(each) for each in (without, build)] == [True, True]
    assert [VersionSpec.of("==1.2.3+b").match(each) for each in (without, build)] == [False, True]


def test_without_a_version_the_smallest_is_named() -> None:
    verdict = Verdict(PATCH, Version("1.2.3"), Version("0.0.0"), Version("1.2.4"))

    assert (verdict.is_enough, verdict.is_unversioned) == (False, True)
    assert str(verdict).startswith("the release of these changes needs 1.2.4 or newer: after 1.2.3")


@pytest.mark.parametrize(
    ("old", "part", "needed"),
    [
        ("1.2.3", MAJOR, "need a new major version; use 2.0.0 or newer"),
        (
            "0.1.3",
            MAJOR,
            "need a new minor version (below 1.0.0, the minor number stands for the major one); "
            "use 0.2.0 or newer",
        ),
        (
            "0.1.3",
            MINOR,
            "need a new patch version (below 1.0.0, the patch number stands for the minor one); "
            "use 0.1.4 or newer",
        ),
        ("0.1.3", PATCH, "need a new patch version; use 0.1.4 or newer"),
    ],
)
def test_the_needed_part_is_the_one_that_is_raised(old: str, part: Part, needed: str) -> None:
    verdict = Verdict(part, Version(old), Version(old), smallest_version(Version(old), part))
    assert str(verdict).endswith(needed)


def test_the_parts_are_in_order() -> None:
    assert max(PATCH, MAJOR, MINOR) is MAJOR
    assert list(map(str, Part)) == ["patch", "minor", "major"]
