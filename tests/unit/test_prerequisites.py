# SPDX-License-Identifier: Apache-2.0

"""What ``make services`` prints if a program of the distribution is missing."""

import pathlib
import re

import pytest

from tests import prerequisites

ROOT = pathlib.Path(__file__).parents[2]
LISTED = set(re.findall(r"^([a-z0-9-]+)", (ROOT / "bindep.txt").read_text(), re.M))


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "PROGRAMS", {"no-such-program": "a-package"})

    (line,) = (line for line in prerequisites.main().splitlines() if "no-such-program" in line)
    assert line.startswith("the program no-such-program is missing: install a-package")
    assert "bindep.txt" in line


def test_every_package_that_is_named_is_listed() -> None:
    source = pathlib.Path(str(prerequisites.__file__)).read_text()
    services = re.findall(r'"((?:mariadb-|postgresql|rabbitmq-)[a-z]*)"[,)]', source)

    assert {"mariadb-server", "postgresql", "rabbitmq-server"} <= set(services)
    assert {*services, *prerequisites.PROGRAMS.values()} <= LISTED
