# SPDX-License-Identifier: Apache-2.0

"""The package type ``MuranoPL``, whose packages contain class files in MuranoPL."""

import errno
import os
from collections.abc import Mapping

from loader.formats.base import PackageBase
from loader.formats.source import path_within


class MuranoPLPackage(PackageBase):
    """A package of the format ``MuranoPL``; its classes are read without unpacking an archive."""

    takes_source = True

    @property
    def classes(self) -> list[str]:
        return list(self._manifest.get("Classes") or {})

    @property
    def requirements(self) -> Mapping[str, str | None]:
        return self._manifest.get("Require") or {}

    @property
    def ui(self) -> bytes | None:
        return self._source.read(self._manifest.get("UI") or "ui.yaml", "UI")

    def get_class(self, name: str) -> tuple[bytes, str]:
        """Return the content of the file that defines a class, and the file's path in the package.

        :raises FileNotFoundError: if the package lacks the file.
        """
        path = path_within("Classes", self._manifest["Classes"][name])
        content = self._source.read(path)
        if content is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return content, path
