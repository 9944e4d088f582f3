# SPDX-License-Identifier: Apache-2.0

"""Show the progress of transfers: bars on a terminal, or else a line for each finished package."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TextIO

import rich.console
import rich.progress

from glare_murano.package.errors import escaped
from loader.progress import Progress, Report


@contextlib.contextmanager
def shown(action: str, stream: TextIO) -> Iterator[Report]:
    """Show the progress of transfers while the ``with`` block runs.

    :param action: what was done with a finished package, such as ``uploaded``.
    :returns: a function that any thread calls with the progress of a transfer.
    """
    if stream.isatty():
        with _bars(stream) as report:
            yield report
    else:
        yield _lines(action, stream)


@contextlib.contextmanager
def counted(things: str, stream: TextIO) -> Iterator[Callable[[str, int, int], None]]:
    """Show the progress of several steps on a terminal: how many items each step has processed.

    :param things: the noun for the items, such as ``packages``.
    :returns: a function that the caller calls with a verb for the step, the number of processed
        items, and the number of all items.
    """
    columns = (
        rich.progress.TextColumn("{task.description}", markup=False),
        rich.progress.BarColumn(),
        rich.progress.MofNCompleteColumn(),
    )
    tasks: dict[str, rich.progress.TaskID] = {}

    def progress(step: str, done: int, total: int) -> None:
        if step not in tasks:
            tasks[step] = bars.add_task(f"{step} {things}", total=total)
        bars.update(tasks[step], completed=done)

    with _started(stream, *columns) as bars:
        yield progress


def _lines(action: str, stream: TextIO) -> Report:
    done: set[str] = set()

    def report(progress: Progress) -> None:
        if progress.done >= (progress.total or 0) and progress.name not in done:
            done.add(progress.name)
            stream.write(f"{action} {escaped(progress.name)}\n")

    return report


@contextlib.contextmanager
def _bars(stream: TextIO) -> Iterator[Report]:
    columns = (
        rich.progress.TextColumn("{task.description}", markup=False),
        rich.progress.BarColumn(),
        rich.progress.DownloadColumn(),
        rich.progress.TransferSpeedColumn(),
    )
    tasks: dict[str, rich.progress.TaskID] = {}
    guard = threading.Lock()

    def report(progress: Progress) -> None:
        with guard:
            if progress.name not in tasks:
                tasks[progress.name] = bars.add_task(escaped(progress.name), total=progress.total)
        bars.update(tasks[progress.name], completed=progress.done)

    with _started(stream, *columns) as bars:
        yield report


@contextlib.contextmanager
def _started(
    stream: TextIO, *columns: rich.progress.ProgressColumn
) -> Iterator[rich.progress.Progress]:
    """Show bars while the ``with`` block runs, if the stream is a terminal."""
    console = rich.console.Console(file=stream)
    bars = rich.progress.Progress(*columns, console=console, disable=not stream.isatty())
    # ``with bars`` would leave the cursor hidden if Ctrl-C comes while the bars start.
    try:
        bars.start()
        yield bars
    finally:
        bars.stop()
