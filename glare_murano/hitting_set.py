# SPDX-License-Identifier: Apache-2.0

"""Find the fewest versions of a package that together satisfy all its required ranges."""

import functools
import itertools
import operator
from collections.abc import Iterable, Sequence
from typing import TypeVar

from glare_murano.budget import Budget
from glare_murano.package.errors import TooManyVersions

# The largest number of combinations of versions that are tried for a package. Packages with usual
# ranges need very few.
_MAX_STEPS = 100_000

_Version = TypeVar("_Version")


def fewest_newest(
    versions: Iterable[tuple[_Version, int]], budget: Budget, place: object
) -> tuple[_Version, ...]:
    """Return the fewest versions of a package that together satisfy all its required ranges.

    Several versions together satisfy a range if at least one of them is in the range. A range that
    contains no available version is ignored. If several sets of versions are equally small, the set
    with the best versions is returned. Sets are compared by their best version, then by the next
    version, and so on. The result is called a greatest minimum hitting set.

    :param versions: the available versions, the best first. As a rule, the best version is the
        newest. Each version comes with a bit mask of the numbered ranges: bit n is set if the
        version is in range n.
    :param budget: the time limit of the request.
    :param place: the package, for the message if the time is over.
    :returns: the chosen versions, in the order of ``versions``.
    :raises TooManyVersions: if the search needs too many steps.
    :raises Unplannable: if the time of the request is over.
    """
    # Versions that satisfy the same ranges are of one kind, and only the best of them matters.
    kinds: dict[int, _Version] = {}
    for version, satisfied in budget.watch(versions, "planning", lambda _: place):
        if satisfied:
            kinds.setdefault(satisfied, version)
    # A kind is needed if some range is satisfied by this kind only. The search then covers the
    # ranges that the needed kinds do not satisfy. ``once`` has the ranges that at least one kind
    # satisfies, and ``twice`` those that at least two kinds satisfy.
    once, twice = 0, 0
    for kind in kinds:
        once, twice = once | kind, twice | once & kind
    needed = {kind for kind in kinds if kind & once & ~twice}
    wanted = functools.reduce(lambda left, kind: left & ~kind, needed, once)
    others = tuple(kind for kind in kinds if kind & wanted)
    search = _Search(others, budget, place)
    # The search always ends: one version for each range is enough.
    covers = (search.cover(0, wanted, size) for size in range(wanted.bit_count() + 1))
    cover = next(found for found in covers if found is not None)
    needed.update(others[index] for index in cover)
    return tuple(version for kind, version in kinds.items() if kind in needed)


class _Search:
    """A search in a list of sets, for a few sets that together contain all wanted ranges.

    Each set contains the ranges that one version satisfies. A set is a bit mask with a bit for each
    range. The sets at the beginning of the list are preferred.
    """

    def __init__(self, sets: Sequence[int], budget: Budget, place: object) -> None:
        self._sets = sets
        # Index -> the union of the sets from this index on.
        self._rest = list(itertools.accumulate(reversed(sets), operator.or_))[::-1]
        self._failed: set[tuple[int, int, int]] = set()
        self._steps = 0
        self._budget = budget
        self._place = place

    def cover(self, start: int, wanted: int, size: int) -> tuple[int, ...] | None:
        """Find at most ``size`` sets that together have all wanted bits.

        :param start: the index of the first set that may be used.
        :param wanted: the wanted bits.
        :param size: the largest number of sets.
        :returns: the indexes of the sets, in ascending order; None if there are no such sets. If
            several choices of sets are possible, the first in lexicographic order is returned.
        :raises TooManyVersions: if the search needs too many steps.
        :raises Unplannable: if the time of the request is over.
        """
        if not wanted:
            return ()
        if not size or (start, wanted, size) in self._failed:
            return None
        for index in range(start, len(self._sets)):
            if wanted & ~self._rest[index]:
                break
            self._budget.check("planning", self._place)
            self._steps += 1
            if self._steps > _MAX_STEPS:
                raise TooManyVersions(f"{_MAX_STEPS} combinations of versions were tried in vain")
            if self._sets[index] & wanted:
                rest = self.cover(index + 1, wanted & ~self._sets[index], size - 1)
                if rest is not None:
                    return (index, *rest)
        self._failed.add((start, wanted, size))
        return None
