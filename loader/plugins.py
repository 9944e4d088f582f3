# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
