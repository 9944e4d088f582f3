# SPDX-License-Identifier: Apache-2.0

"""Choose an installed package type by the ``Format`` in a manifest, and make the package."""

import copy
import importlib.metadata
import logging
import os
from collections.abc import Callable, Collection
from typing import Any, cast

from glare_murano.package import InvalidManifest, Manifest
from glare_murano.package.manifest import PLUGIN_NAMESPACE, Format, registered_formats
from glare_murano.package.rules import Rule
from loader import entry_points, errors
from loader.formats.base import Package
from loader.formats.source import PackageSource

LOG = logging.getLogger(__name__)

_DISTRIBUTION = "glare-murano"


class PluginPackage:
    """A package from a plug-in that was written for Murano, and does not know ``Package``.

    The plug-in's class extends Murano's own class of packages. This object wraps the plug-in's
    package, and adds the attributes that Murano's class lacks. All other attributes are those of
    the plug-in's package.
    """

    __repr__ = Package.__repr__
    read_class = Package.read_class

    def __init__(self, package: Any, source: str | PackageSource) -> None:
        """Make a package.

        :param package: the package that the plug-in has made.
        :param source: the path of the package's files, or an object that reads the files.
        """
        self._package = package
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._package, name)

    @property
    def source_directory(self) -> str:
        """The path of the package's files."""
        return os.fspath(self._source)


class PackageTypes:
    """The allowed package types; each is imported when its first package is loaded."""

    def __init__(self, enabled: Collection[str] | None = None) -> None:
        """List the formats of the installed package types; nothing is imported yet.

        :param enabled: the names of the Python distributions whose plug-ins may be used, in
            addition to the built-in package types; None allows all.
        """
        self._enabled = enabled
        self._entry_points = {
            str(found): entry_point.name
            for found, entry_point in registered_formats(PLUGIN_NAMESPACE).items()
        }
        self._types: dict[str, Callable[..., Any]] = {}

    def load(self, source: PackageSource) -> Package:
        """Make the package for a source.

        A package type is a class, and its constructor gets the path of a directory with the files.
        If the class itself sets ``takes_source`` to true, the constructor gets the source instead.
        An inherited ``takes_source`` has no effect.

        :param source: the files of the package.
        :raises InvalidPackage: if the manifest breaks a rule.
        :raises UnsupportedFormat: if no allowed package type has the format.
        :raises LoaderError: if the files cannot be read.
        """
        try:
            manifest = source.manifest()
        except InvalidManifest as error:
            if {problem.rule for problem in error.problems} == {Rule.MANIFEST_FORMAT}:
                raise errors.UnsupportedFormat(f"the package in {source}: {error}") from error
            raise
        name = str(manifest.format)
        if name not in self._types:
            package = f"{manifest.fqn} {manifest.version}"
            self._types[name] = self._import(name, f"{package} has the format {name}")
        package_type = self._types[name]
        takes_source = vars(package_type).get("takes_source", False)
        made = package_type(
            manifest.format.name,
            manifest.format.version,
            source if takes_source else os.fspath(source),
            # All loaders of the process share the manifest, and a plug-in may change its copy.
            copy.deepcopy(dict(manifest.document)),
        )
        _check_identity(made, manifest)
        if isinstance(made, Package):
            return made
        return cast(Package, PluginPackage(made, source))

    def is_of_plugin(self, format_: Format) -> bool:
        """Return whether the package type of a format is allowed, and is not a built-in one."""
        return next(iter(self._usable(str(format_))), _DISTRIBUTION) != _DISTRIBUTION

    def _usable(self, name: str) -> dict[str, importlib.metadata.EntryPoint]:
        """Return the allowed entry points for a format, by distribution; the first one is used."""
        if name not in self._entry_points:
            return {}
        installed = entry_points.installed(PLUGIN_NAMESPACE)[self._entry_points[name]]
        return {
            distribution: entry_point
            for distribution, entry_point in installed.items()
            if self._enabled is None or distribution in (_DISTRIBUTION, *self._enabled)
        }

    def _import(self, name: str, found: str) -> Callable[..., Any]:
        """Import the package type of a format.

        :param name: the format.
        :param found: the beginning of messages, which says which package has the format.
        """
        if name not in self._entry_points:
            raise errors.UnsupportedFormat(
                f"{found}, but no package type for it is installed; "
                f"installed are {', '.join(sorted(self._entry_points))}"
            )
        usable = self._usable(name)
        if not usable:
            raise errors.UnsupportedFormat(f"{found}: its plug-in is not enabled")
        entry_point = next(iter(usable.values()))
        plugin = entry_point.value
        try:
            package_type: Callable[..., Any] = entry_point.load()
        except Exception as error:
            reason = f"{plugin}: {type(error).__name__}: {error}"
            raise errors.UnsupportedFormat(f"{found}: {reason}") from error
        # Murano also calls this once, before the first package.
        if hasattr(package_type, "init_plugin"):
            package_type.init_plugin()
        LOG.info("Package type %s is %s", name, plugin)
        return package_type


def _check_identity(package: Any, manifest: Manifest) -> None:
    """Check that a package has the same name and version as its manifest.

    A plug-in may compute another name or version, but catalogues list the package by its manifest.

    :raises UnsupportedFormat: if the name or the version differs.
    """
    computed, own = f"{package.full_name} {package.version}", f"{manifest.fqn} {manifest.version}"
    if computed != own:
        raise errors.UnsupportedFormat(
            f"{own} has the format {manifest.format}, whose plug-in computes {computed}; name and "
            f"version must be those of the manifest"
        )
