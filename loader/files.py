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

"""Writing a file as a whole or not at all, also where the power is cut."""

import os
import pathlib
import uuid


def replace(path: pathlib.Path, data: bytes) -> None:
    """Put a new file in the place of what is there.

    :raises OSError: if that fails; what was there is there still.
    """
    new = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with new.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
