# SPDX-License-Identifier: Apache-2.0

"""Load Murano packages as an engine does: find them in catalogues, fetch them once, cache them.

``PackageLoader.from_cloud`` makes a loader for a cloud of ``clouds.yaml``. ``PackageLoader`` itself
takes catalogues, such as ``GlareCatalog``. All errors are subclasses of ``GlareMuranoError``.
"""

import importlib
from typing import TYPE_CHECKING, Any

from glare_murano.package import (
    GlareMuranoError,
    InvalidArchive,
    InvalidName,
    InvalidPackage,
    InvalidRange,
    TooManyVersions,
    Unplannable,
    VersionSpec,
)
from glare_murano.package.reserved_names import ReservedNames
from glare_murano.wire import Release
from loader.cache.store import Cache
from loader.counters import Counters
from loader.environments.pins import Pins
from loader.errors import (
    CacheBusy,
    CacheError,
    CatalogError,
    CatalogUnavailable,
    DigestMismatch,
    InvalidCloud,
    InvalidPins,
    LoaderError,
    LockError,
    NoSuchClass,
    NoSuchPackage,
    NotFound,
    NotRequired,
    UnknownCatalog,
    UnsupportedFormat,
)
from loader.fetcher import Fetcher
from loader.formats.base import Package
from loader.loader import PackageLoader
from loader.lockfiles.lock import Lock, LockedCatalog
from loader.offline import OfflineIndex
from loader.progress import Progress

if TYPE_CHECKING:
    from loader.catalogs.directory import DirectoryCatalog
    from loader.catalogs.glance import GlanceCatalog
    from loader.catalogs.glare import GlareCatalog
    from loader.catalogs.murano import MuranoCatalog

__all__ = [
    "Cache",
    "CacheBusy",
    "CacheError",
    "CatalogError",
    "CatalogUnavailable",
    "Counters",
    "DigestMismatch",
    "DirectoryCatalog",
    "Fetcher",
    "GlanceCatalog",
    "GlareCatalog",
    "GlareMuranoError",
    "InvalidArchive",
    "InvalidCloud",
    "InvalidName",
    "InvalidPackage",
    "InvalidPins",
    "InvalidRange",
    "LoaderError",
    "Lock",
    "LockError",
    "LockedCatalog",
    "MuranoCatalog",
    "NoSuchClass",
    "NoSuchPackage",
    "NotFound",
    "NotRequired",
    "OfflineIndex",
    "Package",
    "PackageLoader",
    "Pins",
    "Progress",
    "Release",
    "ReservedNames",
    "TooManyVersions",
    "UnknownCatalog",
    "Unplannable",
    "UnsupportedFormat",
    "VersionSpec",
]

# A catalogue is imported when it is first used, since it needs the library of its service.
_CATALOGS = {
    "DirectoryCatalog": "loader.catalogs.directory",
    "GlanceCatalog": "loader.catalogs.glance",
    "GlareCatalog": "loader.catalogs.glare",
    "MuranoCatalog": "loader.catalogs.murano",
}


def __getattr__(name: str) -> Any:
    if name not in _CATALOGS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_CATALOGS[name]), name)
