# SPDX-License-Identifier: Apache-2.0

"""What loading has cost so far. It counts; it neither prints nor decides."""

import dataclasses
import threading

_guard = threading.Lock()


@dataclasses.dataclass
class Counters:
    """Sums since the object was made; any thread may add to them.

    :param requests: requests made to catalogues, downloads included.
    :param downloads: archives downloaded.
    :param bytes: bytes of the archives downloaded.
    :param hits: packages that lay in the cache already.
    :param seconds: how long calls took to find, fetch and read packages, waits for
        others included. Calls of several threads or green threads, and the loaders
        whose sums are added, each add their own time: where they work at once, the
        sum is larger than the time that has passed.
    """

    requests: int = 0
    downloads: int = 0
    bytes: int = 0
    hits: int = 0
    seconds: float = 0.0

    def add(self, other: "Counters") -> None:
        """Add another's sums to these."""
        self.count(**vars(other))

    def count(self, **sums: float) -> None:
        """Add to some of the sums, by their names."""
        with _guard:
            for name, value in sums.items():
                setattr(self, name, getattr(self, name) + value)
