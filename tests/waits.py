# SPDX-License-Identifier: Apache-2.0

"""The waits between attempts, which tests skip."""

import pytest


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of each wait between attempts; the tests do not wait."""
    waited: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", waited.append)
    return waited
