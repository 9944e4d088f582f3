# SPDX-License-Identifier: Apache-2.0

"""The order in which packages are published: required packages first."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeVar

_Key = TypeVar("_Key")


def required_first(required: Mapping[_Key, Collection[_Key]]) -> Iterator[list[_Key]]:
    """Yield groups of packages, each group after the groups that it requires.

    Packages that require each other, in a dependency cycle, are one group.

    >>> list(required_first({"wiki": ["db"], "db": ["driver"], "driver": ["db"]}))
    [['driver', 'db'], ['wiki']]

    :param required: package -> the packages that it requires, which are keys as well.
    """
    # The algorithm of Kosaraju and Sharir, which needs time in proportion to the requirements.
    requirers: dict[_Key, list[_Key]] = {key: [] for key in required}
    for key, others in required.items():
        for other in others:
            requirers[other].append(key)
    grouped: set[_Key] = set()
    for key in reversed(list(_walk(reversed(requirers), requirers, set()))):
        if group := list(_walk([key], required, grouped)):
            yield group


def _walk(
    starts: Iterable[_Key], following: Mapping[_Key, Iterable[_Key]], seen: set[_Key]
) -> Iterator[_Key]:
    """Yield all keys that are reached, each after the keys that follow, but for cycles."""
    for start in starts:
        path = [] if start in seen else [(start, iter(following[start]))]
        seen.add(start)
        while path:
            key, others = path[-1]
            new = next((other for other in others if other not in seen), None)
            if new is None:
                path.pop()
                yield key
            else:
                seen.add(new)
                path.append((new, iter(following[new])))
