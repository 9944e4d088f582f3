# SPDX-License-Identifier: Apache-2.0

"""Load a package and all that it requires, without an engine.

    python -m examples.load --config-file loader.conf org.example.wiki ">=1.0,<2"

It is configured as an engine is, by oslo.config; ``[glare]`` holds the
credentials. It shows what a program of your own needs: a loader, a package, its
requirements and its classes.
"""

import sys

from oslo_config import cfg

from glare_murano.package import GlareMuranoError, VersionSpec
from loader import PackageLoader, config
from loader.formats.base import Package

OPTIONS = [
    cfg.StrOpt("package", positional=True, required=True, help="FQN of the package."),
    cfg.StrOpt(
        "range", positional=True, required=False, default="*", help="Range of its versions."
    ),
]


def load_all(package_loader: PackageLoader, fqn: str, spec: VersionSpec) -> list[Package]:
    """A package, and all that it requires, in the order in which they were reached."""
    found: list[Package] = []
    queue = [(fqn, spec, "")]
    while queue:
        fqn, spec, required_by = queue.pop(0)
        package = package_loader.load_package(fqn, spec, required_by or None)
        if package not in found:
            found.append(package)
            requirer = f"{package.full_name} {package.version}"
            others = sorted(package.requirements.items())
            queue += [
                (name, VersionSpec.of(text), requirer) for name, text in others if name != fqn
            ]
    return found


def main() -> int:
    """Load what the command line names."""
    conf = cfg.ConfigOpts()
    conf.register_cli_opts(OPTIONS)
    try:
        conf(sys.argv[1:], project="loader")
        with config.package_loader(conf) as package_loader:
            for package in load_all(package_loader, conf.package, VersionSpec.of(conf.range)):
                print(
                    f"{package.full_name} {package.version}: {', '.join(sorted(package.classes))}"
                )
            counters = package_loader.counters
        print(f"{counters.requests} requests, {counters.downloads} archives downloaded")
    except (GlareMuranoError, cfg.Error) as error:
        print(f"load: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
