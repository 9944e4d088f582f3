# SPDX-License-Identifier: Apache-2.0

"""Planning on random catalogues, compared with its rule, computed from scratch."""

import random
from collections.abc import Iterable
from typing import Any

import pytest

from glare_murano import resolver
from tests import effort
from tests.unit import planning_rule
from tests.unit.planning_rule import Catalogue, Result

Answers = dict[resolver.Demand, set[resolver.PackageVersion]]


def _answers(catalogue: Catalogue) -> Answers:
    closure = resolver.plan(
        catalogue.roots,
        catalogue.pins,
        catalogue,
        headers=catalogue.headers,
        is_exact_only=catalogue.is_exact_only,
    )
    answers: Answers = {missing.demand: set() for missing in closure.unsatisfied}
    for release, demands in closure.releases.items():
        for demand in demands:
            answers.setdefault(demand, set()).add(release)
    return answers


def _expected(result: Result) -> Answers:
    answers: Answers = {}
    for (demand, _), release in result.answers.items():
        answers.setdefault(demand, set()).update({release} - {None})
    return answers


Planned = list[tuple[Catalogue, Result]]


@pytest.fixture(scope="module")
def planned() -> Planned:
    """Random catalogues, each planned by the rule."""
    catalogues = [planning_rule.generate(random.Random(seed)) for seed in range(effort.CATALOGUES)]
    return [(catalogue, planning_rule.plan(catalogue)) for catalogue in catalogues]


def test_the_answer_is_that_of_the_rule(planned: Planned) -> None:
    for catalogue, result in planned:
        assert _answers(catalogue) == _expected(result), catalogue


def test_every_choice_is_the_answer_to_the_remaining_and_kept_ranges(planned: Planned) -> None:
    for catalogue, result in planned:
        taken = set().union(*_answers(catalogue).values())
        for fqn in {demand.fqn for demand, _ in result.answers}:
            upon = planning_rule.upon(fqn, result.answers)
            kept = result.kept.get(fqn, set())
            chosen = planning_rule.choose(catalogue, fqn, upon | kept)
            versions = {release.version for release in taken if release.fqn == fqn}
            # Releases that only kept ranges ask for are left out.
            assert versions == chosen if kept <= upon else versions <= chosen


def test_without_cycles_nothing_is_kept(planned: Planned) -> None:
    acyclic = [result for catalogue, result in planned if not catalogue.has_cycle()]

    assert acyclic
    assert not any(result.kept for result in acyclic)
    # In the others, something is kept now and then.
    assert any(result.kept for _, result in planned)


def test_the_order_does_not_matter(planned: Planned) -> None:
    dice = random.Random(0)
    for catalogue, _ in planned:
        shuffled = Catalogue(
            dict(_shuffled(dice, catalogue.packages.items())),
            _shuffled(dice, catalogue.roots),
            _shuffled(dice, catalogue.headers),
            {fqn: _shuffled(dice, pins) for fqn, pins in catalogue.pins.items()},
            catalogue.exact_only,
        )
        assert list(_answers(shuffled).items()) == list(_answers(catalogue).items())


def _shuffled(dice: random.Random, items: Iterable[Any]) -> list[Any]:
    found = list(items)
    dice.shuffle(found)
    return found
