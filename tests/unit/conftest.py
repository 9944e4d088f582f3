# SPDX-License-Identifier: Apache-2.0

"""Fixtures that unit tests share."""

import pathlib
from collections.abc import Iterator

import pytest

import loader
from tests.plugins import site
from tests.waits import waits

__all__ = ["site", "waits"]


@pytest.fixture
def cache(tmp_path: pathlib.Path) -> Iterator[loader.Cache]:
    """An empty cache."""
    with loader.Cache(tmp_path / "cache") as cache:
        yield cache
