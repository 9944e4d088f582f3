# SPDX-License-Identifier: Apache-2.0

"""Versions and ranges: the grammar as tables, and agreement with the engine."""

import contextlib
import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from murano.dsl import helpers
from semantic_version import SimpleSpec

from glare_murano.package import (
    GlareMuranoError,
    InvalidRange,
    InvalidVersion,
    Version,
    VersionSpec,
    parse_version,
)
from glare_murano.package.versions import SortedVersions
from tests import effort

# Python converts no integer of more decimal digits.
MOST_DIGITS = 4300


class TestParseVersion:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (None, "0.0.0"),
            ("", "0.0.0"),
            ("  ", "0.0.0"),
            ("0", "0.0.0"),
            ("1", "1.0.0"),
            ("1.2", "1.2.0"),
            ("1.10", "1.10.0"),
            ("1.2.3", "1.2.3"),
            (" 1.2\n", "1.2.0"),
            ("1.2.3\n", "1.2.3"),
            ("1.2.3-rc.1", "1.2.3-rc.1"),
            ("1.2.3-0", "1.2.3-0"),
            ("1.2.3--", "1.2.3--"),
            ("1.2.3+build.007", "1.2.3+build.007"),
            ("1.2.3-rc.1+build", "1.2.3-rc.1+build"),
            ("99999999999999999999.0.0", "99999999999999999999.0.0"),
        ],
    )
    def test_reads_semver_and_completes_a_partial_version(self, text, expected):
        assert str(parse_version(text)) == expected

    @pytest.mark.parametrize(
        "text",
        [
            "1.2.3.4",
            "1.x",
            "1.*",
            "*",
            "v1",
            "V1.2.3",
            "01",
            "01.2.3",
            "1.02.3",
            "1.2.03",
            "1.2-rc1",
            "1-rc1",
            "1+build",
            "1.2.3-",
            "1.2.3+",
            "1.2.3-+b",
            "1.2.3-01",
            "1.2.3-a..b",
            "1.2.3-a_b",
            "1.2.3+a_b",
            "1.2.3+a+b",
            "1.",
            ".1",
            "1..2",
            "-1",
            "+1",
            "1,2",
            "1 .2",
            "1.2.3 4",
            "1.2.3\x00",
            "latest",
            ">=1",
        ],
    )
    def test_refuses_what_is_no_semver(self, text):
        with pytest.raises(InvalidVersion):
            parse_version(text)

    @pytest.mark.parametrize(
        "text", ["\u0661", "\u0661.\u0662", "\u0661.\u0662.\u0663", "1.2.\uff13"]
    )
    def test_refuses_digits_that_are_not_ascii(self, text):
        with pytest.raises(InvalidVersion):
            parse_version(text)

    @pytest.mark.parametrize(
        "text",
        [
            pytest.param("9" * (MOST_DIGITS + 1), id="major"),
            pytest.param("1.2.3-" + "9" * (MOST_DIGITS + 1), id="pre-release"),
        ],
    )
    def test_refuses_a_number_that_python_cannot_hold(self, text):
        with pytest.raises(InvalidVersion):
            parse_version(text)

    def test_the_error_names_the_text_and_what_was_expected(self):
        with pytest.raises(
            InvalidVersion, match=r"^'1\.x' is not a valid version: expected SemVer, such as"
        ):
            parse_version("1.x")

    def test_the_error_is_a_value_error_of_this_project(self):
        with pytest.raises(InvalidVersion) as caught:
            parse_version("1.x")
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, GlareMuranoError)


