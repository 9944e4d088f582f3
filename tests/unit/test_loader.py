# SPDX-License-Identifier: Apache-2.0

"""The package loader: its arguments, whole closures, and use after it is closed."""

import concurrent.futures
import pathlib
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import pytest
from keystoneauth1 import session as ksa_session

import loader
from glare_murano.package import Version, VersionSpec
from glare_murano.wire import Answer, Query, Release
from loader import resolution
from tests import packages
from tests.unit.published import Packages, Shelf

_FOUND: Packages = {
    "io.murano": {"0.1.0": {}},
    "org.db": {version: {"io.murano": "*"} for version in ("1.0.0", "1.2.0", "2.0.0")},
    "org.log": {"1.0.0": {"io.murano": "*"}},
    "org.shop": {"1.0.0": {"io.murano": "*", "org.db": "2"}},
    "org.wiki": {"1.0.0": {"io.murano": "*", "org.db": ">=1,<2", "org.shop": "*"}},
}


@pytest.fixture
def directory(tmp_path: pathlib.Path) -> loader.DirectoryCatalog:
    """A directory of archives."""
    for fqn, versions in _FOUND.items():
        for version, required in versions.items():
            file = tmp_path / "packages" / f"{fqn}-{version}.zip"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(packages.package(fqn, version, Require=required))
    return loader.DirectoryCatalog(tmp_path / "packages")


@pytest.mark.parametrize(
    ("ranges", "version"), [((), "2.0.0"), (("<2",), "1.2.0"), ((VersionSpec.of("<2"),), "1.2.0")]
)
def test_a_range_is_a_string_or_a_range_or_any(
    directory: loader.DirectoryCatalog, tmp_path: pathlib.Path, ranges: Any, version: str
) -> None:
    def open_loader() -> loader.PackageLoader:
        return loader.PackageLoader(directory, tmp_path / "cache")

    found = [
        open_loader().load("org.db", *ranges),
        open_loader().load_object_package("org.db", *ranges),
        open_loader().load_class_package("org.db.Thing", *ranges),
        open_loader().load_all("org.db", *ranges)[0],
    ]

    assert [str(package.version) for package in found] == [version] * 4


def test_one_catalogue_is_accepted_for_a_list_and_a_path_for_a_cache(
    directory: loader.DirectoryCatalog, tmp_path: pathlib.Path
) -> None:
    for cache in (tmp_path / "cache", str(tmp_path / "cache"), loader.Cache(tmp_path / "cache")):
        for catalogs in (directory, [directory], iter([directory])):
            with loader.PackageLoader(catalogs, cache) as package_loader:
                assert package_loader.load("org.log")
            cache = tmp_path / "cache"
    assert (tmp_path / "cache" / "archives").is_dir()
    lock = loader.Lock.create(directory, {"org.log": "*"})
    assert loader.Lock.create([directory], {"org.log": VersionSpec.of("*")}) == lock
    assert list(loader.LockedCatalog(lock, directory).fetch(lock.releases[1]))


@pytest.fixture
def package_loader(
    directory: loader.DirectoryCatalog, tmp_path: pathlib.Path
) -> Iterator[loader.PackageLoader]:
    with loader.PackageLoader(directory, tmp_path / "cache") as package_loader:
        yield package_loader


def _titles(found: Iterable[loader.Package]) -> list[str]:
    return [f"{package.full_name} {package.version}" for package in found]


def test_load_all_returns_each_version_of_the_closure_once(
    package_loader: loader.PackageLoader,
) -> None:
    found = package_loader.load_all("org.wiki", "1")

    assert _titles(found) == [
        "org.wiki 1.0.0",
        "io.murano 0.1.0",
        "org.db 1.2.0",
        "org.shop 1.0.0",
        "org.db 2.0.0",
    ]
    assert package_loader.load_all("org.wiki", "1") == found
    assert package_loader.load("org.db", "1") is found[2]
    assert package_loader.pins.dump()["org.db"] == ["1.2.0", "2.0.0"]


