# SPDX-License-Identifier: Apache-2.0

"""The page of supported versions has the versions of the tests' lists."""

import configparser
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "doc" / "source" / "start" / "supported.rst"
MAKEFILE = (ROOT / "Makefile").read_text()
FORMER = "tests/functional/glance/glance-2025.2.txt"

# Software of the table, and where its version is listed.
PINNED = [
    ("Glance", "glance", "constraints-glance.txt"),
    ("Glance", "glance", FORMER),
    ("Glare", "glare", "constraints.txt"),
    ("Murano", "murano", "constraints.txt"),
    ("yaql", "yaql", "constraints.txt"),
    ("Keystone", "keystone", "constraints-glance.txt"),
    ("Keystone", "keystone", "tests/functional/swift.txt"),
    ("Swift", "swift", "tests/functional/swift.txt"),
    ("Heat", "openstack-heat", "tests/integration/heat.txt"),
    ("murano-dashboard", "murano-dashboard", "tests/integration/dashboard.txt"),
    ("python-muranoclient", "python-muranoclient", "constraints.txt"),
    ("openstack", "python-openstackclient", "constraints.txt"),
]


def _rows() -> list[tuple[str, str]]:
    """Return the rows of the table of tested software: the name and the version."""
    table = PAGE.read_text().split("\nSoftware ")[1].split("\n\n")[0]
    return re.findall(r"^(\S+) +([\d.]+(?:, [\d.]+)*) ", table, re.MULTILINE)


def _version(distribution: str, file: str) -> str:
    (version,) = re.findall(rf"^{distribution}==(\S+)$", (ROOT / file).read_text(), re.MULTILINE)
    return version


@pytest.mark.parametrize(("name", "distribution", "file"), PINNED)
def test_a_version_is_the_tested_one(name: str, distribution: str, file: str) -> None:
    assert (name, _version(distribution, file)) in _rows()


def test_every_row_is_checked() -> None:
    # The distribution's own packages have no list.
    others = {"Python", "MariaDB", "PostgreSQL", "RabbitMQ", "Debian"}
    assert {name for name, _ in _rows()} == others | {name for name, _, _ in PINNED}


def test_glance_has_the_two_tested_releases() -> None:
    versions = [_version("glance", file) for file in ("constraints-glance.txt", FORMER)]
    assert [version for name, version in _rows() if name == "Glance"] == versions


def test_the_versions_of_python_are_those_of_the_tests() -> None:
    tested = [version for name, rows in _rows() if name == "Python" for version in rows.split(", ")]
    (pythons,) = re.findall(r"^PYTHONS := (.+)$", MAKEFILE, re.MULTILINE)
    assert tested == pythons.split()


def test_the_needed_versions_are_those_of_setup_cfg() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = setup["extras"]
    text = PAGE.read_text()

    assert setup["metadata"]["python_requires"] == ">=3.11"
    assert "Python 3.11 or newer" in text
    assert "glance>=31\n" in extras["glance"]
    assert re.search(r"^Glance +31 or newer", text, re.MULTILINE)
    assert "glare>=5.0.1\n" in extras["glare"]
    assert re.search(r"^Glare +5\.0\.1 or newer", text, re.MULTILINE)
    assert "murano>=16.0.0,<17\n" in extras["engine"]
    assert "yaql>=3" in extras["engine"]
    assert "Murano 16, yaql 3 or newer" in text
    assert "python-openstackclient>=6.0\n" in extras["cli"]
    assert "python-openstackclient 6.0 or newer" in text
