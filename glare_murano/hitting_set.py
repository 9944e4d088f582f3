# SPDX-License-Identifier: Apache-2.0

"""Find the fewest versions of a package that together satisfy all its required ranges."""

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Protocol

from glare_murano.package.errors import TooManyVersions
from glare_murano.package.versions import Version

# The greatest number of version combinations to try for a package. Usual ranges need very few.
_MAX_STEPS = 100_000


class Range(Protocol):
    """A set of versions."""

    def match(self, version: Version) -> bool:
        """Check whether the version is in the range."""


def fewest_newest(versions: Sequence[Version], specs: Sequence[Range]) -> tuple[Version, ...]:
    """Return the fewest versions that together satisfy all satisfiable ranges.

    If there are several such sets, the set with the newest versions is returned: sets are
    compared by their newest version, then by the next one. This is the greatest minimum hitting
    set.

    :param versions: the available versions, the best first. As a rule, the best is the newest.
    :returns: versions in the same order.
    :raises TooManyVersions: if the search takes too long.
    """
    if len(specs) == 1:
        return tuple(itertools.islice(filter(specs[0].match, versions), 1))
    # Versions that satisfy the same ranges are of one kind, and only the best of them matters.
    kinds: dict[int, Version] = {}
    for version in versions:
        satisfied = sum(1 << bit for bit, spec in enumerate(specs) if spec.match(version))
        if satisfied:
            kinds.setdefault(satisfied, version)
    # A kind is needed if no other kind satisfies some range. The search covers the other ranges.
    once, twice = 0, 0
    for kind in kinds:
        once, twice = once | kind, twice | once & kind
    needed = {kind for kind in kinds if kind & once & ~twice}
    wanted = functools.reduce(lambda left, kind: left & ~kind, needed, once)
    others = tuple(kind for kind in kinds if kind & wanted)
    search = _Search(others)
    # The search always ends: one version for each range is enough.
    covers = (search.cover(0, wanted, size) for size in range(len(specs) + 1))
    cover = next(found for found in covers if found is not None)
    needed.update(others[index] for index in cover)
    return tuple(version for kind, version in kinds.items() if kind in needed)


class _Search:
    """A search for sets of ranges that together contain all wanted ranges.

    A set is a number with one bit for each range. The search prefers the first sets.
    """

    def __init__(self, sets: Sequence[int]) -> None:
        self._sets = sets
        # Index -> the union of the sets from this index on.
        self._rest = list(itertools.accumulate(reversed(sets), operator.or_))[::-1]
        self._failed: set[tuple[int, int, int]] = set()
        self._steps = 0

    def cover(self, start: int, wanted: int, size: int) -> tuple[int, ...] | None:
        """Return the indexes of the first sets, from ``start`` on, that have all wanted bits.

        :param size: the largest number of sets.
        :returns: None if there are no such sets.
        """
        if not wanted:
            return ()
        if not size or (start, wanted, size) in self._failed:
            return None
        for index in range(start, len(self._sets)):
            if wanted & ~self._rest[index]:
                break
            self._steps += 1
            if self._steps > _MAX_STEPS:
                raise TooManyVersions(f"{_MAX_STEPS} combinations of versions were tried in vain")
            if self._sets[index] & wanted:
                rest = self.cover(index + 1, wanted & ~self._sets[index], size - 1)
                if rest is not None:
                    return (index, *rest)
        self._failed.add((start, wanted, size))
        return None
