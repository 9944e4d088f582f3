# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Stores for blobs, as Glare is configured for them."""

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable
from collections.abc import Iterator


@dataclasses.dataclass(frozen=True)
class Store:
    """A store that Glare can use.

    :param options: those of the group ``[glance_store]``.
    :param contents: tells the URLs of what lies in it.
    """

    options: str
    contents: Callable[[], set[str]]


@contextlib.contextmanager
def files(folder: pathlib.Path) -> Iterator[Store]:
    """A folder of files."""
    blobs = folder / "blobs"
    blobs.mkdir(exist_ok=True)
    yield Store(
        f"default_store = file\nstores = file\nfilesystem_store_datadir = {blobs}",
        lambda: {f"file://{path}" for path in blobs.iterdir()},
    )
