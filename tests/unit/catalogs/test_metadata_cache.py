# SPDX-License-Identifier: Apache-2.0

import pathlib

import pytest

from glare_murano.package import InvalidPackage, Limits
from loader.catalogs import spool
from loader.catalogs.metadata_cache import Fact, Facts
from loader.catalogs.spool import Archives
from tests import packages

FACT = Fact({"a": [1, None, "ü"]}, {"ETag": '"x"'})


def test_facts_are_found_by_later_processes(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "deep" / "facts"
    Facts(folder).put("key", FACT)

    assert Facts(folder).get("key") == FACT
    assert Facts(folder).get("another") is None
    assert folder.stat().st_mode & 0o077 == 0
    assert [path.suffix for path in folder.iterdir()] == [".json"]

    Facts(folder).put("key", Fact(2))
    assert Facts(folder).get("key") == Fact(2)
    Facts(folder).forget("key")
    assert Facts(folder).get("key") is None
    Facts(folder).forget("key")


def test_without_a_folder_facts_are_the_objects_own() -> None:
    facts = Facts()
    facts.put("key", FACT)

    assert facts.get("key") == FACT
    assert Facts().get("key") is None


@pytest.mark.parametrize("length", [0, 1, 20, -1])
def test_what_was_not_written_to_the_end_is_no_fact(tmp_path: pathlib.Path, length: int) -> None:
    Facts(tmp_path).put("key", FACT)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:length])

    assert Facts(tmp_path).get("key") is None


@pytest.mark.parametrize("text", ["[]", "{}", '{"key": "other"}', "[" * 100_000, "\0" * 50])
def test_what_another_wrote_there_is_no_fact(tmp_path: pathlib.Path, text: str) -> None:
    Facts(tmp_path).put("key", FACT)
    (file,) = tmp_path.iterdir()
    file.write_text(text)

    assert Facts(tmp_path).get("key") is None


def test_a_folder_that_cannot_be_written_is_told(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    facts = Facts(tmp_path / "file")

    facts.put("key", FACT)

    assert facts.get("key") == FACT
    assert "cannot be kept" in caplog.text


def test_what_was_downloaded_to_be_read_is_given_away_once() -> None:
    data = packages.package("org.app")
    kept = Archives()

    release = kept.add([data[:100], data[100:]], "here")

    assert (str(release), release.size) == ("org.app 1.0.0", len(data))
    assert b"".join(kept.take(release.digest) or ()) == data
    assert kept.take(release.digest) is None


def test_of_many_archives_the_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_MOST", 2)
    kept = Archives()

    releases = [kept.add([packages.package("org.app", f"1.{n}.0")], "x") for n in range(3)]
    kept.add([packages.package("org.app", "1.2.0")], "x")

    assert [bool(kept.take(release.digest)) for release in releases] == [False, True, True]


def test_what_is_too_large_is_not_downloaded_to_the_end() -> None:
    sent = 0

    def endless() -> object:
        nonlocal sent
        while True:
            sent += 100
            yield b"x" * 100

    with pytest.raises(InvalidPackage, match="archive-size"):
        Archives(Limits(archive_size=1000)).add(endless(), "x")  # type: ignore[arg-type]
    assert sent <= 1100
