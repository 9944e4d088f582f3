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
