# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import time

import pytest

from loader.catalogs.file_stamps import Snapshot

# More than a tick of a file system's clock.
TICK = 0.06


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "file"
    path.write_text("one")
    time.sleep(TICK)
    return path


def test_what_nobody_touches_stands(file: pathlib.Path) -> None:
    snapshot = Snapshot([file, file.parent, file / "nothing"])

    assert snapshot.stands
    assert snapshot.stands_for_sure


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
        snapshot = Snapshot([file])
        time.sleep(TICK)

        change()  # type: ignore[operator]

        assert not snapshot.stands


def test_what_was_changed_a_moment_before_stands_but_not_for_sure(
    file: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("two")
    changed = file.stat().st_ctime_ns
    monkeypatch.setattr(time, "time_ns", lambda: changed + 1)

    snapshot = Snapshot([file])

    assert snapshot.stands
    assert not snapshot.stands_for_sure


def test_a_link_is_what_it_is_and_not_what_it_leads_to(file: pathlib.Path) -> None:
    link = file.with_name("link")
    link.symlink_to("file")
    snapshot = Snapshot([link])
    time.sleep(TICK)

    file.write_text("two")
    assert snapshot.stands

    link.unlink()
    link.symlink_to("elsewhere")
    assert not snapshot.stands
