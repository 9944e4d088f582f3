# SPDX-License-Identifier: Apache-2.0

"""Settings of all tests, and a process of their own for the integration tests."""

import pathlib
import signal
from collections.abc import Generator, Sequence

import hypothesis
import pytest

from tests import effort

# Glare and Murano register options of the same names, and so cannot be in one process.
INTEGRATION = pathlib.Path(__file__).parent / "integration"
COMMAND = "python -m pytest tests/integration"

hypothesis.settings.register_profile(
    "glare-murano",
    deadline=None,
    # Other processes may slow the machine down.
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("glare-murano")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to run the integration tests in one process with others, and let Ctrl-C work."""
    # A shell starts a job in the background with SIGINT ignored, and all its processes with it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    named = _names_integration(config)
    if any(named) and not all(named):
        raise pytest.UsageError(
            f"tests/integration needs a process of its own: run '{COMMAND}', and the others before "
            f"or after it"
        )


def pytest_ignore_collect(collection_path: pathlib.Path, config: pytest.Config) -> bool | None:
    """Leave out the integration tests, unless the command names them."""
    return (collection_path == INTEGRATION and not any(_names_integration(config))) or None


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Give each of the full tests more time than pyproject.toml does."""
    if effort.FULL:
        for item in items:
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(effort.FULL_SECONDS))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test of services that is skipped: a missing service is an error."""
    report = yield
    if report.skipped and item.get_closest_marker("services"):
        report.outcome = "failed"
        report.longrepr = f"{item.name} was skipped, but tests of services must run"
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say how to run the integration tests, where they were left out."""
    if any(path in INTEGRATION.parents for path in _named(config)):
        terminalreporter.write_line(
            f"tests/integration was left out, since it needs a process of its own: run '{COMMAND}'"
        )


def _names_integration(config: pytest.Config) -> list[bool]:
    """Return, for each path of a command, if it lies in tests/integration."""
    return [path.is_relative_to(INTEGRATION) for path in _named(config)]


def _named(config: pytest.Config) -> list[pathlib.Path]:
    """Return the files and directories that a command names."""
    folder = config.invocation_params.dir
    return [(folder / argument.split("::")[0]).resolve() for argument in config.args]
