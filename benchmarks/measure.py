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

"""How things are measured: two in turn, so that a noisy machine is fair to both.

What counts is time on a processor, of this process or of the server that does
the work, so that other processes do not count.
"""

import dataclasses
import gc
import statistics
import time
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Figure:
    """One figure of the table.

    :param goal: the greatest value that is good enough.
    """

    name: str
    value: float
    unit: str
    goal: float

    @property
    def holds(self) -> bool:
        """Whether the goal is met."""
        return self.value <= self.goal


def ratio(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    rounds: int = 15,
    before: Callable[[], object] = lambda: None,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """How much longer one thing takes than another.

    Both are run in turn; the median of the rounds' ratios is given.

    :param before: what is done before each run, and not counted.
    :param clock: the processor time that counts.
    """
    seconds(ours, before, clock), seconds(theirs, before, clock)
    return statistics.median(
        seconds(ours, before, clock) / seconds(theirs, before, clock) for _ in range(rounds)
    )


def seconds(
    action: Callable[[], object], before: Callable[[], object], clock: Callable[[], float]
) -> float:
    """How much processor time an action takes, without the garbage collector in between."""
    before()
    gc.collect()
    gc.disable()
    try:
        start = clock()
        action()
        return clock() - start
    finally:
        gc.enable()
