# SPDX-License-Identifier: Apache-2.0

"""One process that has started, and loads the application when it gets a line.

It tells how many archives it has downloaded, and ends with its input.
"""

import sys

from oslo_config import cfg

from benchmarks import closure
from loader import config


def main() -> None:
    """Load the application through the loader that a file configures."""
    conf = cfg.ConfigOpts()
    conf(["--config-file", sys.argv[1]], project="loader")
    with config.package_loader(conf) as packages:
        print("ready", flush=True)
        sys.stdin.readline()
        closure.load(packages)
        print(packages.counters.downloads, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
