# SPDX-License-Identifier: Apache-2.0

"""Find entry points by their names and distributions."""

import collections
import functools
import importlib.metadata
from collections.abc import Mapping


@functools.cache
def installed(group: str) -> Mapping[str, Mapping[str, importlib.metadata.EntryPoint]]:
    """Return the entry points of a group.

    The result is a mapping of names to mappings. The inner mapping has the entry points with one
    name, by the names of the distributions that register them.

    Each process reads the metadata of the installed distributions only once.
    """
    found: dict[str, dict[str, importlib.metadata.EntryPoint]] = collections.defaultdict(dict)
    for entry_point in importlib.metadata.entry_points(group=group):
        if entry_point.dist is not None:
            found[entry_point.name][entry_point.dist.name] = entry_point
    return dict(found)
