# SPDX-License-Identifier: Apache-2.0

"""Find the nodes that can be reached from a root, in a graph whose edges change.

An update visits only the part of the graph that is affected. It would not be enough to count
the edges to a node, since the nodes of an unreachable cycle have edges to each other.
"""

import collections
import heapq
import itertools
import math
from collections.abc import Iterable


class Node:
    """A node of a graph. Its targets are found when the node is reached.

    A reached node has a parent, through which the root leads to it, and a level: the number of
    edges from the root on this way.
    """

    def __init__(self) -> None:
        # The nodes to which it leads; empty if it is not reached.
        self._targets: tuple[Node, ...] = ()
        # The reached nodes that lead here. The parent is one of them, with a lower level.
        self._sources: dict[Node, None] = {}
        self._parent: Node | None = None
        self._level = math.inf

    @property
    def is_reached(self) -> bool:
        """Whether the node can be reached from the root."""
        return self._level < math.inf

    def find_targets(self) -> Iterable["Node"]:
        """Return the nodes to which this node leads at present."""
        raise NotImplementedError


def start(root: Node) -> set[Node]:
    """Reach a root and all nodes to which it leads, and return these nodes."""
    root._level = 0
    return update([root])


def update(nodes: Iterable[Node]) -> set[Node]:
    """Update the graph after the targets of some nodes may have changed.

    :returns: the nodes that are newly reached, and the nodes that are no longer reachable.
    """
    reached: set[Node] = set()
    orphans = []
    for node in nodes:
        if node.is_reached:
            before, node._targets = node._targets, tuple(node.find_targets())
            reached |= _reach_targets(node)
            for target in set(before).difference(node._targets):
                del target._sources[node]
                if target._parent is node:
                    orphans.append(target)
    # The orphans, which have lost their parents, come last: by now, they may have other sources.
    return reached ^ _reattach(orphans)


def _reach_targets(node: Node) -> set[Node]:
    reached: set[Node] = set()
    queue = collections.deque([node])
    while queue:
        node = queue.popleft()
        for target in node._targets:
            target._sources[node] = None
            if not target.is_reached:
                _set_parent(target, node)
                target._targets = tuple(target.find_targets())
                reached.add(target)
                queue.append(target)
    return reached


def _reattach(orphans: Iterable[Node]) -> set[Node]:
    """Find new parents for nodes without a parent; return the nodes that cannot be reached."""
    detached = _detach(orphans)
    for node in detached:
        parent = next((source for source in node._sources if source.is_reached), None)
        if parent is not None and not node.is_reached:
            _set_parent(node, parent)
            _reach_targets(node)
    unreachable = {node for node in detached if not node.is_reached}
    for node in unreachable:
        for target in node._targets:
            del target._sources[node]
        node._targets = ()
    return unreachable


def _detach(orphans: Iterable[Node]) -> list[Node]:
    """Detach nodes and their descendants, except those with another source on a lower level.

    The nodes are visited level by level, since each decision needs all lower levels.
    """
    numbers = itertools.count()
    queue = [(node._level, next(numbers), node) for node in orphans]
    heapq.heapify(queue)
    detached = []
    while queue:
        level, _, node = heapq.heappop(queue)
        # The latest source has often replaced the parent.
        sources = (source for source in reversed(node._sources) if source._level < level)
        node._parent = next(sources, None)
        if node._parent is None:
            node._level = math.inf
            detached.append(node)
            for target in node._targets:
                if target._parent is node:
                    heapq.heappush(queue, (target._level, next(numbers), target))
    return detached


def _set_parent(node: Node, parent: Node) -> None:
    node._level = parent._level + 1
    node._parent = parent
