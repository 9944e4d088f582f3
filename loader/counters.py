# SPDX-License-Identifier: Apache-2.0

"""Count what the loading of packages costs: requests, downloads and time."""

import dataclasses
import threading

_guard = threading.Lock()


@dataclasses.dataclass
class Counters:
    """Counts the work that an object, such as a cache, has done; any thread may add to the counts.

    >>> counters = Counters(requests=1)
    >>> counters.count(requests=1, seconds=0.5)
    >>> counters.add(Counters(downloads=2))
    >>> counters
    Counters(requests=2, downloads=2, bytes=0, hits=0, seconds=0.5)

    :param requests: the number of requests to catalogues, including downloads.
    :param downloads: the number of downloaded archives.
    :param bytes: the number of bytes in the downloaded archives.
    :param hits: the number of packages that were found in the cache.
    :param seconds: the time spent to find, fetch and read packages, including waits. Threads, green
        threads and loaders each add their own time, so the sum may be greater than the elapsed
        time.
    """

    requests: int = 0
    downloads: int = 0
    bytes: int = 0
    hits: int = 0
    seconds: float = 0.0

    def add(self, other: "Counters") -> None:
        """Add the values of other counters to these counters."""
        self.count(**vars(other))

    def count(self, **sums: float) -> None:
        """Add values to the counters.

        :param sums: the value to add to each counter, by the counter's name.
        """
        with _guard:
            for name, value in sums.items():
                setattr(self, name, getattr(self, name) + value)
