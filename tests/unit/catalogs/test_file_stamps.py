# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import time

import pytest

from loader.catalogs.file_stamps import FileStamps

# More than a tick of a file system's clock.
TICK = 0.06


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "file"
    path.write_text("one")
    time.sleep(TICK)
    return path


def test_files_that_nobody_touches_are_unchanged(file: pathlib.Path) -> None:
    stamps = FileStamps([file, file.parent, file / "nothing"])

    assert stamps.unchanged
    assert stamps.surely_unchanged


def test_a_change_of_any_kind_is_seen(file: pathlib.Path) -> None:
    before = file.stat()
    times = (before.st_atime_ns, before.st_mtime_ns)
    for change in (
        lambda: file.write_text("two"),
        lambda: (file.write_text("six"), os.utime(file, ns=times)),
        lambda: file.chmod(0o600),
        lambda: (file.with_name("new").write_text("two"), file.with_name("new").replace(file)),
        file.unlink,
        lambda: file.write_text("two"),
    ):
        stamps = FileStamps([file])
        time.sleep(TICK)

        change()  # type: ignore[operator]

        assert not stamps.unchanged


def test_files_changed_a_moment_before_are_not_surely_unchanged(
    file: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("two")
    changed = file.stat().st_ctime_ns
    monkeypatch.setattr(time, "time_ns", lambda: changed + 1)

    stamps = FileStamps([file])

    assert stamps.unchanged
    assert not stamps.surely_unchanged


def test_the_target_of_a_link_does_not_count(file: pathlib.Path) -> None:
    link = file.with_name("link")
    link.symlink_to("file")
    stamps = FileStamps([link])
    time.sleep(TICK)

    file.write_text("two")
    assert stamps.unchanged

    link.unlink()
    link.symlink_to("elsewhere")
    assert not stamps.unchanged
