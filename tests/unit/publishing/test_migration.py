# SPDX-License-Identifier: Apache-2.0

"""Packages that no real Murano has: listed twice, or with another archive."""

import pathlib
from collections.abc import Iterator

from loader.counters import Counters
from loader.publishing import migration
from loader.publishing.migration import Result, SourcePackage
from loader.transport.adapter import ServiceAdapter
from tests import packages


class _Murano(ServiceAdapter):
    def __init__(self, **archives: bytes) -> None:
        self.name, self._archives, self._counters = "Murano", archives, Counters()

    def download(self, path: str, label: str) -> Iterator[bytes]:
        return iter([self._archives[path.split("/")[-2]]])


def _listed(package_id: str, fqn: str = "org.a", owner: str = "project") -> SourcePackage:
    return SourcePackage(package_id, fqn, owner, is_public=False, is_enabled=True, fields={})


def _read(
    client: _Murano, folder: pathlib.Path, *listed: SourcePackage
) -> list[tuple[Result, str]]:
    return [(entry.result, entry.reason) for entry in migration.read(client, listed, folder)]


def test_a_package_that_is_listed_twice_is_migrated_once(tmp_path: pathlib.Path) -> None:
    client = _Murano(one=packages.package("org.a"))
    found = _read(client, tmp_path, _listed("one"), _listed("one"))
    assert found == [(Result.READY, "")]


def test_of_two_packages_of_a_version_the_second_is_refused(tmp_path: pathlib.Path) -> None:
    one, two = packages.package("org.a"), packages.package("org.a", Author="Somebody else")
    listed = [_listed("one"), _listed("two"), _listed("three", owner="another")]
    found = _read(_Murano(one=one, two=two, three=two), tmp_path, *listed)
    assert [result for result, _ in found] == [Result.READY, Result.REFUSED, Result.READY]
    assert "org.a 1.0.0 twice in Murano, as one and two" in found[1][1]


def test_an_archive_of_another_package_is_refused(tmp_path: pathlib.Path) -> None:
    found = _read(_Murano(one=packages.package("org.b")), tmp_path, _listed("one"))
    assert found == [(Result.REFUSED, "its archive contains org.b 1.0.0")]
