# SPDX-License-Identifier: Apache-2.0

from collections.abc import Iterator

import pytest

from glare_murano.package import InvalidPackage, Limits
from loader.catalogs import spool
from loader.catalogs.spool import Spool
from tests import packages


def test_a_downloaded_archive_is_given_away_once() -> None:
    data = packages.package("org.app")
    kept = Spool()

    release = kept.add([data[:100], data[100:]], "here")

    assert (str(release), release.size) == ("org.app 1.0.0", len(data))
    assert b"".join(kept.take(release.digest) or ()) == data
    assert kept.take(release.digest) is None


def test_of_many_archives_the_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_MAX_FILES", 2)
    kept = Spool()

    releases = [kept.add([packages.package("org.app", f"1.{n}.0")], "x") for n in range(3)]
    kept.add([packages.package("org.app", "1.2.0")], "x")

    assert [bool(kept.take(release.digest)) for release in releases] == [False, True, True]


def test_an_archive_that_is_too_large_is_not_downloaded_to_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spool, "DEFAULT_LIMITS", Limits(archive_size=1000))
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while True:
            sent += 100
            yield b"x" * 100

    with pytest.raises(InvalidPackage, match="archive-size"):
        Spool().add(endless(), "x")
    assert sent <= 1100