# A range, versions in it, versions out of it.
GRAMMAR = [
    (None, "0.0.0 0.9.9 0.1.0-rc.1 0.0.0+b", "1.0.0 1.0.0-rc.1 0.0.0-rc.1"),
    ("", "0.0.0 0.9.9", "1.0.0 1.0.0-rc.1"),
    ("0", "0.0.0 0.9.9", "1.0.0 1.0.0-rc.1"),
    ("1", "1.0.0 1.0.1 1.9.9 1.9.9-rc.1 1.0.0+b", "0.9.9 1.0.0-rc.1 2.0.0 2.0.0-rc.1"),
    ("1.2", "1.2.0 1.2.9 1.2.9-rc.1", "1.1.9 1.2.0-rc.1 1.3.0 1.3.0-rc.1"),
    ("1.10", "1.10.0 1.10.1", "1.1.0 1.11.0"),
    ("1.2.3", "1.2.3 1.2.3+b", "1.2.3-rc.1 1.2.2 1.2.4"),
    ("1.2.3-rc.1", "1.2.3-rc.1 1.2.3-rc.1+b", "1.2.3-rc.2 1.2.3"),
    ("1.2.3+b", "1.2.3+b", "1.2.3 1.2.3+c 1.2.3-rc.1+b"),
    ("==1", "1.0.0 1.9.9", "0.9.9 2.0.0"),
    ("= 1.2", "1.2.0 1.2.9", "1.3.0"),
    ("=1.2.3", "1.2.3", "1.2.4"),
    ("!=1.2.3", "1.2.2 1.2.4 0.0.0", "1.2.3 1.2.3+b 1.2.3-rc.1"),
    ("!=1.2.3-rc.1", "1.2.3 1.2.3-rc.2", "1.2.3-rc.1"),
    ("!=1.2.3+b", "1.2.3 1.2.3+c", "1.2.3+b"),
    ("<1", "0.9.9 0.9.9-rc.1", "1.0.0 1.0.0-rc.1"),
    ("<1.2.3", "1.2.2", "1.2.3 1.2.3-rc.1 1.2.3-0"),
    ("<1.2.3-rc.2", "1.2.2 1.2.3-rc.1", "1.2.3-rc.2 1.2.3"),
    ("<=1", "1.0.0 1.9.9", "2.0.0 2.0.0-rc.1"),
    ("<=1.2", "1.2.9", "1.3.0"),
    ("<=1.2.3", "1.2.3 1.2.3-rc.1 1.2.3+b", "1.2.4"),
    (">1", "2.0.0 3.0.0-rc.1", "1.0.0 1.9.9 2.0.0-rc.1"),
    (">1.2", "1.3.0", "1.2.0 1.2.9"),
    (">1.2.3", "1.2.4 1.2.4-rc.1", "1.2.3 1.2.3+b 1.2.3-rc.1"),
    (">=1", "1.0.0 2.0.0", "0.9.9 1.0.0-rc.1"),
    (">=1.2.3-rc.1", "1.2.3-rc.1 1.2.3", "1.2.3-alpha 1.2.2"),
    (">=1.2,<2", "1.2.0 1.9.9", "1.1.9 2.0.0 2.0.0-rc.1"),
    (" >= 1.2 ,\t< 2\n", "1.2.0 1.9.9", "1.1.9 2.0.0"),
    (">=1,!=1.5.0,<2", "1.4.0 1.5.1", "1.5.0 1.5.0-rc.1 0.9.9 2.0.0"),
    ("1,<1.5", "1.4.9", "1.5.0 0.9.0"),
    (">=2,<1", "", "0.9.9 1.0.0 1.5.0 2.0.0"),
    ("*", "0.0.0 9.9.9 1.0.0-rc.1", "0.0.0-rc.1"),
    ("==*", "0.0.0 9.9.9", "0.0.0-rc.1"),
    ("1.*", "1.0.0 1.9.9", "2.0.0"),
    ("~1.2.3", "1.2.3 1.2.9", "1.2.2 1.3.0"),
    ("^1.2.3", "1.2.3 1.9.9", "1.2.2 2.0.0"),
    ("^0.2.3", "0.2.3 0.2.9", "0.3.0"),
    ("~=1.2", "1.2.0 1.9.9", "1.1.9 2.0.0"),
]

REFUSED_RANGES = [
    " ",
    ",",
    ",1",
    "1,",
    "1,,2",
    "1 || 2",
    "v1",
    "x",
    "1.x",
    "01",
    "1.02.3",
    "1.2.3.4",
    "1.2-rc1",
    "==1-rc1",
    ">=1.2+b",
    ">=1.2.3+b",
    "<1.2.3+b",
    "1.2.3-01",
    "1.2.3-a..b",
    "1.2.3-a_b",
    "===1.2.3",
    "=>1",
    "=<1",
    "<>1",
    "><1",
    ">*",
    "!=*",
    ">",
    "==",
    "1 to 2",
    "latest",
    "\u0661",
    "=\u0661",
    "\u00b2",
]

