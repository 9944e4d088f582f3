# SPDX-License-Identifier: Apache-2.0

"""The package type of the examples, installed as its setup.cfg says."""

import configparser

from examples import demo
from tests.plugins import Site

FOLDER = demo.PACKAGES.parent / "package_type"
PACKAGE = FOLDER / "package"


def install(site: Site) -> None:
    """Install the distribution; its modules are imported from ``FOLDER``."""
    read = configparser.ConfigParser(delimiters="=")
    read.optionxform = str  # type: ignore[assignment, method-assign]
    read.read(FOLDER / "setup.cfg")
    points = {
        group: dict(line.split(" = ") for line in lines.strip().splitlines())
        for group, lines in read["options.entry_points"].items()
    }
    site.install(read["metadata"]["name"], read["metadata"]["version"], points, {})
