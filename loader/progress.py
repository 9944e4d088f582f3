# SPDX-License-Identifier: Apache-2.0

"""The progress of transfers; functions report it, and ``commands.progress_bars`` shows it."""

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Progress:
    """The progress of a transfer.

    >>> progress = Progress("org.db 1.2.0", done=1024, total=4096)
    >>> print(f"{progress.name}: {progress.done / progress.total:.0%}")
    org.db 1.2.0: 25%

    :param name: the transferred package, as ``FQN version``.
    :param done: the number of transferred bytes. The last byte of an upload is counted only when
        the service has accepted the package.
    :param total: the size of the archive in bytes; None if unknown.
    """

    name: str
    done: int
    total: int | None


# A function that is called after each piece of a transfer, from any thread.
Report = Callable[[Progress], object]


def ignore(progress: Progress) -> None:
    """Ignore a report of progress; this is the default of functions that report it."""
