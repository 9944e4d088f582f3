# SPDX-License-Identifier: Apache-2.0

"""How an engine gets packages: found in catalogues, fetched once, cached.

``PackageLoader`` is the one door. Importing this package imports neither
Glare nor Murano.
"""

from loader.cache.store import Cache
from loader.counters import Counters
from loader.errors import (
    CacheError,
    CatalogError,
    DigestMismatch,
    InvalidPins,
    LoaderError,
    LockError,
    NoAnswer,
    NoSuchClass,
    NoSuchPackage,
    NotFound,
    UnknownCatalog,
    UnsupportedFormat,
)
from loader.fetcher import Fetcher, Progress
from loader.loader import PackageLoader
from loader.lockfile import Lock, LockedCatalog
from loader.offline import Memory
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
