# SPDX-License-Identifier: Apache-2.0

"""Read an uploaded package in a child process, as Glare and Glance do.

Glare or Glance reads the archive again, when it gets it. But murano-api needs the name and the
version before, to create the package there.
"""

import dataclasses
import functools
import pathlib
import time
from collections.abc import Mapping
from typing import IO, Any

from oslo_config import cfg

from glare_murano import archive_limits, archive_reading, archive_settings
from glare_murano.archive_reading import ServiceBusy
from glare_murano.package import InvalidPackage, sandbox
from glare_murano.package.archive_rules import limited
from glare_murano.package.ui_form import FormCheck
from glare_murano.resolver import PackageVersion
from loader import config, errors, fs
from loader.authoring.local_packages import LocalPackage
from loader.catalogs import options

_CHUNK = 64 * 1024
_NAMES = [each.name for each in (*archive_limits.OPTIONS, *archive_settings.READING_OPTIONS)]


class IncomparableArchive(errors.LoaderError):
    """An archive in Glare or Glance cannot be compared with an uploaded one."""


@dataclasses.dataclass(frozen=True)
class UploadedPackage(LocalPackage):
    """A valid package that a project has uploaded.

    :param settings: the result of ``configure``.
    :param project_id: the project.
    """

    settings: Mapping[str, Any]
    project_id: str | None

    @classmethod
    def read(
        cls,
        upload: IO[bytes],
        file: IO[bytes],
        settings: Mapping[str, Any],
        project_id: str | None,
    ) -> "UploadedPackage":
        """Write an uploaded archive into a temporary file, and read the package in it.

        :param file: an empty file without a name, so that no child process can open it by its
            path. It has to stay open as long as the package is used.
        :param settings: the result of ``configure``.
        :raises ServiceBusy: if too many archives are read at the same time.
        :raises InvalidPackage: if the package breaks rules; the message has all problems.
        """
        pieces = iter(lambda: upload.read(_CHUNK), b"")
        file.writelines(limited(pieces, archive_limits.limits(settings)))
        file.flush()
        found = archive_reading.read(
            settings, file, project_id, _label(project_id), meanwhile=_let_others_run
        )
        path = pathlib.Path(f"/proc/self/fd/{file.fileno()}")
        return cls(
            place="the archive",
            archive=path,
            key=PackageVersion(found.fqn, found.version),
            values=found.values,
            warnings=found.warnings,
            digest=fs.digest(path),
            size=path.stat().st_size,
            settings=settings,
            project_id=project_id,
        )

    def has_files_of(self, other: IO[bytes]) -> bool:
        """Return whether this package and a stored archive have the same files.

        :raises ServiceBusy: if too many archives are read at the same time.
        :raises IncomparableArchive: if the stored archive cannot be read.
        """
        try:
            return self._repacked == self._repacked_digest(other)
        except ServiceBusy:
            raise
        except InvalidPackage as error:
            raise IncomparableArchive(
                f"{self} is stored already, and murano-api cannot compare the stored archive with "
                f"the uploaded one: {error}; upload another version"
            ) from error

    @functools.cached_property
    def _repacked(self) -> str:
        with open(self.archive, "rb") as own:
            return self._repacked_digest(own)

    def _repacked_digest(self, archive: IO[bytes]) -> str:
        label = _label(self.project_id)
        return archive_reading.repacked_digest(self.settings, archive, self.project_id, label)


def configure(conf: cfg.ConfigOpts) -> dict[str, Any]:
    """Register the options for reading archives, and check that archives can be read.

    :returns: the options for ``archive_reading``, by name.
    :raises LoaderError: if an option is not valid, or if no Python interpreter is found.
    """
    options.register(conf, config.OPTIONS)
    options.register(conf, config.API_OPTIONS)
    try:
        sandbox.find_interpreter()
    except sandbox.ChildFailed as error:
        raise errors.LoaderError(f"murano-api cannot read archives: {error}") from error
    try:
        found = {name: conf[options.GROUP][name] for name in _NAMES}
    except ValueError as error:
        raise errors.LoaderError(f"[{options.GROUP}]: {error}") from error
    # Glare or Glance decides whether it accepts a form that the dashboard cannot show.
    return {**found, "check_forms": FormCheck.WARN.value}


def _label(project_id: str | None) -> str:
    return f"an upload of project {project_id}"


def _let_others_run() -> None:
    """Let other green threads run; in a process with threads, this does nothing."""
    time.sleep(0)
