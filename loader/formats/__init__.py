# SPDX-License-Identifier: Apache-2.0

"""Package types: what the files of a package mean.

A package type is found by the ``Format`` of the manifest, among the entry
points of the group ``io.murano.plugins.packages`` (document "package-type
plug-ins"). A plug-in that was written for Murano works as it is.
"""

from loader.formats.base import Package, PackageBase
from loader.formats.registry import PackageTypes
from loader.formats.source import Archived, Folder, Source

__all__ = ["Archived", "Folder", "Package", "PackageBase", "PackageTypes", "Source"]
