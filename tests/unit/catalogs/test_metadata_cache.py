# SPDX-License-Identifier: Apache-2.0

import io
import pathlib

import pytest

from glare_murano.wire import Release
from loader.catalogs.metadata_cache import MetadataCache
from loader.catalogs.spool import read_release
from tests import packages


def _release(version: str = "1.10") -> Release:
    archive = packages.package("org.app", version, Require={"org.db": ">=1,<2"})
    return read_release(io.BytesIO(archive), "here")


RELEASE = _release()


def test_releases_are_found_by_later_processes(tmp_path: pathlib.Path) -> None:
    directory = tmp_path / "deep" / "metadata"
    MetadataCache(directory).put("key", RELEASE)

    assert MetadataCache(directory).get("key") == RELEASE
    assert MetadataCache(directory).get("another") is None
    assert directory.stat().st_mode & 0o077 == 0
    assert [path.suffix for path in directory.iterdir()] == [".json"]

    MetadataCache(directory).put("key", _release("2.0.0"))
    assert MetadataCache(directory).get("key") == _release("2.0.0")


def test_without_a_directory_releases_are_the_objects_own() -> None:
    cache = MetadataCache()
    cache.put("key", RELEASE)

    assert cache.get("key") == RELEASE
    assert MetadataCache().get("key") is None


@pytest.mark.parametrize("length", [0, 1, 20, -1])
def test_a_truncated_file_is_not_found(tmp_path: pathlib.Path, length: int) -> None:
    MetadataCache(tmp_path).put("key", RELEASE)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:length])

    assert MetadataCache(tmp_path).get("key") is None


@pytest.mark.parametrize(
    "text",
    ["[]", "{}", '{"key": "other"}', '{"key": "key", "release": {}}', "[" * 100_000, "\0" * 50],
)
def test_a_file_of_another_form_is_not_found(tmp_path: pathlib.Path, text: str) -> None:
    MetadataCache(tmp_path).put("key", RELEASE)
    (file,) = tmp_path.iterdir()
    file.write_text(text)

    assert MetadataCache(tmp_path).get("key") is None


def test_a_directory_that_cannot_be_written_is_logged(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = MetadataCache(tmp_path / "file")

    cache.put("key", RELEASE)

    assert cache.get("key") == RELEASE
    assert "cannot be kept" in caplog.text
