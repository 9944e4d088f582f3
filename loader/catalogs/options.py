# SPDX-License-Identifier: Apache-2.0

"""Register the options of catalogues beside the options of Murano.

A catalogue's module lists its options as ``OPTIONS``. Murano and the loader read the same
configuration file. If Murano has already registered an option with the same name, Murano's
definition is kept.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from oslo_config import cfg, types

from loader import time_limits

# The name of a group -> its options.
Options = Mapping[str, Sequence[cfg.Opt]]

GROUP = "package_loader"


class Seconds(types.Float):
    """The type of an option that is a number of seconds.

    Unlike oslo.config's type ``Float``, it refuses NaN: a wait for NaN seconds never ends.
    """

    def __call__(self, value: Any) -> float | None:
        seconds: float | None = super().__call__(value)
        return None if seconds is None else time_limits.check(seconds, "the limit")


def register(conf: cfg.ConfigOpts, options: Options) -> None:
    """Register options; options that are registered already are skipped."""
    for group, in_group in options.items():
        registered = conf if group == "DEFAULT" else getattr(conf, group, ())
        for option in in_group:
            # If an option is registered again, oslo.config forgets all values that it has read.
            if option.dest not in registered:
                conf.register_opt(option, None if group == "DEFAULT" else group)
