# SPDX-License-Identifier: Apache-2.0

"""Configurations that were read from a file."""

import pathlib
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg


def read(file: pathlib.Path, groups: Mapping[str, Mapping[str, Any]]) -> cfg.ConfigOpts:
    """Write groups of options into a file, and read it."""
    lines = []
    for group, values in groups.items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in values.items())]
    file.write_text("\n".join(lines))
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[str(file)])
    return conf
