# SPDX-License-Identifier: Apache-2.0

"""Each rule finds its change, and does not find the nearest other one."""

import pytest

from loader.compatibility import Part, Rule, compare
from tests.unit.compatibility.cases import CASES, Case
from tests.unit.compatibility.packages import package

# Rules of the manifest, tested in test_manifests.py.
OF_MANIFESTS = {
    Rule.REQUIREMENT_NARROWED,
    Rule.REQUIREMENT_WIDENED,
    Rule.REQUIREMENT_CHANGED,
    Rule.FORMAT_CHANGED,
    Rule.APPLICATION_REMOVED,
}


def _name(case: Case) -> str:
    return f"{CASES.index(case)}-{case.rule}"


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_a_rule_finds_its_change(case: Case) -> None:
    comparison = compare(package(case.old), package(case.new))

    assert {change.rule for change in comparison.changes} == {case.rule}, comparison.report()
    assert comparison.part is case.rule.part


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_a_rule_does_not_find_the_nearest_other_change(case: Case) -> None:
    comparison = compare(package(case.old), package(case.near))

    found = {change.rule for change in comparison.changes}
    assert found == set(case.near_rules), comparison.report()


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} == set(Rule) - OF_MANIFESTS


@pytest.mark.parametrize("case", [c for c in CASES if c.rule.part is Part.MAJOR], ids=_name)
def test_a_major_change_is_not_found_between_equal_versions(case: Case) -> None:
    assert compare(package(case.new), package(case.new)).changes == ()
