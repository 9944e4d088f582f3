# SPDX-License-Identifier: Apache-2.0

"""Which Python distributions the entry points of a group come from.

stevedore finds and imports plug-ins, but its cache forgets whose they are.
"""

import collections
import functools
import importlib.metadata
from collections.abc import Mapping


@functools.cache
def owners(group: str) -> Mapping[str, list[importlib.metadata.Distribution]]:
    """Name of an entry point -> the distributions that register it.

    All that is installed is read for it, once in a process.
    """
    found: dict[str, dict[str, importlib.metadata.Distribution]] = collections.defaultdict(dict)
    for entry_point in importlib.metadata.entry_points(group=group):
        if entry_point.dist is not None:
            found[entry_point.name][entry_point.dist.name] = entry_point.dist
    return {name: list(distributions.values()) for name, distributions in found.items()}
