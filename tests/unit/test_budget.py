# SPDX-License-Identifier: Apache-2.0

"""The time of a request, with the real clock."""

import itertools
import math
import time
import types

import pytest

from glare_murano import resolver
from glare_murano.budget import Budget, PausingBudget
from glare_murano.inheritance import find_subclasses
from glare_murano.package import Unplannable, Version, VersionSpec


@pytest.fixture(params=[Budget, PausingBudget])
def spent(request: pytest.FixtureRequest) -> Budget:
    """A budget whose time is over."""
    budget: Budget = request.param(0.25, "request less")
    time.sleep(0.26)
    return budget


def test_the_refusal_names_the_step_the_place_the_limit_and_the_remedy(spent: Budget) -> None:
    with pytest.raises(Unplannable) as refusal:
        spent.check("planning", "package org.a")

    assert str(refusal.value) == (
        "planning stopped at package org.a, after 0.25 seconds; request less, or raise the option "
        "plan_seconds"
    )


def test_the_place_of_a_plan_is_a_class_or_a_package(spent: Budget) -> None:
    def nothing(_: object) -> dict[str, list[Version]]:
        return {}

    star = VersionSpec.of("*")
    with pytest.raises(Unplannable, match=r"^planning stopped at class org\.a\.A, after"):
        resolver.find_headers([("org.a.A", star)], nothing, {}, lambda _: False, spent)
    source = types.SimpleNamespace(versions=nothing, requirements=nothing)
    with pytest.raises(Unplannable, match=r"^planning stopped at package org\.a, after"):
        resolver.plan([("org.a", star)], {}, source, budget=spent)


def test_the_place_of_a_search_is_a_class(spent: Budget) -> None:
    # The time is over before the first look-up.
    with pytest.raises(
        Unplannable, match=r"^listing the subclasses of org\.A stopped at class org\.A, after"
    ):
        find_subclasses("org.A", set(), types.SimpleNamespace(), spent)


def test_a_step_without_a_place_is_named_alone(spent: Budget) -> None:
    with pytest.raises(Unplannable, match=r"^reading metadata stopped, after 0.25 seconds; "):
        spent.check("reading metadata")


def test_no_item_is_handled_after_the_time(spent: Budget) -> None:
    handled = []
    with pytest.raises(Unplannable, match=r"^planning stopped at item 1, after"):
        handled += spent.watch([1, 2], "planning", lambda item: f"item {item}")

    assert handled == []


@pytest.mark.parametrize("kind", [Budget, PausingBudget])
def test_a_loop_ends_at_its_time(kind: type[Budget]) -> None:
    start = time.monotonic()
    with pytest.raises(Unplannable, match=r"^counting stopped, after 0.2 seconds; "):
        for _ in kind(0.2, "count less").watch(itertools.count(), "counting"):
            pass

    assert time.monotonic() - start >= 0.2


@pytest.mark.parametrize("kind", [Budget, PausingBudget])
def test_in_its_time_a_step_gets_all_items(kind: type[Budget]) -> None:
    budget = kind(math.inf, "")
    budget.check("planning", "package org.a")

    assert list(budget.watch(range(5), "planning")) == [0, 1, 2, 3, 4]


def test_a_service_chooses_the_error() -> None:
    with pytest.raises(LookupError, match="stopped"):
        Budget(-1, "", LookupError).check("planning")


def test_the_place_is_described_only_for_the_refusal() -> None:
    def describe(_: object) -> str:
        raise AssertionError

    assert list(Budget(60, "").watch([1, 2], "planning", describe)) == [1, 2]


@pytest.mark.parametrize(("kind", "pauses"), [(PausingBudget, True), (Budget, False)])
def test_only_a_request_without_locks_lets_green_threads_run(
    monkeypatch: pytest.MonkeyPatch, kind: type[Budget], pauses: bool
) -> None:
    """A request that holds locks must not let others of its process run, and wait for the locks."""
    found: list[float] = []
    monkeypatch.setattr(time, "sleep", found.append)
    end = time.monotonic() + 0.1

    for _ in kind(60, "").watch(itertools.count(), "counting"):
        if time.monotonic() > end:
            break

    assert set(found) == ({0} if pauses else set())
    # About one for each hundredth of a second, on a quiet machine.
    assert (2 if pauses else 0) <= len(found) <= 12
