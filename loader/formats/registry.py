# SPDX-License-Identifier: Apache-2.0

"""The package types that are installed, and how one is chosen.

Only the type that a package needs is imported.
"""

import contextlib
import copy
import importlib.metadata
import logging
import os
from collections.abc import Callable, Collection, Iterator
from typing import Any

from stevedore import named

from glare_murano.package import InvalidManifest
from glare_murano.package.manifest import PLUGIN_NAMESPACE, Format, registered_formats
from glare_murano.package.rules import Rule
from loader import entry_points, errors
from loader.formats.base import Package
from loader.formats.source import Source

LOG = logging.getLogger(__name__)

_OURS = "glare-murano"


class PackageTypes:
    """The package types that may be used."""

    def __init__(self, enabled: Collection[str] | None = None) -> None:
        """Look up what is installed; nothing is imported yet.

        :param enabled: names of the Python distributions whose plug-ins may
            be used beside this project's own; None means all.
        """
        self._enabled = enabled
        self._names = registered_formats()
        self._types: dict[str, Callable[..., Package]] = {}

    def load(self, source: Source) -> Package:
        """Read a package.

        :raises InvalidPackage: if its manifest breaks a rule.
        :raises UnsupportedFormat: naming the formats that are installed.
        :raises LoaderError: if its files cannot be had.
        """
        with _told(source):
            manifest = source.manifest()
        package_type = self._find(manifest.format, f"{manifest.full_name} {manifest.version}")
        # Said by the class itself: one that is derived from it may want a path.
        takes_source = vars(package_type).get("takes_source", False)
        return package_type(
            manifest.format.name,
            manifest.format.version,
            source if takes_source else os.fspath(source),
            # A copy: the manifest is for others as well, and a plug-in may write to it.
            copy.deepcopy(dict(manifest.document)),
        )

    def _find(self, wanted: Format, package: str) -> Callable[..., Package]:
        name = str(wanted)
        if name not in self._types:
            if name not in self._names:
                installed = ", ".join(sorted(self._names))
                raise errors.UnsupportedFormat(
                    f"{package} is written in {name}, which no installed package type reads; "
                    f"installed are {installed}"
                )
            self._types[name] = self._import(self._names[name], package)
        return self._types[name]

    def _import(self, entry_point: str, package: str) -> Callable[..., Package]:
        failures: list[str] = []

        def remember(_: Any, failed: importlib.metadata.EntryPoint, error: BaseException) -> None:
            failures.append(f"{failed.value}: {type(error).__name__}: {error}")

        found: named.NamedExtensionManager[Any] = named.NamedExtensionManager(
            PLUGIN_NAMESPACE,
            names=[entry_point],
            on_load_failure_callback=remember,
            warn_on_missing_entrypoint=False,
        )
        usable = list(found) if self._is_enabled(entry_point) else []
        if not usable:
            reason = "; ".join(failures) or "the plug-in that registers it is not enabled"
            raise errors.UnsupportedFormat(f"{package} is written in {entry_point}: {reason}")
        package_type: Callable[..., Package] = usable[0].plugin
        # As Murano does, before the type is used for the first time.
        if hasattr(package_type, "init_plugin"):
            package_type.init_plugin()
        LOG.info("Package type %s is read by %s", entry_point, usable[0].entry_point.value)
        return package_type

    def _is_enabled(self, entry_point: str) -> bool:
        if self._enabled is None:
            return True
        allowed = {_OURS, *self._enabled}
        return any(
            owner.name in allowed for owner in entry_points.owners(PLUGIN_NAMESPACE)[entry_point]
        )


@contextlib.contextmanager
def _told(source: Source) -> Iterator[None]:
    try:
        yield
    except InvalidManifest as error:
        if {problem.rule for problem in error.problems} == {Rule.MANIFEST_FORMAT}:
            raise errors.UnsupportedFormat(f"the package in {source}: {error}") from error
        raise
