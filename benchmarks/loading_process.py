# SPDX-License-Identifier: Apache-2.0

"""A process for loading the application again and again.

Each line with the name of a configuration file makes a loader; the process prints
"ready". The next line starts loading; the process prints the number of downloaded
archives.
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
