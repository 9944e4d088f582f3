# SPDX-License-Identifier: Apache-2.0

"""Load a package with all packages that it requires, without an engine.

    python -m examples.load --config-file loader.conf org.example.wiki ">=1.0,<2"

It has the configuration of an engine, with credentials in ``[glare]``, and prints
the packages with their classes.
"""

import sys

from oslo_config import cfg

from loader import GlareMuranoError, config

OPTIONS = [
    cfg.StrOpt("package", positional=True, required=True, help="FQN of the package."),
    cfg.StrOpt(
        "range", positional=True, required=False, default="*", help="Range of its versions."
    ),
]


def main() -> int:
    """Load the package of the command line."""
    conf = cfg.ConfigOpts()
    conf.register_cli_opts(OPTIONS)
    try:
        conf(sys.argv[1:], project="loader")
        with config.package_loader(conf) as package_loader:
            for package in package_loader.load_all(conf.package, conf.range):
                classes = ", ".join(sorted(package.classes))
                print(f"{package.full_name} {package.version}: {classes}")
            counters = package_loader.counters
        print(f"{counters.requests} requests, {counters.downloads} archives downloaded")
    except (GlareMuranoError, cfg.Error) as error:
        print(f"load: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
