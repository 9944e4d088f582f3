# SPDX-License-Identifier: Apache-2.0

"""Count what it costs to load packages."""

import dataclasses
import threading

_guard = threading.Lock()


@dataclasses.dataclass
class Counters:
    """Sums over the lifetime of an object; any thread may add to them.

    >>> counters = Counters(requests=1)
    >>> counters.count(requests=1, seconds=0.5)
    >>> counters.add(Counters(downloads=2))
    >>> counters
    Counters(requests=2, downloads=2, bytes=0, hits=0, seconds=0.5)

    :param requests: requests to catalogues, including downloads.
    :param downloads: downloaded archives.
    :param bytes: bytes of the downloaded archives.
    :param hits: packages found in the cache.
    :param seconds: the time for finding, fetching and reading packages, including
        waits. Threads, green threads and loaders each add their own time, so the sum may
        be greater than the elapsed time.
    """

    requests: int = 0
    downloads: int = 0
    bytes: int = 0
    hits: int = 0
    seconds: float = 0.0

    def add(self, other: "Counters") -> None:
        """Add the sums of other counters."""
        self.count(**vars(other))

    def count(self, **sums: float) -> None:
        """Add values to sums.

        :param sums: name of a sum -> the value to add.
        """
        with _guard:
            for name, value in sums.items():
                setattr(self, name, getattr(self, name) + value)
