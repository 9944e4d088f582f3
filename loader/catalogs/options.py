# SPDX-License-Identifier: Apache-2.0

"""Register the options of catalogues beside the options of Murano.

A catalogue's module lists its options as ``OPTIONS``. If Murano has registered an option with
the same name, Murano's definition stays. Murano and the loader read the same file.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from oslo_config import cfg, types

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


def register(conf: cfg.ConfigOpts, options: Options) -> None:
    """Register options, except those that are registered already."""
    for group, in_group in options.items():
        registered = conf if group == "DEFAULT" else getattr(conf, group, ())
        for option in in_group:
            # If an option is registered again, oslo.config forgets all values that it has read.
            if option.dest not in registered:
                conf.register_opt(option, None if group == "DEFAULT" else group)
