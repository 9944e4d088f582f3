# SPDX-License-Identifier: Apache-2.0

"""Fixtures that unit tests share."""

import pathlib
import tempfile
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


@pytest.fixture
def temporary(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """The only directory for temporary files; it is empty after each test."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    yield path
    assert list(path.iterdir()) == []
