# SPDX-License-Identifier: Apache-2.0

"""Messages of problems."""

import pytest

from glare_murano.package import Problem
from glare_murano.package.errors import listed
from glare_murano.package.rules import Rule


@pytest.mark.parametrize(("count", "more"), [(50, ""), (51, "; and 1 more"), (53, "; and 3 more")])
def test_a_message_has_the_first_problems(count: int, more: str) -> None:
    problems = [Problem(Rule.YAML_KEY, f"file{number}", "wrong") for number in range(count)]
    first = "; ".join(f"file{number}: wrong [yaml-key]" for number in range(50))

    assert listed(problems) == f"{first}{more}"


def test_a_long_place_is_shortened() -> None:
    shown = "x" * 120
    assert str(Problem(Rule.YAML_KEY, shown, "wrong")) == f"{shown}: wrong [yaml-key]"
    assert str(Problem(Rule.YAML_KEY, f"{shown}x", "wrong")).startswith("'xxx")
