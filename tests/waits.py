# SPDX-License-Identifier: Apache-2.0

"""The waits between tries, which no test waits for."""

import pytest


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited between tries; nobody waits in these tests."""
    waited: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", waited.append)
    return waited
