# SPDX-License-Identifier: Apache-2.0

"""A process that loads the application again and again, as its input says.

A line that names a configuration file makes a loader; the process prints "ready".
The next line starts loading; the process prints the number of archives that the
loader has downloaded.
"""

import sys

from oslo_config import cfg

from benchmarks import closure
from loader import config


def main() -> None:
    """Load the application until the input ends."""
    while file := sys.stdin.readline().strip():
        conf = cfg.ConfigOpts()
        conf(["--config-file", file], project="loader")
        with config.package_loader(conf) as package_loader:
            print("ready", flush=True)
            sys.stdin.readline()
            closure.load(package_loader)
            print(package_loader.counters.downloads, flush=True)


if __name__ == "__main__":
    main()
