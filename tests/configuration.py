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
