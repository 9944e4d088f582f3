# SPDX-License-Identifier: Apache-2.0

"""The check of regular expressions, which finds mistakes and costs little."""

import re
import time

import pytest

from glare_murano.package.patterns import PatternCheck

# Python looks at each character of the range.
COSTLY = "[\0-\uffff]"
USUAL = r"^[a-zA-Z_][\w-]{0,62}[a-zA-Z0-9]$"


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}", "(?P<a>x)(?P<a>y)", "(?<=a+)b", "\\"])
def test_an_expression_that_is_not_valid_is_refused(pattern):
    with pytest.raises(ValueError, match=r"\w"):
        PatternCheck().check(pattern)


def test_the_flags_count():
    # Only without this flag may a set be written so.
    with pytest.raises(ValueError, match="unterminated"):
        PatternCheck().check("[#", re.VERBOSE)
    with pytest.raises(ValueError, match="incompatible"):
        PatternCheck().check("a", re.ASCII | re.UNICODE)


def test_a_nested_expression_is_a_mistake_and_no_crash():
    with pytest.raises(ValueError, match=r"\w"):
        PatternCheck().check("(" * 5000 + ")" * 5000)


def test_the_expressions_of_a_large_form_are_checked():
    check = PatternCheck()
    for number in range(30):
        check.check(f"{USUAL}|{number}")
    with pytest.raises(ValueError, match=r"\w"):
        check.check("(")


@pytest.mark.parametrize(
    "patterns",
    [
        [f"{COSTLY}{number}" for number in range(5_000)],
        [COSTLY * 10_000],
        [f"(?i){COSTLY * 10_000}"],
        ["[" + "\\0-\\uffff" * 10_000 + "]"],
        # Equal ones would be compiled once.
        [f"{COSTLY * 100}{number}" for number in range(200)],
    ],
    ids=["many", "one", "one without case", "one set", "some"],
)
@pytest.mark.parametrize("flags", [0, re.IGNORECASE])
def test_costly_expressions_cost_little(patterns, flags):
    re.purge()
    check = PatternCheck()
    start = time.process_time()
    for pattern in patterns:
        check.check(pattern, flags)
    assert time.process_time() - start < 5


def test_the_limit_of_the_costs_is_exact() -> None:
    """With it, a pattern costs 64, each of its characters 1, and each "[" or "-" 32 more."""
    for pattern, cost in (("(", 65), ("[", 97), ("(-", 98)):
        longest = pattern + "a" * (16 * 1024 - cost)
        with pytest.raises(ValueError, match=r"missing|unterminated"):
            PatternCheck().check(longest)
        PatternCheck().check(f"{longest}a")
