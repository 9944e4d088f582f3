# SPDX-License-Identifier: Apache-2.0

import pytest

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
