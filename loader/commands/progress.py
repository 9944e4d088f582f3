# SPDX-License-Identifier: Apache-2.0

"""The progress of transfers: bars on a terminal, and a line for each package in a pipe."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TextIO

import rich.console
import rich.progress

from glare_murano.package.errors import escaped

Report = Callable[[str, int, int], None]


@contextlib.contextmanager
def shown(action: str, stream: TextIO) -> Iterator[Report]:
    """Show the progress of transfers.

    :param action: the past participle of what is done, such as ``sent``.
    :returns: a function that is called with the name of a package, the number of bytes so
        far, and the number of all bytes, from any thread.
    """
    if stream.isatty():
        with _bars(stream) as report:
            yield report
    else:
        yield _lines(action, stream)


def _lines(action: str, stream: TextIO) -> Report:
    done: set[str] = set()

    def report(name: str, count: int, total: int) -> None:
        if count >= total and name not in done:
            done.add(name)
            stream.write(f"{action} {escaped(name)}\n")

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
    console = rich.console.Console(file=stream)
    bars = rich.progress.Progress(*columns, console=console)

    def report(name: str, count: int, total: int) -> None:
        with guard:
            if name not in tasks:
                tasks[name] = bars.add_task(escaped(name), total=total)
        bars.update(tasks[name], completed=count)

    # As a context, the bars would leave the cursor hidden if Ctrl-C comes while they begin.
    try:
        bars.start()
        yield report
    finally:
        bars.stop()