class _Counting(Shelf):
    """A catalogue that answers dependency queries, and counts requests."""

    gives_batches = True
    queries = batches = 0
    archives: Mapping[str, bytes]

    def resolve(self, query: Query) -> Answer | None:
        self.queries += 1
        resolved = resolution.by_level([Shelf(self._releases)], query)
        releases = tuple((choice.release, choice.demands) for choice in resolved.chosen)
        return Answer(releases, resolved.unsatisfied, resolved.undefined)

    def batch(self, releases: Collection[Release]) -> Iterator[tuple[Release, bytes]]:
        self.batches += 1
        for release in releases:
            yield release, self.archives[release.digest]


def test_load_all_takes_one_query_and_one_batch(
    directory: loader.DirectoryCatalog, tmp_path: pathlib.Path
) -> None:
    counting = _Counting(directory.releases_of(_FOUND))
    counting.archives = {r.digest: b"".join(directory.fetch(r)) for r in counting._releases}

    with loader.PackageLoader(counting, tmp_path / "cache") as package_loader:
        assert len(package_loader.load_all("org.wiki")) == 5
        assert package_loader.counters.downloads == 5
    assert (counting.queries, counting.batches) == (1, 1)


def test_load_all_follows_a_requirement_on_another_version_of_the_same_package(
    tmp_path: pathlib.Path,
) -> None:
    for version, required in {"1.0.0": "*", "2.0.0": "1"}.items():
        content = packages.content("org.db", version, Require={"org.db": required})
        packages.write(tmp_path / "packages" / version, content)
    packages.write(tmp_path / "packages" / "core", packages.content("io.murano", "0.1.0"))
    directory = loader.DirectoryCatalog(tmp_path / "packages")

    with loader.PackageLoader(directory, tmp_path / "cache") as package_loader:
        found = package_loader.load_all("org.db", "2")

    assert _titles(found) == ["org.db 2.0.0", "io.murano 0.1.0", "org.db 1.0.0"]


def test_load_all_reports_every_missing_package(tmp_path: pathlib.Path) -> None:
    some = {
        "org.wiki": {"org.db": ">=3", "org.log": ">=3", "org.shop": "*"},
        "org.shop": {"org.db": ">=3", "org.none": "1"},
        "org.db": {"io.murano": "0"},
    }
    for fqn, required in some.items():
        content = packages.content(fqn, Require={"io.murano": "*", **required})
        packages.write(tmp_path / fqn, content)
    directory = loader.DirectoryCatalog(tmp_path)

    with (
        loader.PackageLoader(directory, tmp_path / "cache") as package_loader,
        pytest.raises(loader.NoSuchPackage) as missing,
    ):
        package_loader.load_all("org.wiki")

    assert missing.value.fqn == "io.murano"
    assert [other.fqn for other in missing.value.others] == ["org.db", "org.log", "org.none"]
    assert str(missing.value).endswith(
        "; also missing: package org.db in the range >=3, required by org.wiki 1.0.0; "
        "package org.log in the range >=3, required by org.wiki 1.0.0; "
        "package org.none in the range 1, required by org.shop 1.0.0"
    )


