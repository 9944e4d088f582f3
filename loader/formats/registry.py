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

"""The package types that are installed, and how one is chosen.

Only the type that a package needs is imported.
"""

import contextlib
import copy
import functools
import importlib.metadata
import logging
import pathlib
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from typing import Any

from stevedore import named

from glare_murano.package import Archive
from glare_murano.package import InvalidManifest
from glare_murano.package import read_manifest
from glare_murano.package.manifest import FILE_NAME
from glare_murano.package.manifest import PLUGIN_NAMESPACE
from glare_murano.package.manifest import Format
from glare_murano.package.manifest import Manifest
from glare_murano.package.manifest import registered_formats
from loader import errors
from loader import plugins
from loader.formats.base import Package

LOG = logging.getLogger(__name__)

_OURS = "glare-murano"

# Manifests that are kept, and the bytes of one: real ones are far smaller. What
# takes most memory takes fifty times as many bytes, and so all 100 MB.
_MOST_KEPT = 256
_LARGEST_KEPT = 8192


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

    def load(self, folder: pathlib.Path) -> Package:
        """Read an unpacked package.

        :raises InvalidPackage: if its manifest breaks a rule.
        :raises UnsupportedFormat: naming the formats that are installed.
        """
        with _told(folder):
            manifest = _read(folder)
        return self._package(manifest, folder)

    def load_cached(self, folder: pathlib.Path) -> Package:
        """Read a package from a folder of a cache, where a path never stands for other files.

        What this process has read before is not read again.

        :raises InvalidPackage: if its manifest breaks a rule.
        :raises UnsupportedFormat: naming the formats that are installed.
        """
        path = folder / FILE_NAME
        there = path.stat() if path.is_file() else None
        if there is None or there.st_size > _LARGEST_KEPT:
            return self.load(folder)
        with _told(folder):
            manifest = _kept(path, there.st_ctime_ns)
        return self._package(manifest, folder)

    def _package(self, manifest: Manifest, folder: pathlib.Path) -> Package:
        package_type = self._find(manifest.format, f"{manifest.full_name} {manifest.version}")
        # A copy: the manifest is for others as well, and a plug-in may write to it.
        document = copy.deepcopy(dict(manifest.document))
        return package_type(manifest.format.name, manifest.format.version, str(folder), document)

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
        return any(owner.name in allowed for owner in plugins.owners(PLUGIN_NAMESPACE)[entry_point])


def _read(folder: pathlib.Path) -> Manifest:
    with Archive.open(folder) as archive:
        return read_manifest(archive)


@functools.lru_cache(_MOST_KEPT)
def _kept(path: pathlib.Path, changed: int) -> Manifest:
    """The manifest of a file.

    :param changed: when it was changed last: one that was damaged may have been
        fetched again.
    """
    return Manifest.parse(path.read_bytes())


@contextlib.contextmanager
def _told(folder: pathlib.Path) -> Iterator[None]:
    try:
        yield
    except InvalidManifest as error:
        if {problem.rule for problem in error.problems} == {"manifest-format"}:
            raise errors.UnsupportedFormat(f"the package in {folder}: {error}") from error
        raise
