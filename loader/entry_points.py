# SPDX-License-Identifier: Apache-2.0

"""The Python distributions behind entry points, which stevedore's cache leaves out."""

import collections
import functools
import importlib.metadata
from collections.abc import Mapping


@functools.cache
def distributions(group: str) -> Mapping[str, list[importlib.metadata.Distribution]]:
    """Return the distributions that register each entry point of a group, by its name.

    The metadata of everything installed is read, once in a process.
    """
    found: dict[str, dict[str, importlib.metadata.Distribution]] = collections.defaultdict(dict)
    for entry_point in importlib.metadata.entry_points(group=group):
        if entry_point.dist is not None:
            found[entry_point.name][entry_point.dist.name] = entry_point.dist
    return {name: list(by_name.values()) for name, by_name in found.items()}
