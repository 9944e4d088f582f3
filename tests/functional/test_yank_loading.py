# SPDX-License-Identifier: Apache-2.0

"""Yanked releases of the real Glare, in the loader, lock files and the offline index."""

import pathlib
from collections.abc import Callable

import pytest

import loader
from loader.catalogs.base import Catalog
from loader.catalogs.directory import DirectoryCatalog
from loader.catalogs.glare import GlareCatalog
from tests import packages
from tests.functional.client import Client

_REASON = "loses data"
_WIKI = {"org.wiki": "1", "org.exact": "1"}


@pytest.fixture(params=["one query", "by level"])
def catalogs(
    catalog: GlareCatalog, tmp_path: pathlib.Path, request: pytest.FixtureRequest
) -> list[Catalog]:
    """Glare, which plans by itself, unless there is another catalogue as well."""
    (tmp_path / "empty").mkdir()
    empty = [DirectoryCatalog(tmp_path / "empty")] if request.param == "by level" else []
    return [catalog, *empty]


@pytest.fixture
def yank(glare: Client, name: str) -> Callable[[str], None]:
    """Publish org.wiki, org.exact and two versions of their requirement; yank the newer."""
    older, newer = (
        glare.publish(name, version, packages.package(name, version))["id"]
        for version in ("1.1.0", "1.2.0")
    )
    assert older != newer
    for fqn, range_ in (("org.wiki", ">=1"), ("org.exact", "1.2.0")):
        glare.publish(fqn, "1.0.0", packages.package(fqn, Require={name: range_}))

    def change(reason: str) -> None:
        assert glare.set(newer, "yanked", reason).status_code == 200

    return change


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [
        record.getMessage() for record in caplog.records if "was yanked" in record.getMessage()
    ]
    caplog.clear()
    return found


def test_a_range_takes_the_newest_release_that_is_not_yanked(
    catalogs: list[Catalog],
    cache: loader.Cache,
    name: str,
    yank: Callable[[str], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    yank(_REASON)
    packages_ = loader.PackageLoader(catalogs, cache)

    versions = {str(p.version) for p in packages_.load_all("org.exact") if p.full_name == name}
    assert versions == {"1.2.0"}
    assert _warnings(caplog) == [
        f"Package {name} 1.2.0 of {catalogs[0].name} is used, but was yanked: {_REASON}"
    ]

    # Another range does not take it, although it is loaded by now.
    assert str(packages_.load(name, ">=1").version) == "1.1.0"
    assert str(packages_.load_class_package(f"{name}.Thing", "1").version) == "1.1.0"
    with pytest.raises(loader.NoSuchPackage, match=r"\(available: 1.1.0; yanked: 1.2.0\)"):
        packages_.load(name, ">=1.2")
    assert _warnings(caplog) == []
    # The version of an object's header is missing: a yanked one is no substitute.
    assert str(packages_.load_object_package(name, "1.2.7").version) == "1.1.0"


def test_a_pinned_release_is_used_with_a_warning(
    catalogs: list[Catalog],
    cache: loader.Cache,
    name: str,
    yank: Callable[[str], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    yank(_REASON)

    packages_ = loader.PackageLoader(catalogs, cache, {name: ["1.2.0"]})

    loaded = {p.full_name: str(p.version) for p in packages_.load_all("org.wiki")}
    assert loaded[name] == "1.2.0"
    assert len(_warnings(caplog)) == 1
    # The new pins mean the same.
    both = loader.PackageLoader(catalogs, cache, {name: ["1.1.0", "1.2.0"]})
    both.load_all("org.wiki")
    assert both.pins.dump()[name] == ["1.1.0", "1.2.0"]


def test_a_locked_release_is_used_with_a_warning(
    catalog: GlareCatalog,
    cache: loader.Cache,
    name: str,
    yank: Callable[[str], None],
    tmp_path: pathlib.Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    lock = loader.Lock.create(catalog, _WIKI)
    yank(_REASON)

    # Locked before it was yanked: the catalogue says so when the archive is fetched.
    before = loader.PackageLoader(loader.LockedCatalog(lock, catalog), tmp_path / "other")
    assert str(before.load(name, ">=1").version) == "1.2.0"
    assert _warnings(caplog) == [f"{name} 1.2.0 is locked, but was yanked: {_REASON}"]

    # Locked afterwards: the lock file has the reason, and each range gets its own version.
    loader.Lock.create(catalog, _WIKI).save(tmp_path / "packages.lock")
    read = loader.Lock.load(tmp_path / "packages.lock")
    assert [str(r.version) for r in read.releases if r.fqn == name] == ["1.1.0", "1.2.0"]
    locked = loader.PackageLoader(loader.LockedCatalog(read, catalog), cache)
    locked.load_all("org.exact")
    assert str(locked.load(name, ">=1").version) == "1.1.0"
    assert f"Package {name} 1.2.0 of the lock file is used, but was yanked: {_REASON}" in _warnings(
        caplog
    )


def test_a_recorded_release_that_was_yanked_is_not_chosen_offline(
    glare: Client,
    project: str,
    cache: loader.Cache,
    name: str,
    yank: Callable[[str], None],
) -> None:
    def load(url: str, range_: str) -> str:
        catalog = GlareCatalog(glare.session(), project_id=project, endpoint=url, attempts=1)
        catalog.name = "Glare"
        index = loader.OfflineIndex([catalog], cache, project)
        packages_ = loader.PackageLoader([catalog], cache, offline_index=index)
        return str(packages_.load(name, range_).version)

    nowhere = "http://127.0.0.1:9"
    assert [load(glare.url, range_) for range_ in ("1", "1.1")] == ["1.2.0", "1.1.0"]
    assert load(nowhere, "1") == "1.2.0"

    yank(_REASON)
    assert load(glare.url, "1.2.0") == "1.2.0"
    assert [load(nowhere, range_) for range_ in ("1", "1.2.0")] == ["1.1.0", "1.2.0"]

    yank("")
    assert load(glare.url, "1") == "1.2.0"
    assert load(nowhere, "1") == "1.2.0"
