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

"""Packages whose classes are written in MuranoPL, one file or more."""

import errno
import os
from collections.abc import Mapping

from loader.formats.base import PackageBase


class MuranoPLPackage(PackageBase):
    """A package of the format ``MuranoPL``."""

    takes_source = True

    @property
    def classes(self) -> list[str]:
        """See ``Package``."""
        return list(self._manifest.get("Classes") or {})

    @property
    def requirements(self) -> Mapping[str, str | None]:
        """See ``Package``; as written, without the implicit ones."""
        return self._manifest.get("Require") or {}

    @property
    def ui(self) -> bytes | None:
        """See ``Package``."""
        return self._source.read(self._manifest.get("UI") or "ui.yaml", "UI")

    def get_class(self, name: str) -> tuple[bytes, str]:
        """See ``Package``.

        :returns: the file that defines the class, and its path, for messages
            alone: it may be one in an archive.
        :raises KeyError: if the package does not define it.
        :raises FileNotFoundError: if the package lacks the file.
        """
        file = self._manifest["Classes"][name]
        content = self._source.read(file, "Classes")
        path = f"{self._source}/Classes/{file}"
        if content is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return content, path