# The specification's alone: the engine itself refuses these, or finds no version in them.
PARTIAL_EXCLUSIONS = [
    (">=1.2,<2.0,!=1.5", "1.2.0 1.4.9-rc.1 1.6.0", "1.1.0 1.5.0-rc.1 1.5.0 1.5.9 1.5.9-rc.1 2.0.0"),
    ("!=1.5", "0.0.0 1.4.9 1.4.9-rc.1 1.6.0 9.9.9", "1.5.0 1.5.0-rc.1 1.5.0+b 1.6.0-rc.1"),
    ("!=1", "0.9.9 0.9.9+b 2.0.0", "1.0.0 1.0.0-rc.1 1.9.9 2.0.0-rc.1"),
    ("!=1,!=2.1", "0.9.9 2.0.9 2.2.0", "1.5.0 2.1.0 2.1.7"),
    ("!=1.5,!=1.5.3", "1.4.0 1.6.0", "1.5.0 1.5.3"),
    ("!=1.*", "0.9.9 2.0.0", "1.0.0 1.9.9"),
]


class TestGrammar:
    @pytest.mark.parametrize(("text", "inside", "outside"), GRAMMAR)
    def test_a_range_holds_these_versions_and_not_those(self, text, inside, outside):
        spec = VersionSpec.of(text)
        assert [v for v in inside.split() if not spec.match(Version(v))] == []
        assert [v for v in outside.split() if spec.match(Version(v))] == []

    @pytest.mark.parametrize(("text", "inside", "outside"), GRAMMAR)
    def test_the_engine_reads_it_the_same_way(self, text, inside, outside):
        spec = helpers.parse_version_spec(text)
        assert [v for v in inside.split() if not spec.match(Version(v))] == []
        assert [v for v in outside.split() if spec.match(Version(v))] == []

    @pytest.mark.parametrize(("text", "inside", "outside"), PARTIAL_EXCLUSIONS)
    def test_a_partial_version_is_excluded_with_all_its_versions(self, text, inside, outside):
        spec = VersionSpec.of(text)
        assert [v for v in inside.split() if not spec.match(Version(v))] == []
        assert [v for v in outside.split() if spec.match(Version(v))] == []

    @pytest.mark.parametrize("text", REFUSED_RANGES)
    def test_refuses_what_the_engine_refuses(self, text):
        assert engine_spec(text) is None
        with pytest.raises(InvalidRange):
            VersionSpec.of(text)

    @pytest.mark.parametrize(
        "text",
        [
            pytest.param("9" * MOST_DIGITS, id="its successor"),
            pytest.param("<=1." + "9" * MOST_DIGITS, id="the successor of its minor"),
            pytest.param("9" * (MOST_DIGITS + 1), id="itself"),
        ],
    )
    def test_refuses_a_number_that_python_cannot_hold(self, text):
        with pytest.raises(InvalidRange):
            VersionSpec.of(text)

    def test_very_many_clauses_are_read_or_refused_at_once(self):
        text = ",".join(f">={number}" for number in range(4_000))
        started = time.monotonic()
        with contextlib.suppress(InvalidRange):
            VersionSpec.of(text)
        assert time.monotonic() - started < 20

    def test_the_text_stays_as_written(self):
        assert str(VersionSpec.of(" >= 1.10 ")) == " >= 1.10 "
        assert repr(VersionSpec.of(">=1.10")) == "VersionSpec('>=1.10')"

    def test_white_space_in_the_text_breaks_no_line(self):
        assert str(VersionSpec.of("==1.0.0-\n\r\x1c\u2028forged,\t<2")) == "==1.0.0- forged, <2"

    @pytest.mark.parametrize("text", [None, ""])
    def test_no_text_is_written_as_0(self, text):
        assert VersionSpec.of(text).text == "0"

    @pytest.mark.parametrize(
        ("text", "canonical"),
        [
            ("*", ">=0.0.0"),
            ("1", "<2.0.0,>=1.0.0"),
            ("<2 , >= 1", "<2.0.0,>=1.0.0"),
            ("=1.2.3", "==1.2.3"),
            (">1.2", ">=1.3.0"),
            ("!=1.2.3,1.2", "!=1.2.3,<1.3.0,>=1.2.0"),
            ("!=1.5.*,!=2,!=1.5", "!=1.5,!=2"),
        ],
    )
    def test_canonical_has_full_versions_in_one_order(self, text, canonical):
        assert VersionSpec.of(text).canonical == canonical


