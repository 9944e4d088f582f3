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

"""How an engine gets packages: found in catalogues, fetched once, cached.

``PackageLoader`` is the one door. Importing this package imports neither
Glare nor Murano.
"""

from loader.cache import Cache
from loader.counters import Counters
from loader.errors import CacheError
from loader.errors import CatalogError
from loader.errors import DigestMismatch
from loader.errors import InvalidPins
from loader.errors import LoaderError
from loader.errors import LockError
from loader.errors import NoAnswer
from loader.errors import NoSuchClass
from loader.errors import NoSuchPackage
from loader.errors import NotFound
from loader.errors import UnknownCatalog
from loader.errors import UnsupportedFormat
from loader.fetching import Fetcher
from loader.fetching import Progress
from loader.loader import PackageLoader
from loader.lockfile import Lock
from loader.lockfile import LockedCatalog
from loader.memory import Memory
from loader.pins import Pins

__all__ = [
    "Cache",
    "CacheError",
    "CatalogError",
    "Counters",
    "DigestMismatch",
    "Fetcher",
    "InvalidPins",
    "LoaderError",
    "Lock",
    "LockError",
    "LockedCatalog",
    "Memory",
    "NoAnswer",
    "NoSuchClass",
    "NoSuchPackage",
    "NotFound",
    "PackageLoader",
    "Pins",
    "Progress",
    "UnknownCatalog",
    "UnsupportedFormat",
]
