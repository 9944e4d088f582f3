# SPDX-License-Identifier: Apache-2.0

"""How things are measured: two in turn, so that a noisy machine is fair to both.

What counts is time on a processor, of this process or of the server that does
the work, so that other processes do not count. Where what is measured waits for
others, and is good because it waits less, it is the time on the clock: then the
machine's other work is in both, and only the ratio is told.
"""

import dataclasses
import functools
import gc
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable

# The time on the clock.
wall = time.perf_counter


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
    :param clock: the time that counts.
    """
    seconds(ours, before, clock), seconds(theirs, before, clock)
    # What is there now is not to be walked through before each run, which would
    # leave nothing of it in the processor's caches.
    gc.collect()
    gc.freeze()
    try:
        return statistics.median(
            seconds(ours, before, clock) / seconds(theirs, before, clock) for _ in range(rounds)
        )
    finally:
        gc.unfreeze()


def seconds(
    action: Callable[[], object], before: Callable[[], object], clock: Callable[[], float]
) -> float:
    """How much time an action takes, without the garbage collector in between."""
    before()
    gc.collect()
    gc.disable()
    try:
        start = clock()
        action()
        return clock() - start
    finally:
        gc.enable()


def scratch() -> pathlib.Path:
    """A new folder, which is removed when all is measured.

    For each new file, ext4 looks through all that were removed in the last
    minutes: so what one has left is not removed before the next has run.
    """
    return pathlib.Path(tempfile.mkdtemp(dir=_scratch().name))


@functools.cache
def _scratch() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory()


def memory_above_idle(action: Callable[[], object]) -> float:
    """How much more memory this process takes at most while it does something, in MB."""
    idle = _memory("VmRSS")
    # From now on the kernel remembers the most that is used (Linux, proc(5)).
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    action()
    return _memory("VmHWM") - idle


def _memory(field: str) -> float:
    """A figure of this process's memory, in MB."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise LookupError(field)