class TestErrors:
    def test_a_range_that_is_none_is_quoted_with_examples(self):
        with pytest.raises(InvalidRange) as caught:
            VersionSpec.of(">= one")
        assert str(caught.value) == (
            "'>= one' is not a valid range of versions: expected a version such as 1 or 1.2, "
            "clauses such as >=1.2,<2, or *"
        )

    def test_a_number_is_shown_as_one(self):
        with pytest.raises(InvalidRange, match=r"^the float '1\.1' is not a valid range: write it"):
            VersionSpec.of(1.10)

    def test_a_range_is_not_kept_however_many_blanks_it_has(self):
        assert VersionSpec.of(">= 1 , < 2 " + " " * 2000).canonical == "<2.0.0,>=1.0.0"
        with pytest.raises(InvalidRange):
            VersionSpec.of("1" + " " * 3000)

    def test_the_error_is_a_value_error_of_this_project(self):
        with pytest.raises(InvalidRange) as caught:
            VersionSpec.of("x")
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, GlareMuranoError)


class TestSelect:
    def test_the_newest_in_the_range(self):
        versions = [Version(text) for text in ("1.0.0", "1.10.0", "1.9.0", "2.0.0")]
        assert VersionSpec.of("1").select(versions) == Version("1.10.0")

    def test_a_release_before_its_pre_releases(self):
        versions = [Version(text) for text in ("1.2.0-rc.1", "1.2.0", "1.2.0-rc.2")]
        assert VersionSpec.of("1").select(versions) == Version("1.2.0")

    def test_none_where_no_version_is_in_the_range(self):
        assert VersionSpec.of("3").select([Version("1.0.0")]) is None
        assert VersionSpec.of("3").select([]) is None

    def test_the_first_given_of_those_that_differ_in_build_metadata(self):
        versions = [Version("1.0.0+b"), Version("1.0.0+c"), Version("1.0.0+a")]
        assert VersionSpec.of("1").select(versions) is versions[0]

    def test_the_build_that_the_range_names(self):
        versions = [Version("1.0.0+b"), Version("1.0.0"), Version("1.0.0+a")]
        assert VersionSpec.of("1.0.0").select(versions) is versions[1]
        assert VersionSpec.of("==1.0.0+a").select(versions) is versions[2]
        assert VersionSpec.of("1.0.0").select(versions[::2]) is versions[0]

    def test_takes_any_iterable(self):
        versions = (Version(text) for text in ("1.0.0", "1.1.0"))
        assert VersionSpec.of("1").select(versions) == Version("1.1.0")


class TestLimits:
    def test_a_version_has_at_most_1024_characters(self):
        longest = "1.2.3-" + "a" * (1024 - len("1.2.3-"))
        assert str(parse_version(longest)) == longest
        with pytest.raises(InvalidVersion):
            parse_version(longest + "a")

    def test_a_range_has_at_most_1024_characters_without_its_white_space(self):
        longest = ">=1.2.3-" + "a" * (1024 - len(">=1.2.3-"))
        assert VersionSpec.of(longest).match(Version("2.0.0"))
        assert VersionSpec.of(f" {longest} ") == VersionSpec.of(longest)
        with pytest.raises(InvalidRange):
            VersionSpec.of(longest + "a")

    def test_a_range_has_at_most_2048_characters_with_its_white_space(self):
        longest = ">=1" + " " * (2048 - len(">=1"))
        assert VersionSpec.of(longest) == VersionSpec.of(">=1")
        with pytest.raises(InvalidRange):
            VersionSpec.of(longest + " ")

    def test_a_range_has_at_most_32_clauses(self):
        most = ",".join(f"!=1.0.{patch}" for patch in range(32))
        spec = VersionSpec.of(most)
        assert not spec.match(Version("1.0.31"))
        assert spec.match(Version("1.0.32"))
        with pytest.raises(InvalidRange):
            VersionSpec.of(f"{most},!=1.0.32")


