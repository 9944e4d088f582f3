# SPDX-License-Identifier: Apache-2.0

"""What the tests of all hosts use."""

from collections.abc import Iterator

import pytest

from tests import web


@pytest.fixture(scope="session")
def service_port() -> Iterator[str]:
    """The port of a service that runs, for which DevStack waits."""
    with web.serving(b"") as url:
        yield url.rpartition(":")[2]
