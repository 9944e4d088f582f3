# SPDX-License-Identifier: Apache-2.0

"""Replacing a file, also if the power is cut."""

import errno
import os
import pathlib
import stat
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


def test_a_device_or_a_directory_is_not_replaced(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(FileExistsError, match="is not a file"):
            fs.replace(path, b"after")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o444])
def test_a_replaced_file_keeps_its_mode(path: pathlib.Path, mode: int) -> None:
    path.chmod(mode)
    fs.replace(path, b"after")
    assert path.read_bytes() == b"after"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_usual_mode(tmp_path: pathlib.Path) -> None:
    before = os.umask(0o027)
    try:
        fs.replace(tmp_path / "file", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.mark.parametrize("target", ["file", "missing"])
def test_a_link_stays_and_its_target_is_replaced(path: pathlib.Path, target: str) -> None:
    folder = path.parent / "links"
    folder.mkdir()
    (folder / "link").symlink_to(f"../{target}")
    (folder / "other").symlink_to("link")
    fs.replace(folder / "other", b"after")
    assert (folder / "other").readlink() == pathlib.Path("link")
    assert (folder / "link").readlink() == pathlib.Path(f"../{target}")
    assert path.with_name(target).read_bytes() == b"after"
    assert len(list(folder.iterdir())) == 2


def test_links_in_a_circle_are_an_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(OSError, match="symbolic links") as caught:
        fs.replace(tmp_path / "link", b"after")
    assert caught.value.filename == str(tmp_path / "link")


def test_an_error_names_the_link(path: pathlib.Path) -> None:
    link = path.with_name("link")
    link.symlink_to("none/file")
    with pytest.raises(FileNotFoundError) as caught:
        fs.replace(link, b"after")
    assert caught.value.filename == str(link)


def test_a_new_file_has_its_name_when_it_is_complete(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file"
    with fs.created(path) as file:
        file.write(b"content")
        assert not path.exists()
    assert path.read_bytes() == b"content"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_appears_meanwhile_is_not_replaced(path: pathlib.Path) -> None:
    new = path.with_name("new")
    with pytest.raises(FileExistsError), fs.created(new):
        new.write_bytes(b"of another process")
    with pytest.raises(FileExistsError), fs.created(path):
        pass
    assert new.read_bytes() == b"of another process"
    assert path.read_bytes() == b"before"
    assert sorted(path.parent.iterdir()) == [path, new]


def test_a_new_file_is_made_without_links(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", refuse)
    with fs.created(tmp_path / "file") as file:
        file.write(b"content")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"content"]


def test_an_error_names_the_file_and_leaves_nothing(tmp_path: pathlib.Path) -> None:
    def fill() -> None:
        raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OSError, match="full") as caught, fs.created(tmp_path / "file"):
        fill()
    assert caught.value.filename == str(tmp_path / "file")
    with pytest.raises(FileNotFoundError) as missing, fs.created(tmp_path / "none" / "file"):
        pass
    assert missing.value.filename == str(tmp_path / "none" / "file")
    assert list(tmp_path.iterdir()) == []
