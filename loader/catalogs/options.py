# SPDX-License-Identifier: Apache-2.0
"""The options of catalogues, beside those that Murano has registered already.

A catalogue lists its own options as ``OPTIONS``. Where Murano knows an option of
the same name, Murano's definition stays, so that both read the same file.
"""

import pathlib
import tempfile
from collections.abc import Mapping, Sequence

from oslo_config import cfg

from loader.catalogs.metadata_cache import Facts

# Group -> options.
Options = Mapping[str, Sequence[cfg.Opt]]

GROUP = "package_loader"

HOME_REGION = cfg.StrOpt("home_region", help="The region whose services are asked. By default any.")

FACTS: Options = {
    "engine": [
        cfg.StrOpt("packages_cache", help="The folder of the cache of packages."),
        cfg.BoolOpt(
            "enable_packages_cache", default=True, help="Whether to keep what was fetched."
        ),
    ]
}


def register(conf: cfg.ConfigOpts, options: Options) -> None:
    """Make options known, unless they are."""
    for group, in_group in options.items():
        for option in in_group:
            # Not left to oslo.config, which then forgets all values that it has read.
            if not _is_known(conf, group, option.dest):
                conf.register_opt(option, None if group == "DEFAULT" else group)


def _is_known(conf: cfg.ConfigOpts, group: str, name: str) -> bool:
    if group == "DEFAULT":
        return name in conf
    return group in conf and name in conf[group]


def facts(conf: cfg.ConfigOpts) -> Facts:
    """What was learnt of archives: beside the cache of packages, if there is one."""
    register(conf, FACTS)
    if not conf.engine.enable_packages_cache:
        return Facts()
    cache = conf.engine.packages_cache or pathlib.Path(
        tempfile.gettempdir(), "murano-packages-cache"
    )
    return Facts.shared(pathlib.Path(cache, "catalogs").absolute())