@pytest.mark.parametrize(
    ("catalogs", "message"),
    [
        ("/packages", r"'/packages' is not a catalogue.* DirectoryCatalog\('/packages'\)"),
        (pathlib.Path("/packages"), r"not a catalogue.* DirectoryCatalog\('/packages'\)"),
        (["/packages"], r"'/packages' is not a catalogue.* DirectoryCatalog\('/packages'\)"),
        (ksa_session.Session(), r"Session object .* is not a catalogue.* GlareCatalog\(session\)"),
        (7, "7 is not a catalogue"),
    ],
)
def test_a_wrong_catalogue_is_refused(tmp_path: pathlib.Path, catalogs: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        loader.PackageLoader(catalogs, tmp_path / "cache")
    with pytest.raises(TypeError, match=message):
        loader.Lock.create(catalogs, {"org.db": "1"})
    assert not (tmp_path / "cache").exists()


def test_a_wrong_session_or_cache_is_refused(directory: loader.DirectoryCatalog) -> None:
    wrong: Any = "token"
    with pytest.raises(TypeError, match="'token' is not a keystoneauth session"):
        loader.PackageLoader(session=wrong)
    with pytest.raises(ValueError, match="needs catalogues, or a session"):
        loader.PackageLoader()
    with pytest.raises(TypeError, match="'token' is not a keystoneauth session"):
        loader.GlareCatalog(wrong)
    wrong = 7
    with pytest.raises(TypeError, match="cache must be a path, not 7"):
        loader.PackageLoader(directory, wrong)


def test_pins_may_be_given_as_a_table(
    directory: loader.DirectoryCatalog, tmp_path: pathlib.Path
) -> None:
    pins = {"org.db": ["1.0.0"]}
    with loader.PackageLoader(directory, tmp_path / "cache", pins) as pinned:
        assert str(pinned.load("org.db").version) == "1.0.0"


def test_requirements_that_are_no_mapping_are_refused(directory: loader.DirectoryCatalog) -> None:
    wrong: Any = ["org.db"]
    with pytest.raises(TypeError, match=r"must be a mapping such as .* not \['org.db'\]"):
        loader.Lock.create(directory, wrong)


def test_a_message_says_that_there_is_no_catalogue(tmp_path: pathlib.Path) -> None:
    with (
        loader.PackageLoader([], tmp_path / "cache") as without,
        pytest.raises(loader.NoSuchPackage, match="found in no catalogue at all"),
    ):
        without.load("org.db")


@pytest.mark.parametrize("name", ["", "org db", None, 7])
def test_a_wrong_name_is_refused(package_loader: loader.PackageLoader, name: Any) -> None:
    for method in (
        package_loader.load,
        package_loader.load_all,
        package_loader.load_object_package,
        package_loader.load_class_package,
    ):
        with pytest.raises(loader.InvalidName, match="is not a valid name: expected"):
            method(name)


def test_a_package_missing_in_a_directory_is_reported_with_its_remedy(
    package_loader: loader.PackageLoader,
) -> None:
    with pytest.raises(loader.NoSuchPackage) as missing:
        package_loader.load("org.nothing", "1")

    assert str(missing.value).endswith(
        "; check the name; or add a version in the range to the directory, unpacked or as a ZIP "
        "file; or change the range"
    )


@pytest.mark.parametrize("wrong", [1, 1.1, Version("1.0.0"), "1..2", ["1"]])
def test_a_wrong_range_is_refused(package_loader: loader.PackageLoader, wrong: Any) -> None:
    for call in (
        lambda: package_loader.load("org.db", wrong),
        lambda: package_loader.load_all("org.db", wrong),
        lambda: package_loader.load_object_package("org.db", wrong),
        lambda: package_loader.load_class_package("org.db.Thing", wrong),
    ):
        with pytest.raises(loader.InvalidRange, match="is not a valid range"):
            call()


def test_a_closed_loader_raises_a_clear_error(
    directory: loader.DirectoryCatalog, tmp_path: pathlib.Path
) -> None:
    with loader.PackageLoader(directory, tmp_path / "cache") as package_loader:
        package = package_loader.load("org.log")
        assert package.get_class("org.log.Thing")

    package_loader.close()
    for call in (
        lambda: package_loader.load("org.log"),
        lambda: package_loader.load_all("org.log"),
        lambda: package_loader.load_object_package("org.log"),
        lambda: package_loader.load_class_package("org.log.Thing"),
        package_loader.__enter__,
        lambda: package.get_class("org.log.Thing"),
        lambda: package.get_resource("text"),
        lambda: package.logo,
    ):
        with pytest.raises(loader.LoaderError, match="closed"):
            call()
    assert package_loader.counters.downloads == 2
    assert package_loader.pins.dump() == {"org.log": ["1.0.0"]}


def test_public_objects_have_a_useful_repr(
    directory: loader.DirectoryCatalog, tmp_path: pathlib.Path
) -> None:
    lock = loader.Lock.create(directory, {"org.log": "1"})
    query = Query((("org.log", VersionSpec.of("1")), ("org.none", VersionSpec.of("2"))))
    with loader.PackageLoader(directory, tmp_path / "cache") as package_loader:
        assert repr(package_loader).endswith("packages: no package loaded>")
        package = package_loader.load("org.log")

        assert repr(package_loader) == f"<PackageLoader from {directory.name}: org.log 1.0.0>"
        assert repr(package) == "<MuranoPLPackage org.log 1.0.0>"
    assert repr(package_loader).endswith("packages: closed>")
    assert repr(package_loader.pins) == "Pins({'org.log': ['1.0.0']})"
    assert repr(lock) == "<Lock of org.log 1: io.murano 0.1.0, org.log 1.0.0>"
    resolved = resolution.resolve([directory], query)
    assert repr(resolved) == ("<Resolution: io.murano 0.1.0, org.log 1.0.0; missing: org.none 2>")
    assert repr(resolution.Resolution()) == "<Resolution: nothing>"
    assert repr(loader.Counters(hits=2)).startswith("Counters(requests=0, downloads=0, bytes=0, h")


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert loader.GlareCatalog.__name__ == "GlareCatalog"
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        loader.Nothing  # noqa: B018


def test_several_threads_may_load_packages(tmp_path: pathlib.Path) -> None:
    names = [f"org.several{number}" for number in range(48)]
    for fqn in names:
        file = tmp_path / "packages" / f"{fqn}.zip"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(packages.package(fqn, "1.0.0"))
    file.with_name("core.zip").write_bytes(packages.package("io.murano", "0.1.0"))
    # Reading many pins takes long enough for another thread to add one.
    pins = {f"org.pinned{number}": ["1.0.0"] for number in range(3000)}
    catalog = loader.DirectoryCatalog(tmp_path / "packages")
    before = sys.getswitchinterval()
    with loader.PackageLoader(catalog, tmp_path / "cache", pins) as package_loader:

        def load(start: int) -> list[loader.Package]:
            order = names[start:] + names[:start]
            found = [package_loader.load_class_package(f"{fqn}.Thing") for fqn in order]
            core = package_loader.load("io.murano")
            for package in found:
                assert package_loader.load_requirement(package, "io.murano") is core
            return found

        sys.setswitchinterval(1e-6)
        try:
            with concurrent.futures.ThreadPoolExecutor(4) as threads:
                found = list(threads.map(load, range(0, 48, 12)))
        finally:
            sys.setswitchinterval(before)
        loaded = {package.full_name: package for package in found[0]}
        assert all(package is loaded[package.full_name] for each in found for package in each)
        assert set(names) <= package_loader.pins.dump().keys()


def test_a_requirement_is_loaded_as_it_was_planned(package_loader: loader.PackageLoader) -> None:
    wiki = package_loader.load("org.wiki")
    shop = package_loader.load_requirement(wiki, "org.shop")

    assert str(package_loader.load("org.db").version) == "2.0.0"
    assert str(package_loader.load_requirement(wiki, "org.db").version) == "1.2.0"
    assert str(package_loader.load_requirement(shop, "org.db").version) == "2.0.0"
    assert str(package_loader.load_requirement(wiki, "io.murano").version) == "0.1.0"


@pytest.mark.parametrize("version", ["1.0.0", "1.0.0-rc.1"])
def test_a_package_satisfies_its_requirement_on_itself(
    tmp_path: pathlib.Path, version: str
) -> None:
    folder = tmp_path / "packages"
    folder.mkdir()
    for each in (version, "1.7.0"):
        (folder / f"{each}.zip").write_bytes(packages.package("org.db", each))
    (folder / "core.zip").write_bytes(packages.package("io.murano", "0.1.0"))
    catalog = loader.DirectoryCatalog(folder)

    with loader.PackageLoader(catalog, tmp_path / "cache") as package_loader:
        package_loader.load("org.db", "1.7.0")
        old = package_loader.load("org.db", f"=={version}")

        assert package_loader.load_requirement(old, "org.db") is old


def test_the_requirements_of_a_plugin_are_loaded(package_loader: loader.PackageLoader) -> None:
    plugin = package_loader.provide(
        "org.mail", Version("1.0.0"), requirements={"org.db": "<2", "org.log": ">=3"}
    )

    assert str(package_loader.load_requirement(plugin, "org.db").version) == "1.2.0"
    with pytest.raises(loader.NoSuchPackage, match=r">=3, required by org.mail 1.0.0, was not"):
        package_loader.load_requirement(plugin, "org.log")


@pytest.mark.parametrize("wrong", ["org.bd", "org.DB", "", None, ("org.db", ">=1,<2")])
def test_a_misspelt_requirement_is_refused(
    package_loader: loader.PackageLoader, wrong: Any
) -> None:
    wiki = package_loader.load("org.wiki")
    others = "io.murano, org.db, org.shop, org.wiki"

    with pytest.raises(loader.NotRequired, match=f"does not require .*, but {others}; check"):
        package_loader.load_requirement(wiki, wrong)


def test_only_a_loaded_package_has_requirements(
    package_loader: loader.PackageLoader, directory: loader.DirectoryCatalog, tmp_path: pathlib.Path
) -> None:
    name: Any = "org.wiki 1.0.0"
    with pytest.raises(TypeError, match=r"'org.wiki 1.0.0' is not a package; pass what load\(\)"):
        package_loader.load_requirement(name, "org.db")
    with loader.PackageLoader(directory, tmp_path / "other") as other:
        wiki = other.load("org.wiki")
        with pytest.raises(loader.LoaderError, match=r"wiki 1\.0\.0 was not loaded by this"):
            package_loader.load_requirement(wiki, "org.db")
    with pytest.raises(loader.LoaderError, match="closed"):
        other.load_requirement(wiki, "org.db")


@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_range_means_0_but_in_the_header_of_an_object(
    tmp_path: pathlib.Path, empty: str | None
) -> None:
    folder = tmp_path / "packages"
    folder.mkdir()
    for version in ("0.9.0", "1.0.0"):
        (folder / f"{version}.zip").write_bytes(packages.package("org.db", version))
    (folder / "core.zip").write_bytes(packages.package("io.murano", "0.1.0"))
    app = packages.content("org.app")
    app["manifest.yaml"] += b"Require: {org.db: %s}\n" % (b"''" if empty == "" else b"")
    (folder / "app.zip").write_bytes(packages.zipped(app))
    catalog = loader.DirectoryCatalog(folder)

    def versions(header: bool) -> set[str]:
        with loader.PackageLoader(catalog, tmp_path / "cache") as fresh:
            if header:
                fresh.plan_objects([("org.db.Thing", empty)])
                by_class = fresh.load_class_package("org.db.Thing", empty)
                found = [by_class, fresh.load_object_package("org.db", empty)]
            else:
                app = fresh.load("org.app")
                found = [fresh.load("org.db", empty), fresh.load_all("org.db", empty)[0]]
                found.append(fresh.load("org.db", app.requirements["org.db"]))
                found.append(fresh.load_requirement(app, "org.db"))
            return {str(package.version) for package in found}

    assert versions(header=False) == {"0.9.0"}
    assert versions(header=True) == {"1.0.0"}
