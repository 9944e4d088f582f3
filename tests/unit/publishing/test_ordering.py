# SPDX-License-Identifier: Apache-2.0

from hypothesis import given
from hypothesis import strategies as st

from loader.publishing.ordering import required_first

_graphs = st.integers(1, 8).flatmap(
    lambda count: st.fixed_dictionaries(
        {key: st.lists(st.integers(0, count - 1), max_size=4) for key in range(count)}
    )
)


def _reached(start: int, required: dict[int, list[int]]) -> set[int]:
    reached = {start}
    while following := {other for key in reached for other in required[key]} - reached:
        reached |= following
    return reached


@given(_graphs)
def test_required_packages_come_first_and_cycles_together(required: dict[int, list[int]]) -> None:
    groups = list(required_first(required))

    assert sorted(key for group in groups for key in group) == sorted(required)
    earlier: set[int] = set()
    for group in groups:
        cycle = {key for key in _reached(group[0], required) if group[0] in _reached(key, required)}
        assert set(group) == cycle
        earlier |= cycle
        assert all(_reached(key, required) <= earlier for key in group)


def test_a_long_chain_takes_no_deep_recursion() -> None:
    count = 10_000
    chain = {key: [key + 1] if key + 1 < count else [] for key in range(count)}

    assert [key for (key,) in required_first(chain)] == list(reversed(range(count)))
