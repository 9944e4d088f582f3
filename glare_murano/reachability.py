# SPDX-License-Identifier: Apache-2.0

"""Find the nodes that can be reached from a root, in a graph whose edges change.

An update visits only the affected part of the graph. It would not be enough to count the edges that
lead to a node: if a whole cycle cannot be reached from the root, an edge still leads to each node
of the cycle.
"""

import collections
import heapq
import itertools
import math
from collections.abc import Iterable

from glare_murano.budget import Budget

_STEP = "planning"


class Node:
    """A node of a graph. An edge leads from the node to each of its targets, which are other nodes.

    The targets of a node are found when the node is reached from the root. Each reached node,
    except the root, has a parent: a reached node that leads to it. The parents form a path from the
    root to the node. Each reached node has a level. The level of the root is 0, and the level of
    any other node is higher than the level of its parent.
    """

    def __init__(self) -> None:
        # The targets; empty if this node is not reached.
        self._targets: tuple[Node, ...] = ()
        # The reached nodes that lead to this node. The parent is one of them, with a lower level.
        self._sources: dict[Node, None] = {}
        self._parent: Node | None = None
        self._level = math.inf

    @property
    def is_reached(self) -> bool:
        """Whether the node can be reached from the root."""
        return self._level < math.inf

    def find_targets(self) -> Iterable["Node"]:
        """Return the nodes to which this node leads at present; subclasses implement this."""
        raise NotImplementedError


def start(root: Node, budget: Budget) -> set[Node]:
    """Find all nodes that can be reached from a root, and set their levels.

    :returns: the reached nodes, without the root.
    :raises Unplannable: if the time of the request is over. Then the graph cannot be used any more.
    """
    root._level = 0
    return update([root], budget)


def update(nodes: Iterable[Node], budget: Budget) -> set[Node]:
    """Find out again which nodes can be reached, after the targets of some nodes may have changed.

    :param nodes: the nodes whose targets may have changed.
    :returns: the nodes that have become reachable, and the nodes that have become unreachable, in
        one set.
    :raises Unplannable: if the time of the request is over. Then the graph cannot be used any more.
    """
    reached: set[Node] = set()
    orphans = []
    for node in nodes:
        if node.is_reached:
            before, node._targets = node._targets, tuple(node.find_targets())
            reached |= _reach_targets(node, budget)
            for target in set(before).difference(node._targets):
                del target._sources[node]
                if target._parent is node:
                    orphans.append(target)
    # Orphans are nodes that have lost their parents. They come last, since by now other reached
    # nodes may lead to them.
    return reached ^ _reattach(orphans, budget)


def _reach_targets(node: Node, budget: Budget) -> set[Node]:
    reached: set[Node] = set()
    queue = collections.deque([node])
    while queue:
        node = queue.popleft()
        for target in node._targets:
            target._sources[node] = None
            if not target.is_reached:
                budget.check(_STEP, target)
                _set_parent(target, node)
                target._targets = tuple(target.find_targets())
                reached.add(target)
                queue.append(target)
    return reached


def _reattach(orphans: Iterable[Node], budget: Budget) -> set[Node]:
    """Find a new parent for each node that has lost its parent, if the node can still be reached.

    ``_detach`` first looks for a parent on a lower level. After that, any reached node that leads
    to the node can be its parent.

    :param orphans: the nodes that have lost their parents.
    :returns: the nodes that can no longer be reached from the root.
    """
    detached = _detach(orphans, budget)
    for node in detached:
        parent = next((source for source in node._sources if source.is_reached), None)
        if parent is not None and not node.is_reached:
            _set_parent(node, parent)
            _reach_targets(node, budget)
    unreachable = {node for node in detached if not node.is_reached}
    for node in unreachable:
        budget.check(_STEP, node)
        for target in node._targets:
            del target._sources[node]
        node._targets = ()
    return unreachable


def _detach(orphans: Iterable[Node], budget: Budget) -> list[Node]:
    """Find new parents on lower levels for nodes that have lost their parents.

    A new parent is on a lower level than its node, so the level of the node does not change. A node
    without such a parent is detached: it has no parent and no level. The children of a detached
    node also lose their parent, and are treated in the same way. Nodes on low levels are treated
    first, since nodes on higher levels depend on them.

    :param orphans: the nodes that have lost their parents.
    :returns: the detached nodes.
    """
    numbers = itertools.count()
    queue = [(node._level, next(numbers), node) for node in orphans]
    heapq.heapify(queue)
    detached = []
    while queue:
        level, _, node = heapq.heappop(queue)
        budget.check(_STEP, node)
        # Often the latest source is the one that replaces the lost parent.
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
