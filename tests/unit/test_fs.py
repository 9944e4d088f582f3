# SPDX-License-Identifier: Apache-2.0

"""Replacing a file, also if the power is cut."""

import errno
import os
import pathlib
from typing import Any

import pytest

from loader import fs


class _Calls:
    """Records calls to sync and to rename files, with the content at that time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[str, pathlib.Path, bytes]] = []
        self._sync = os.fsync
        monkeypatch.setattr(os, "fsync", self._record_sync)
        for name in ("rename", "replace"):
            monkeypatch.setattr(os, name, self._recording(getattr(os, name)))

    def _record_sync(self, file: int) -> None:
        path = pathlib.Path(f"/proc/self/fd/{file}").readlink()
        self.made.append(("sync", path, path.read_bytes()))
        self._sync(file)

    def _recording(self, rename: Any) -> Any:
        def record(source: pathlib.Path, target: pathlib.Path) -> None:
            self.made.append(("rename", pathlib.Path(source), pathlib.Path(source).read_bytes()))
            rename(source, target)

        return record


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "file").write_bytes(b"before")
    return tmp_path / "file"


def test_the_content_is_on_the_disk_before_the_name(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = _Calls(monkeypatch)

    fs.replace(path, b"after")

    ((_, new, _), _) = calls.made
    assert new.parent == path.parent
    assert new != path
    assert calls.made == [("sync", new, b"after"), ("rename", new, b"after")]
    assert path.read_bytes() == b"after"
    assert list(path.parent.iterdir()) == [path]


def test_the_old_file_stays_if_the_disk_fails(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(file: int) -> None:
        raise OSError(errno.EIO, "no disk")

    monkeypatch.setattr(os, "fsync", fail)

    with pytest.raises(OSError, match="no disk"):
        fs.replace(path, b"after")

    assert path.read_bytes() == b"before"
    assert list(path.parent.iterdir()) == [path]
