# SPDX-License-Identifier: Apache-2.0

"""Read an uploaded package in a child process, as Glare and Glance do.

Glare or Glance reads the archive again, when it gets it. But murano-api needs the name and the
version before, to create the package there.
"""

import dataclasses
import functools
import os
import pathlib
import sys
from collections.abc import Mapping
from typing import IO, Any

from oslo_config import cfg

from glare_murano import archive_limits, archive_reading
from glare_murano.package import sandbox
from glare_murano.package.archive_rules import limited
from glare_murano.package.ui_form import FormCheck
from glare_murano.resolver import PackageVersion
from loader import config, errors, fs
from loader.authoring.local_packages import LocalPackage
from loader.catalogs import options

_CHUNK = 64 * 1024


@dataclasses.dataclass(frozen=True)
class UploadedPackage(LocalPackage):
    """A valid package that a project has uploaded.

    :param options: the values for ``archive_reading``.
    :param project_id: the project.
    """

    options: Mapping[str, Any]
    project_id: str | None

    @classmethod
    def read(
        cls,
        upload: IO[bytes],
        file: pathlib.Path,
        options: Mapping[str, Any],
        project_id: str | None,
    ) -> "UploadedPackage":
        """Write an uploaded archive into a new file, and read the package in it.

        :param options: the values of the options in ``[package_loader]``.
        :raises ServiceBusy: if too many archives are read at the same time.
        :raises InvalidPackage: if the package breaks rules; the message has all problems.
        """
        # Glare or Glance decides whether it accepts a form that the dashboard cannot show.
        options = {**options, "check_forms": FormCheck.WARN.value}
        pieces = iter(lambda: upload.read(_CHUNK), b"")
        with open(file, "x+b") as archive:
            archive.writelines(limited(pieces, archive_limits.limits(options)))
            archive.flush()
            found = archive_reading.read(
                options, archive, project_id, _label(project_id), _python()
            )
        key = PackageVersion(found.fqn, found.version)
        read = file, key, found.values, found.warnings, fs.digest(file), file.stat().st_size
        return cls("the archive", *read, options, project_id)

    def has_files_of(self, other: IO[bytes]) -> bool:
        """Return whether this package and another archive have the same files.

        :raises ServiceBusy: if too many archives are read at the same time.
        :raises InvalidPackage: if the other archive is not valid.
        """
        with open(self.archive, "rb") as own:
            return self._repacked_digest(own) == self._repacked_digest(other)

    def _repacked_digest(self, archive: IO[bytes]) -> str:
        label, python = _label(self.project_id), _python()
        return archive_reading.repacked_digest(
            self.options, archive, self.project_id, label, python
        )


def configure(conf: cfg.ConfigOpts) -> None:
    """Register the options for reading archives, and check that archives can be read.

    :raises LoaderError: if no Python interpreter is found.
    """
    options.register(conf, config.API_OPTIONS)
    _python()


@functools.cache
def _python() -> str:
    """Return the path of the Python interpreter for child processes.

    :raises LoaderError: if none is found.
    """
    # In uWSGI, the first one is uWSGI itself.
    paths = sys.executable, os.path.join(sys.prefix, "bin", "python3")
    for path in filter(sandbox.is_interpreter, paths):
        return path
    raise errors.LoaderError(
        f"murano-api needs Python, to read uploaded archives; neither of these files is a Python "
        f"interpreter: {', '.join(paths)}"
    )


def _label(project_id: str | None) -> str:
    return f"an upload of project {project_id}"
