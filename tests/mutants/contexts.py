# SPDX-License-Identifier: Apache-2.0

"""A plug-in for pytest: write down which lines each test runs.

Each process of the tests measures itself, and writes a file. Processes that a test starts are not
measured.
"""

import coverage
import pytest

_MEASURED = pytest.StashKey[coverage.Coverage]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin to measure."""
    measured = coverage.Coverage(
        data_suffix=True, config_file=False, source=["glare_murano", "loader"], messages=False
    )
    measured.start()
    config.stash[_MEASURED] = measured


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Name the test that runs from now on, with its fixtures."""
    item.config.stash[_MEASURED].switch_context(item.nodeid)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write what was measured."""
    measured = config.stash[_MEASURED]
    measured.stop()
    measured.save()
