# SPDX-License-Identifier: Apache-2.0

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
