# SPDX-License-Identifier: Apache-2.0

"""Find entry points by their names and distributions."""

import collections
import functools
import importlib.metadata
from collections.abc import Mapping


@functools.cache
def installed(group: str) -> Mapping[str, Mapping[str, importlib.metadata.EntryPoint]]:
    """Return the entry points of a group, by name and by distribution.

    Each process reads the metadata of the installed distributions only once.

    :returns: name of entry points -> name of a distribution -> the entry point that the
        distribution registers under this name.
    """
    found: dict[str, dict[str, importlib.metadata.EntryPoint]] = collections.defaultdict(dict)
    for entry_point in importlib.metadata.entry_points(group=group):
        if entry_point.dist is not None:
            found[entry_point.name][entry_point.dist.name] = entry_point
    return dict(found)
