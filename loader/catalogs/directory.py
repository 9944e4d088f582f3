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

"""Releases that lie unpacked in a folder of this host.

A package is any folder with a manifest, however deep below the catalogue's
folder; folders inside a package are not searched. The packages are used where
they lie and are read once, when the catalogue is made.
"""

import logging
import os
import pathlib
from collections.abc import Iterable
from collections.abc import Iterator

from glare_murano.package import Archive
from glare_murano.package import InvalidPackage
from glare_murano.package import VersionSpec
from glare_murano.package import read_contents
from glare_murano.package.manifest import FILE_NAME
from loader.catalogs import base

LOG = logging.getLogger(__name__)


class DirectoryCatalog(base.Catalog):
    """The packages below one folder."""

    def __init__(self, folder: pathlib.Path) -> None:
        super().__init__(f"the folder {folder}")
        found = [release for path in _package_folders(folder) if (release := _read(path))]
        self._releases = sorted(found, key=lambda r: r.version.precedence_key, reverse=True)

    def newest(self, fqn: str, spec: VersionSpec) -> base.Release | None:
        """See the interface."""
        return _first(self.releases(fqn), spec)

    def newest_defining(self, class_name: str, spec: VersionSpec) -> base.Release | None:
        """See the interface."""
        return _first(self.releases_defining(class_name), spec)

    def releases(self, fqn: str) -> list[base.Release]:
        """See the interface."""
        return [release for release in self._releases if release.fqn == fqn]

    def releases_defining(self, class_name: str) -> list[base.Release]:
        """See the interface."""
        return [release for release in self._releases if class_name in release.classes]

    def fetch(self, release: base.Release) -> Iterable[bytes]:
        """Not needed: every release has a folder."""
        raise NotImplementedError(f"{release} lies in {release.folder} already")


def _package_folders(root: pathlib.Path) -> Iterator[pathlib.Path]:
    for folder, subfolders, files in os.walk(root):
        if FILE_NAME in files:
            subfolders.clear()
            yield pathlib.Path(folder)
        # A hidden folder may be one that is being unpacked.
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))


def _read(folder: pathlib.Path) -> base.Release | None:
    try:
        with Archive.open(folder) as archive:
            contents = read_contents(archive)
    except (InvalidPackage, OSError) as error:
        LOG.warning("Left out the package in %s: %s", folder, error)
        return None
    manifest = contents.manifest
    return base.Release(
        fqn=manifest.full_name,
        version=manifest.version,
        requirements=manifest.requirements,
        classes=frozenset(definition.name for definition in contents.classes),
        reference=str(folder),
        folder=folder,
    )


def _first(releases: Iterable[base.Release], spec: VersionSpec) -> base.Release | None:
    return next((release for release in releases if spec.match(release.version)), None)
