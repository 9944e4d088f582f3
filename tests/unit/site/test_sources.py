# SPDX-License-Identifier: Apache-2.0

"""Where the packages of a catalogue come from. A service that lies needs a stand-in."""

import pathlib
from collections.abc import Iterator
from typing import Any, cast

from glare_murano.selection import Selection
from loader.catalogs.repository import Repository
from loader.catalogs.stored_package import StoredPackage
from loader.site import rendering, sources
from tests import packages


class _Repository:
    """A service that sends other archives than it lists."""

    name = "a service"

    def packages(self, selection: Selection) -> Iterator[StoredPackage]:
        yield StoredPackage.from_json(
            {
                **{"id": "1", "name": "org.db", "version": "1.0.0", "status": "active"},
                **{"visibility": "public", "owner": "one", "archive": {"sha256": "0" * 64}},
            },
            self.name,
        )

    def download(self, package: StoredPackage) -> Iterator[bytes]:
        yield packages.package("org.db")


def test_an_archive_with_another_digest_than_listed_is_not_shown(tmp_path: pathlib.Path) -> None:
    repository: Any = _Repository()
    source = sources.Service(cast(Repository, repository), "one", "packages")
    report = rendering.render(source, tmp_path / "site")
    ((place, (problem,)),) = report.unreadable
    assert place == "org.db 1.0.0"
    assert "digest" in problem or "SHA-256" in problem
    # The next rendering tries again.
    assert rendering.render(source, tmp_path / "site").read == 1
