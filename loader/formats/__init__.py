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

"""Package types: what the files of a package mean.

A package type is found by the ``Format`` of the manifest, among the entry
points of the group ``io.murano.plugins.packages`` (document "package-type
plug-ins"). A plug-in that was written for Murano works as it is.
"""

from loader.formats.base import Package
from loader.formats.base import PackageBase
from loader.formats.registry import PackageTypes
from loader.formats.source import Archived
from loader.formats.source import Folder
from loader.formats.source import Source

__all__ = ["Archived", "Folder", "Package", "PackageBase", "PackageTypes", "Source"]