class TestExactly:
    @pytest.mark.parametrize("text", ["0.0.0", "1.2.3", "1.2.3-rc.1", "1.2.3+b", "1.2.3-rc.1+b"])
    def test_holds_that_version(self, text):
        assert VersionSpec.exactly(Version(text)).match(Version(text))

    @pytest.mark.parametrize("other", ["1.2.2", "1.2.4", "1.2.3-rc.1", "2.0.0"])
    def test_holds_no_other(self, other):
        assert not VersionSpec.exactly(Version("1.2.3")).match(Version(other))

    @pytest.mark.parametrize("text", ["1.2.3", "1.2.3+b"])
    @pytest.mark.parametrize("other", ["1.2.3", "1.2.3+b", "1.2.3+c"])
    def test_build_metadata_counts_as_it_does_for_the_engine(self, text, other):
        expected = helpers.parse_version_spec(Version(text)).match(Version(other))
        assert VersionSpec.exactly(Version(text)).match(Version(other)) is expected


class TestEquality:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (None, "0"),
            ("1", " 1 "),
            ("1", ">=1,<2"),
            (">=1,<2", "<2,>=1"),
            ("*", ">=0"),
            ("=1.2.3", "1.2.3"),
            ("~1.2", "1.2"),
            (">1.2", ">=1.3"),
            (">=1,>=1", ">=1"),
            ("1.2.3,=1.2.3", "==1.2.3"),
            ("!=1.2.3-,!=1.2.3", "!=1.2.3"),
            ("<1.2.3-,<1.2.3", "<1.2.3"),
        ],
    )
    def test_the_same_clauses_are_the_same_range(self, one, other):
        assert VersionSpec.of(one) == VersionSpec.of(other)
        assert hash(VersionSpec.of(one)) == hash(VersionSpec.of(other))
        assert len({VersionSpec.of(one), VersionSpec.of(other)}) == 1

    @pytest.mark.parametrize(
        ("one", "other"),
        [("1", "2"), ("1", "1.0"), ("1.2.3", "1.2.3+b"), (">1.2.3", ">=1.2.3"), ("*", "0")],
    )
    def test_other_clauses_are_another_range(self, one, other):
        assert VersionSpec.of(one) != VersionSpec.of(other)

    def test_a_text_is_no_range(self):
        assert VersionSpec.of("1") != "1"


def engine_spec(text):
    """What the engine makes of a range, or None where it fails in any way."""
    try:
        return helpers.parse_version_spec(text)
    except Exception:
        return None


PARTIAL_EXCLUSION = re.compile(r"!=(0|[1-9][0-9]*)(\.(\*|0|[1-9][0-9]*))?(\.\*)?-?\+?\Z")


def partial_exclusion(clause):
    """Read a clause as the library does; the engine breaks it apart."""
    return SimpleSpec("".join(clause.split()))


def joined(*parts):
    return st.tuples(*parts).map("".join)


# Few numbers, so that versions meet the edges of ranges.
NUMBERS = st.sampled_from(["0", "1", "2", "3", "10"])
IDENTIFIERS = st.lists(
    st.sampled_from(["0", "1", "2", "11", "a", "b", "rc", "RC", "-", "0a", "x-y"]),
    min_size=1,
    max_size=3,
).map(".".join)
PARTIAL_VERSIONS = st.lists(NUMBERS, min_size=1, max_size=2).map(".".join)
RELEASES = st.lists(NUMBERS, min_size=3, max_size=3).map(".".join)
PRE_RELEASES = joined(RELEASES, st.just("-"), IDENTIFIERS)
BUILDS = joined(RELEASES | PRE_RELEASES, st.just("+"), IDENTIFIERS)
VERSIONS = (RELEASES | PRE_RELEASES | BUILDS).map(Version)

ORDERED = st.sampled_from(["<", "<=", ">", ">=", "~", "^", "~="])
EQUAL = st.sampled_from(["==", "=", ""])
CLAUSES = (
    st.tuples(ORDERED, PARTIAL_VERSIONS | RELEASES | PRE_RELEASES)
    | st.tuples(EQUAL, PARTIAL_VERSIONS | RELEASES | PRE_RELEASES | BUILDS)
    | st.tuples(st.just("!="), PARTIAL_VERSIONS | RELEASES | PRE_RELEASES | BUILDS)
)
ODD_CLAUSES = st.tuples(
    ORDERED | EQUAL | st.sampled_from(["!=", "===", "=>", "<>", "!"]),
    joined(
        st.lists(
            NUMBERS | st.sampled_from(["*", "01", "x", "4294967296"]), min_size=1, max_size=4
        ).map(".".join),
        st.just("") | joined(st.just("-"), IDENTIFIERS | st.sampled_from(["", "01", "a..b"])),
        st.just("") | joined(st.just("+"), IDENTIFIERS | st.sampled_from(["", "01"])),
    ),
)
SPACES = st.sampled_from(["", "", "", " ", "\t", "\n", "\u00a0", " \r\n "])


