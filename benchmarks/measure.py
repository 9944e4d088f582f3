# SPDX-License-Identifier: Apache-2.0

"""Measure actions in turn, so that a noisy machine is fair to all.

Most figures count processor time, of this process or of the server under test:
other processes do not count. Where waiting for services and the disk is the
point, the figure counts wall-clock time. Then the machine's other work is in
both times, and only their ratio is of use.
"""

import dataclasses
import functools
import gc
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable

wall = time.perf_counter


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure of the table.

    :param goal: the greatest acceptable value.
    """

    name: str
    value: float
    unit: str
    goal: float

    @property
    def holds(self) -> bool:
        """True if the figure meets its goal."""
        return self.value <= self.goal


def ratio(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    rounds: int = 15,
    before: Callable[[], object] = lambda: None,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Run two actions in turn, and return the median of the rounds' ratios of time.

    :param before: runs before each action, and does not count.
    :param clock: returns the time in seconds.
    """
    return statistics.median(a / b for a, b in _pairs(ours, theirs, rounds, before, clock))


def least_ratio(ours: Callable[[], object], theirs: Callable[[], object]) -> float:
    """Run two actions in turn, and return the ratio of their shortest times in 100 rounds.

    Other processes take less of the processor's caches from the shortest runs.
    """
    times = _pairs(ours, theirs, 100, lambda: None, time.process_time)
    our_times, their_times = zip(*times, strict=True)
    return float(min(our_times) / min(their_times))


def _pairs(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    rounds: int,
    before: Callable[[], object],
    clock: Callable[[], float],
) -> list[tuple[float, float]]:
    """Return the times of both actions in each round, after a round of warming up."""
    seconds(ours, before, clock), seconds(theirs, before, clock)
    # Otherwise the collection before each run walks through all present objects,
    # and leaves nothing of the action's data in the processor's caches.
    gc.collect()
    gc.freeze()
    try:
        return [
            (seconds(ours, before, clock), seconds(theirs, before, clock)) for _ in range(rounds)
        ]
    finally:
        gc.unfreeze()


def seconds(
    action: Callable[[], object],
    before: Callable[[], object] = lambda: None,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Return an action's time in seconds, without garbage collection in between."""
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
    """Make a directory for files until the end of all benchmarks.

    For each new file, ext4 looks through all files removed in the last minutes. So no
    benchmark removes anything before the end.
    """
    return pathlib.Path(tempfile.mkdtemp(dir=_scratch().name))


@functools.cache
def _scratch() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory()


def memory_above_idle(action: Callable[[], object]) -> float:
    """Return the memory above idle during an action, at most, in MB."""
    idle = _memory("VmRSS")
    # Linux resets the peak (VmHWM) to the present size, see proc(5).
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    action()
    return _memory("VmHWM") - idle


def _memory(field: str) -> float:
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise LookupError(field)
