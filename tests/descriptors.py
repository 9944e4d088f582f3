# SPDX-License-Identifier: Apache-2.0

"""The files that this process has open, as the kernel tells them."""

import contextlib
import pathlib
from collections.abc import Iterator

_DESCRIPTORS = pathlib.Path("/proc/self/fd")


def open_files(*folders: pathlib.Path) -> list[pathlib.Path]:
    """Those below some folders: others open and close while a test runs."""
    return [path for path in _targets() if any(map(path.is_relative_to, folders))]


def highest_descriptor() -> int:
    """The largest number of a file, socket or pipe that is open."""
    return max(int(descriptor.name) for descriptor in _DESCRIPTORS.iterdir())


def _targets() -> Iterator[pathlib.Path]:
    for descriptor in _DESCRIPTORS.iterdir():
        # The one that lists them is closed by now.
        with contextlib.suppress(FileNotFoundError):
            yield descriptor.readlink()
