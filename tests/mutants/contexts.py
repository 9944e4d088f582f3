# SPDX-License-Identifier: Apache-2.0

"""A plug-in for pytest: write down which lines each test runs, also in programs that it starts.

Each process of the tests measures itself, and writes a file.
"""

import pathlib
import tempfile
from collections.abc import Generator

import coverage
import pytest

from tests.mutants import program_lines

_MEASURED = pytest.StashKey[coverage.Coverage]()
_PROGRAMS = pytest.StashKey[pathlib.Path]()
_TEST = pytest.StashKey[str]()
_NAME = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin to measure."""
    measured = coverage.Coverage(
        data_suffix=True, config_file=False, source=["glare_murano", "loader"], messages=False
    )
    config.stash[_PROGRAMS] = pathlib.Path(tempfile.mkdtemp(prefix="lines-", dir=pathlib.Path()))
    config.stash[_NAME] = program_lines.prepare(config.stash[_PROGRAMS].resolve())
    measured.start()
    config.stash[_MEASURED] = measured


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Name the test that runs from now on, with its own fixtures."""
    _name(item.config, item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(request: pytest.FixtureRequest) -> Generator[None, object, object]:
    """Name the file of tests that share a fixture, while it is set up; nothing for all tests."""
    before = request.config.stash[_TEST]
    _name(request.config, request.node.nodeid)
    try:
        return (yield)
    finally:
        _name(request.config, before)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write what was measured."""
    measured = config.stash[_MEASURED]
    measured.stop()
    data = measured.get_data()
    for test, files in program_lines.read(config.stash[_PROGRAMS]).items():
        data.set_context(test)
        data.add_lines(files)
    measured.save()


def _name(config: pytest.Config, test: str) -> None:
    config.stash[_TEST] = test
    config.stash[_MEASURED].switch_context(test)
    program_lines.name_test(config.stash[_NAME], test)
