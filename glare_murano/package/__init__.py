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

"""A Murano package by itself: versions, manifest, archive.

Nothing here knows of Glare, of HTTP or of an engine, so that the service that
stores packages and the engine that loads them judge a package by the same
code and in the same words.
"""

from glare_murano.package.archive import Archive
from glare_murano.package.contents import Contents
from glare_murano.package.contents import read_contents
from glare_murano.package.contents import read_manifest
from glare_murano.package.entries import Limits
from glare_murano.package.errors import GlareMuranoError
from glare_murano.package.errors import InvalidArchive
from glare_murano.package.errors import InvalidManifest
from glare_murano.package.errors import InvalidName
from glare_murano.package.errors import InvalidPackage
from glare_murano.package.errors import InvalidRange
from glare_murano.package.errors import InvalidVersion
from glare_murano.package.errors import Problem
from glare_murano.package.manifest import Manifest
from glare_murano.package.versions import Version
from glare_murano.package.versions import VersionSpec
from glare_murano.package.versions import parse_version

__all__ = [
    "Archive",
    "Contents",
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
    "Version",
    "VersionSpec",
    "parse_version",
    "read_contents",
    "read_manifest",
]