@st.composite
def ranges(draw, clauses=CLAUSES):
    """Clauses with white space anywhere between their parts."""
    chosen = draw(st.lists(clauses, min_size=1, max_size=4))
    tokens = [token for clause in chosen for token in (",", *clause)][1:]
    return "".join(draw(SPACES) + token for token in tokens) + draw(SPACES)


@st.composite
def mistyped(draw, texts):
    """A text with one piece of it replaced."""
    text = draw(texts)
    start = draw(st.integers(0, len(text)))
    length = draw(st.integers(0, 2))
    piece = draw(st.text("0123456789.,<>=!~^*-+ax \t", max_size=2))
    return text[:start] + piece + text[start + length :]


GARBAGE = st.text("0123456789.,<>=!~^*-+ax \t\n", max_size=12) | st.text(max_size=8)
RANGES = ranges() | ranges(CLAUSES | ODD_CLAUSES) | mistyped(ranges()) | GARBAGE


class TestAgreementWithTheEngine:
    @settings(max_examples=effort.RANGES)
    @example(">=1,!=1.5.0,<2", [Version("1.5.0"), Version("1.5.0-rc.1"), Version("1.6.0+b")])
    @given(RANGES, st.lists(VERSIONS, max_size=8))
    def test_every_range_selects_what_the_engine_selects(self, text, versions):
        clauses = text.split(",")
        # These are the specification's alone; the other clauses have the engine's meaning.
        partial = [c for c in clauses if PARTIAL_EXCLUSION.match("".join(c.split()))]
        others = [clause for clause in clauses if clause not in partial]
        expected = [partial_exclusion(clause) for clause in partial]
        if others:
            expected.append(engine_spec(",".join(others) or "," if partial else text))
        if None in expected:
            with pytest.raises(InvalidRange):
                VersionSpec.of(text)
            return
        spec = VersionSpec.of(text)
        inside = [v for v in versions if all(part.match(v) for part in expected)]
        assert list(filter(spec.match, versions)) == inside
        assert spec.select(versions) == max(inside, default=None)

    @settings(max_examples=effort.FILES)
    @given(VERSIONS, st.lists(VERSIONS, max_size=8))
    def test_exactly_selects_what_the_engine_selects(self, version, versions):
        expected = helpers.parse_version_spec(version)
        spec = VersionSpec.exactly(version)
        assert list(map(spec.match, versions)) == list(map(expected.match, versions))


class TestProperties:
    @settings(max_examples=effort.FILES)
    @given(st.lists(CLAUSES.map("".join), min_size=1, max_size=4), st.randoms(), VERSIONS)
    def test_equal_whatever_the_order_of_the_clauses(self, clauses, random, version):
        shuffled = random.sample(clauses, len(clauses))
        with contextlib.suppress(InvalidRange):
            one, other = VersionSpec.of(",".join(clauses)), VersionSpec.of(" , ".join(shuffled))
            assert one == other
            assert hash(one) == hash(other)
            assert one.match(version) == other.match(version)

    @settings(max_examples=effort.FILES)
    @given(ranges(), VERSIONS)
    def test_canonical_is_the_same_range(self, text, version):
        with contextlib.suppress(InvalidRange):
            spec = VersionSpec.of(text)
            again = VersionSpec.of(spec.canonical)
            assert again == spec
            assert again.match(version) == spec.match(version)


def test_a_range_cannot_change():
    with pytest.raises(AttributeError):
        VersionSpec.of("1").text = "2"
    assert VersionSpec.of("1").text == "1"


class TestWithFallbacks:
    @pytest.mark.parametrize(
        ("text", "ranges"),
        [
            ("1.2.3", ["1.2.3", "1.2", "1"]),
            ("==1.2.3-rc.1", ["==1.2.3-rc.1", "1.2", "1"]),
            ("1.2", ["1.2"]),
            (">=1.2.3", [">=1.2.3"]),
            (None, ["0"]),
        ],
    )
    def test_one_version_gives_way_to_its_minor_and_its_major(self, text, ranges):
        assert [str(spec) for spec in VersionSpec.of(text).with_fallbacks()] == ranges


