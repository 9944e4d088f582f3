# SPDX-License-Identifier: Apache-2.0

"""Describe the packages whose package type is a plug-in, without calling the plug-in here.

A package type reads the files of a package, which a tenant has written. So the engine's process
lets a cell call it, and gets the requirements and the names of the classes. The built-in package
types only read YAML within limits, and are called here.
"""

import dataclasses
import pathlib
from collections.abc import Collection, Mapping
from typing import Any, cast

from glare_murano.package import InvalidName, InvalidRange, Version, VersionSpec
from glare_murano.package.manifest import (
    MAX_REQUIREMENTS,
    Format,
    check_fqn,
    check_required_name,
)
from loader import errors
from loader.engine.adapter import CONF
from loader.engine.cells import cell_calls, endpoints, package_answers
from loader.engine.credentials import ExecutionSession
from loader.formats.base import Package
from loader.formats.registry import PackageTypes
from loader.formats.source import PackageSource

# The most classes of a package, as in the services.
_MAX_CLASSES = 1024
# The longest processor time of a package type, in seconds.
_SECONDS = 10


@dataclasses.dataclass(frozen=True)
class _Description:
    """What the loader and the engine's process need to know of a package."""

    full_name: str
    version: Version
    format_name: str
    requirements: Mapping[str, str | None]
    classes: Collection[str]


def _checked(requirements: dict[Any, Any], classes: list[Any], who: str) -> dict[str, Any]:
    """Return requirements and classes that have the form of those in a manifest.

    :param who: the package type, for the error.
    :raises LoaderError: if a name or a range is not valid.
    """
    ranges = {fqn: range if range is None else str(range) for fqn, range in requirements.items()}
    try:
        for fqn, range in ranges.items():
            check_required_name(fqn)
            VersionSpec.of(range)
        for name in classes:
            check_fqn(name)
    except (TypeError, InvalidName, InvalidRange) as error:
        raise errors.LoaderError(f"{who} has not described the package: {error}") from error
    return {"requirements": ranges, "classes": classes}


class DescribedPackages(PackageTypes):
    """The package types for the loader in the engine's process."""

    def __init__(self, session: ExecutionSession) -> None:
        """List the formats of the installed package types.

        :param session: the user and the project of the request, for the log.
        """
        super().__init__(CONF.murano.enabled_plugins)
        self._session = session

    def load(self, source: PackageSource) -> Package:
        """Make the package for a source, or a description of the package.

        A description lacks the attributes that only the code of packages uses.

        :raises LoaderError: if the package type fails, or the files cannot be read.
        :raises InvalidPackage: if the manifest breaks a rule.
        """
        manifest = source.manifest()
        if not self.is_of_plugin(manifest.format):
            return super().load(source)
        content = self._described(source.path, manifest.format)
        return cast(
            Package,
            _Description(manifest.fqn, manifest.version, manifest.format.name, **content),
        )

    def _described(self, path: pathlib.Path, format_: Format) -> dict[str, Any]:
        """Return the requirements and the classes of a package, which a cell describes."""
        with cell_calls.copies() as directory:
            copy = package_answers.copy_package(path, pathlib.Path(directory), "0")
            limits = cell_calls.settings(directory, ports=[], seconds=_SECONDS)
            request = {"endpoint": endpoints.DESCRIPTION, "path": str(copy)}
            try:
                content = cell_calls.call(self._session, request, cell_calls.refuse, limits)
            except Exception as error:
                raise errors.LoaderError(f"its package type {format_}: {error}") from error
        match content:
            case {"requirements": dict(requirements), "classes": list(classes)} if (
                len(requirements) <= MAX_REQUIREMENTS and len(classes) <= _MAX_CLASSES
            ):
                return _checked(requirements, classes, f"its package type {format_}")
        raise errors.LoaderError(f"its package type {format_} has not described the package")
