# SPDX-License-Identifier: Apache-2.0

"""Read and check Murano packages: their versions, manifests, classes and archives.

These modules import no service, no HTTP library and no engine. So the server and the loader check
packages with the same code, and report the same problems.
"""

from glare_murano.package.archive import Archive
from glare_murano.package.archive_rules import Limits
from glare_murano.package.contents import Contents, read_contents, read_manifest
from glare_murano.package.errors import (
    GlareMuranoError,
    InvalidArchive,
    InvalidManifest,
    InvalidName,
    InvalidPackage,
    InvalidRange,
    InvalidVersion,
    Problem,
    TooManyVersions,
    Unplannable,
)
from glare_murano.package.manifest import Manifest
from glare_murano.package.package_types import Description
from glare_murano.package.rules import Rule
from glare_murano.package.versions import Version, VersionSpec, parse_version

__all__ = [
    "Archive",
    "Contents",
    "Description",
    "GlareMuranoError",
    "InvalidArchive",
    "InvalidManifest",
    "InvalidName",
    "InvalidPackage",
    "InvalidRange",
    "InvalidVersion",
    "Limits",
    "Manifest",
    "Problem",
    "Rule",
    "TooManyVersions",
    "Unplannable",
    "Version",
    "VersionSpec",
    "parse_version",
    "read_contents",
    "read_manifest",
]
