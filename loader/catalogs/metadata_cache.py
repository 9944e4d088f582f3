# SPDX-License-Identifier: Apache-2.0

"""Cache the metadata that is read from archives, so that a host reads each archive only once.

The cache is a directory in the package cache. If it is deleted, the archives are read again.
"""

import functools
import hashlib
import json
import logging
import pathlib
import tempfile

from oslo_config import cfg

from glare_murano import wire
from loader import fs
from loader.catalogs.options import Options, register

LOG = logging.getLogger(__name__)


OPTIONS: Options = {
    "engine": [
        cfg.StrOpt("packages_cache", help="The directory of the package cache."),
        cfg.BoolOpt(
            "enable_packages_cache",
            default=True,
            help="Whether to keep packages in the cache after a task.",
        ),
    ]
}


class MetadataCache:
    """A cache of releases, in memory and in a directory that processes share.

    Each release has a key, which identifies its archive. For example, a key consists of the name of
    a catalogue, and of the archive's id in this catalogue.
    """

    def __init__(self, directory: pathlib.Path | None = None) -> None:
        """Make a cache.

        :param directory: the shared directory; without it, releases are kept in memory only.
        """
        self._directory = directory
        self._releases: dict[str, wire.Release] = {}

    def get(self, key: str) -> wire.Release | None:
        """Return the release for a key; None if it is missing, or if its file is damaged."""
        if key not in self._releases and self._directory is not None:
            try:
                content = wire.mapping(json.loads(self._path(self._directory, key).read_bytes()))
                if content.get("key") == key:
                    self._releases[key] = wire.get(content, "release", wire.release_from_json)
            except (OSError, ValueError, RecursionError):
                return None
        return self._releases.get(key)

    def put(self, key: str, release: wire.Release) -> None:
        """Keep a release in memory and in a file; a failure to write the file is only logged."""
        self._releases[key] = release
        if self._directory is None:
            return
        content = json.dumps({"key": key, "release": wire.release_to_json(release)}).encode()
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            fs.replace(self._path(self._directory, key), content)
        except OSError as error:
            LOG.warning(
                "The metadata of %s cannot be kept for other processes: %s. Check the permissions "
                "of %s",
                release,
                error,
                self._directory,
            )

    @staticmethod
    def _path(directory: pathlib.Path, key: str) -> pathlib.Path:
        return directory / f"{hashlib.sha256(key.encode(errors='replace')).hexdigest()}.json"


def package_cache_directory(conf: cfg.ConfigOpts) -> pathlib.Path:
    """Return the directory of the package cache: the configured or else the default directory."""
    default = pathlib.Path(tempfile.gettempdir(), "murano-packages-cache")
    return pathlib.Path(conf.engine.packages_cache or default)


_shared = functools.cache(MetadataCache)


def configured(conf: cfg.ConfigOpts) -> MetadataCache:
    """Return the metadata cache that all catalogues of this process share.

    If the package cache is disabled, return a new metadata cache in memory instead.
    """
    register(conf, OPTIONS)
    if not conf.engine.enable_packages_cache:
        return MetadataCache()
    return _shared((package_cache_directory(conf) / "catalogs").absolute())
