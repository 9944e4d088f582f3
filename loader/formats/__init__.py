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

"""Package types: what the files of an unpacked package mean.

A package type is found by the ``Format`` of the manifest.
"""

import pathlib

from glare_murano.package import Archive
from glare_murano.package import read_manifest
from loader import errors
from loader.formats.base import Package
from loader.formats.base import PackageBase
from loader.formats.muranopl import MuranoPLPackage

__all__ = ["Package", "PackageBase", "load"]

_TYPES: dict[str, type[PackageBase]] = {
    f"MuranoPL/1.{minor}.0": MuranoPLPackage for minor in range(5)
}


def load(folder: pathlib.Path) -> Package:
    """Read an unpacked package.

    :raises InvalidPackage: if its manifest or its files break a rule.
    :raises UnsupportedFormat: naming the formats that are installed.
    """
    with Archive.open(folder) as archive:
        manifest = read_manifest(archive)
    package_type = _TYPES.get(str(manifest.format))
    if package_type is None:
        raise errors.UnsupportedFormat(
            f"{manifest.full_name} {manifest.version} is written in {manifest.format}, which no "
            f"installed package type reads; installed are {', '.join(sorted(_TYPES))}"
        )
    return package_type(
        manifest.format.name, manifest.format.version, str(folder), dict(manifest.document)
    )
