# SPDX-License-Identifier: Apache-2.0

"""Which nodes are reached, after each of many changes of a graph."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from glare_murano import reachability
from glare_murano.budget import Budget
from tests import effort

_COUNT = 6
_NUMBERS = st.integers(0, _COUNT - 1)
_TARGETS = st.frozensets(_NUMBERS, max_size=3)


class _Numbered(reachability.Node):
    """A node whose targets are given by their numbers."""

    def __init__(self, nodes: list["_Numbered"]) -> None:
        super().__init__()
        self._nodes = nodes
        self.numbers: frozenset[int] = frozenset()

    def find_targets(self) -> list["_Numbered"]:
        return [self._nodes[number] for number in sorted(self.numbers)]


def _reached_by_force(nodes: list[_Numbered]) -> set[int]:
    found, waiting = {0}, [0]
    while waiting:
        new = nodes[waiting.pop()].numbers - found
        found |= new
        waiting += new
    return found


@settings(max_examples=effort.GRAPHS)
@given(
    st.lists(_TARGETS, min_size=_COUNT, max_size=_COUNT), st.lists(st.tuples(_NUMBERS, _TARGETS))
)
# Node 2 leads to node 1 only until nothing leads to node 2.
@example(
    [frozenset()] * _COUNT,
    [
        (number, frozenset(targets))
        for number, targets in ((0, {2}), (2, {1}), (0, ()), (2, ()), (0, {1}), (0, {2}))
    ],
)
def test_the_reached_nodes_are_those_of_a_search_from_the_root(
    targets: list[frozenset[int]], changes: list[tuple[int, frozenset[int]]]
) -> None:
    nodes: list[_Numbered] = []
    nodes += (_Numbered(nodes) for _ in range(_COUNT))
    for node, numbers in zip(nodes, targets, strict=True):
        node.numbers = numbers
    budget = Budget(60, "wait")

    found = reachability.start(nodes[0], budget)

    before = _reached_by_force(nodes)
    # The root is not counted, even if an edge leads to it.
    assert {nodes.index(node) for node in found} == before - {0}
    for number, numbers in changes:
        nodes[number].numbers = numbers
        found = reachability.update([nodes[number]], budget)
        after = _reached_by_force(nodes)
        assert {nodes.index(node) for node in found} == before ^ after
        assert {n for n, node in enumerate(nodes) if node.is_reached} == after
        # So the parents of a node never form a cycle.
        assert all(each._parent._level < each._level for each in nodes if each._parent)
        before = after
