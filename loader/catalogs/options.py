# SPDX-License-Identifier: Apache-2.0

"""Register the options of catalogues beside the options of Murano.

A catalogue's module lists its options as ``OPTIONS``. If Murano has registered an option with
the same name, Murano's definition stays: both read the same file.
"""

import functools
import math
import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from oslo_config import cfg, types

from loader.catalogs.metadata_cache import MetadataCache

# Group -> options.
Options = Mapping[str, Sequence[cfg.Opt]]

GROUP = "package_loader"


class Seconds(types.Float):
    """A number of seconds. The type of oslo.config accepts NaN, and a wait for NaN never ends."""

    def __call__(self, value: Any) -> float | None:
        seconds: float | None = super().__call__(value)
        if seconds is not None and not math.isfinite(seconds):
            raise ValueError("should be a finite number of seconds")
        return seconds


CACHE: Options = {
    "engine": [
        cfg.StrOpt("packages_cache", help="The directory of the package cache."),
        cfg.BoolOpt(
            "enable_packages_cache",
            default=True,
            help="Whether to keep packages in the cache after a task.",
        ),
    ]
}


def register(conf: cfg.ConfigOpts, options: Options) -> None:
    """Register options, except those that are registered already."""
    for group, in_group in options.items():
        registered = conf if group == "DEFAULT" else getattr(conf, group, ())
        for option in in_group:
            # If an option is registered again, oslo.config forgets all values that it has read.
            if option.dest not in registered:
                conf.register_opt(option, None if group == "DEFAULT" else group)


def cache_directory(conf: cfg.ConfigOpts) -> pathlib.Path:
    """Return the directory of the package cache."""
    default = pathlib.Path(tempfile.gettempdir(), "murano-packages-cache")
    return pathlib.Path(conf.engine.packages_cache or default)


_shared_cache = functools.cache(MetadataCache)


def metadata_cache(conf: cfg.ConfigOpts) -> MetadataCache:
    """Return the metadata cache; it is on disk only if the package cache is enabled."""
    register(conf, CACHE)
    if not conf.engine.enable_packages_cache:
        return MetadataCache()
    return _shared_cache((cache_directory(conf) / "catalogs").absolute())
