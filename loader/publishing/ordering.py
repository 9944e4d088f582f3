# SPDX-License-Identifier: Apache-2.0

"""Sort packages into the order in which they are published: required packages first."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeVar

_Key = TypeVar("_Key")


def required_first(required: Mapping[_Key, Collection[_Key]]) -> Iterator[list[_Key]]:
    """Yield groups of packages; each group comes after the groups that it requires.

    Packages that require each other, in a dependency cycle, form one group.

    >>> list(required_first({"wiki": ["db"], "db": ["driver"], "driver": ["db"]}))
    [['driver', 'db'], ['wiki']]

    :param required: a mapping of packages to the packages that they require; each of the required
        packages is also a key.
    """
    # The algorithm of Kosaraju and Sharir: its time grows linearly with the requirements.
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
    """Walk through a graph depth-first; yield each key after all keys that can be reached from it.

    :param starts: the keys from which the walk starts, in this order.
    :param following: a mapping of keys to the keys to which their edges lead.
    :param seen: the keys that are skipped; every visited key is added.
    """
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