@pytest.mark.parametrize(
    ("text", "is_exactly"),
    [
        ("1.2.3", True),
        ("=1.2.3", True),
        ("== 1.2.3", True),
        ("1.2", False),
        (">=1.2.3,<=1.2.3", False),
        ("=1.2.3,!=1.5", False),
        ("!=1.5", False),
        ("1.2.3-rc.1", False),
    ],
)
def test_only_the_version_alone_is_an_exact_range(text, is_exactly):
    assert VersionSpec.of(text).is_exactly(Version("1.2.3")) is is_exactly


class TestSortedVersions:
    @settings(max_examples=effort.RANGES)
    @given(ranges(), st.lists(VERSIONS, max_size=12))
    def test_finds_what_matches(self, text, versions):
        with contextlib.suppress(InvalidRange):
            spec = VersionSpec.of(text)
            found = SortedVersions(versions)
            inside = set(filter(spec.match, versions))
            assert set(found.newest_first(found.within(spec))) == inside
            assert found.among(inside) == found.within(spec)

    @settings(max_examples=effort.FILES)
    @given(st.lists(VERSIONS, max_size=12))
    def test_the_order_is_that_of_the_library(self, versions):
        found = SortedVersions(versions)
        expected = sorted(set(versions), key=lambda v: (v.precedence_key, v.build), reverse=True)
        assert list(found.newest_first(found.every)) == expected
        assert found.newest(found.every) == next(iter(expected), None)
        assert [found[found.place(version)] for version in versions] == versions

    @settings(max_examples=effort.FILES)
    @given(st.lists(VERSIONS, max_size=12), st.lists(st.lists(VERSIONS, max_size=6), max_size=6))
    def test_memberships_are_the_sets_of_each_version(self, versions, chosen):
        found = SortedVersions(versions)
        sets = [found.among(each) for each in chosen]
        oldest_first = reversed(list(found.newest_first(found.every)))
        assert found.memberships(sets) == [
            sum(1 << number for number, each in enumerate(chosen) if version in each)
            for version in oldest_first
        ]

    def test_without_versions_there_are_only_empty_sets(self):
        found = SortedVersions([])
        assert found.every == found.within(VersionSpec.of("*")) == 0
        assert found.newest(0) is None
        assert found.memberships([0, 0]) == []


def _seconds(work):
    """The least processor time of several runs."""

    def once():
        start = time.process_time()
        work()
        return time.process_time() - start

    return min(once() for _ in range(7))


class TestCost:
    """What a version or a range costs, compared with a plain one in the same run."""

    @pytest.mark.parametrize("form", ["1.0.0-rc.{}", "1.0.0+b.{}", "1.0.0-rc.1+b.{}"])
    def test_a_pre_release_costs_no_more_than_another_version(self, form):
        # Three times: the difference between a hash and none, and what a busy machine adds.
        spec = VersionSpec.of(",".join(f"!={form.format(number)}" for number in range(32)))
        unlike, plain = (
            [Version(text.format(number)) for number in range(100, 200)]
            for text in (form, "1.{}.0")
        )
        seconds, usual = (
            _seconds(lambda versions=versions: [spec.match(v) for v in versions * 20])
            for versions in (unlike, plain)
        )
        assert seconds < 3 * usual

    def test_a_long_pre_release_costs_no_more_than_a_short_one(self):
        spec = VersionSpec.of(f">=1.0.0-{'a.' * 480}b")
        long, short = (
            [Version(f"1.0.0-{'a.' * count}{number}") for number in range(100)]
            for count in (480, 1)
        )
        seconds, usual = (
            _seconds(lambda versions=versions: [spec.match(v) for v in versions * 20])
            for versions in (long, short)
        )
        # The hash of five hundred identifiers.
        assert seconds < 20 * usual

    def test_many_versions_cost_no_more_than_few(self):
        spec = VersionSpec.of(",".join(f"!=1.{number}.5" for number in range(32)))
        many, few = (
            SortedVersions(Version(f"1.{number}.0") for number in range(count))
            for count in (5000, 50)
        )
        seconds, usual = (
            _seconds(lambda versions=versions: [versions.within(spec) for _ in range(200)])
            for versions in (many, few)
        )
        assert seconds < 8 * usual
