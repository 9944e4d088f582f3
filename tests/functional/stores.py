# SPDX-License-Identifier: Apache-2.0

"""Stores for blobs, as Glare is configured for them."""

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Iterator


@dataclasses.dataclass(frozen=True)
class Store:
    """A store that Glare can use.

    :param options: those of the group ``[glance_store]``.
    :param contents: returns the URLs of all stored blobs.
    :param put: stores an object under a name.
    """

    options: str
    contents: Callable[[], set[str]]
    put: Callable[[str], object]


@contextlib.contextmanager
def files(folder: pathlib.Path) -> Iterator[Store]:
    """A directory of files."""
    blobs = folder / "blobs"
    blobs.mkdir(exist_ok=True)
    yield Store(
        f"default_store = file\nstores = file\nfilesystem_store_datadir = {blobs}",
        lambda: {f"file://{path}" for path in blobs.iterdir()},
        lambda name: (blobs / name).touch(),
    )
