# SPDX-License-Identifier: Apache-2.0

"""Loading from the offline index while Glare cannot be reached."""

import logging
import pathlib
from collections.abc import Callable

import pytest

import loader
from glare_murano import wire
from glare_murano.package import Archive, VersionSpec, read_manifest
from loader.catalogs.directory import DirectoryCatalog
from loader.catalogs.glare import GlareCatalog
from tests import packages
from tests.functional.client import Client


class _Switched:
    """A project's loaders, while Glare can be reached and while it cannot."""

    def __init__(self, client: Client, project: str, cache: loader.Cache) -> None:
        self._client = client
        self._project = project
        self._cache = cache
        self.pins = loader.Pins()
        self.endpoint = client.url

    def loader(self, opted_in: bool = True) -> loader.PackageLoader:
        catalog = GlareCatalog(
            self._client.session(),
            project_id=self._project,
            endpoint=self.endpoint,
            attempts=1,
        )
        # The catalogue is the same one, whether it answers or not.
        catalog.name = "Glare"
        index = loader.OfflineIndex([catalog], self._cache, self._project) if opted_in else None
        return loader.PackageLoader([catalog], self._cache, self.pins, offline_index=index)

    def go_down(self) -> None:
        self.endpoint = "http://127.0.0.1:9"


@pytest.fixture
def project_loaders(glare: Client, project: str, cache: loader.Cache) -> _Switched:
    for version in ("1.0.0", "1.1.0"):
        glare.publish("org.db", version, packages.package("org.db", version))
    data = packages.package("org.wiki", Require={"org.db": "1.0"})
    glare.publish("org.wiki", "1.0.0", data)
    return _Switched(glare, project, cache)


def test_recorded_releases_are_loaded_with_a_warning(
    project_loaders: _Switched, caplog: pytest.LogCaptureFixture
) -> None:
    project_loaders.loader().load("org.wiki", VersionSpec.of("1"))
    project_loaders.loader().load("org.db", VersionSpec.of("1.0"))
    project_loaders.go_down()

    package_loader = project_loaders.loader()
    package = package_loader.load("org.wiki", VersionSpec.of("1"))

    assert str(package.version) == "1.0.0"
    assert str(package_loader.load("org.db", VersionSpec.of("1.0")).version) == "1.0.0"
    assert package_loader.load_class_package("org.wiki.Thing", VersionSpec.of("1")) is package
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert any("taken from the offline index" in text for text in warnings)


@pytest.mark.usefixtures("waits")
def test_an_unreachable_catalogue_is_queried_again_only_for_missing_records(
    project_loaders: _Switched, glare: Client, project: str, cache: loader.Cache
) -> None:
    glare.publish("org.log", "1.0.0", packages.package("org.log"))
    for fqn, text in (("org.db", "1.0"), ("org.db", "1.1"), ("org.log", "1")):
        project_loaders.loader().load(fqn, VersionSpec.of(text))
    glare.publish("org.log", "1.1.0", packages.package("org.log", "1.1.0"))
    catalog = GlareCatalog(glare.session(), project_id=project, endpoint=glare.url, attempts=2)
    catalog.name = "Glare"
    index = loader.OfflineIndex([catalog], cache, project)
    package_loader = loader.PackageLoader([catalog], cache, offline_index=index)
    requests = []

    def load(fqn: str, text: str) -> str:
        version = package_loader.load(fqn, VersionSpec.of(text)).version
        requests.append(catalog.counters.requests)
        return str(version)

    catalog._client.endpoint_override = "http://127.0.0.1:9"
    assert load("org.db", "1.0") == "1.0.0"
    assert load("org.db", "1.1") == "1.1.0"
    assert requests == [2, 2]
    with pytest.raises(loader.CatalogUnavailable, match=r"org\.wiki .*did not answer"):
        load("org.wiki", "1")
    assert catalog.counters.requests == 4

    # A catalogue that answers again is used as usual.
    catalog._client.endpoint_override = glare.url
    assert load("org.wiki", "1") == "1.0.0"
    assert load("org.log", "1") == "1.1.0"


def test_each_record_is_read_once(
    project_loaders: _Switched, monkeypatch: pytest.MonkeyPatch
) -> None:
    project_loaders.loader().load_all("org.wiki")
    project_loaders.loader().load("org.db", "1.1")
    project_loaders.go_down()
    read = []
    from_json = wire.release_from_json
    monkeypatch.setattr(wire, "release_from_json", lambda c: read.append(c) or from_json(c))
    package_loader = project_loaders.loader()

    package_loader.load_all("org.wiki")
    package_loader.load("org.db", "1.1")

    assert sorted(f"{content['name']} {content['version']}" for content in read) == [
        "io.murano 0.0.1",
        "org.db 1.0.0",
        "org.db 1.1.0",
        "org.wiki 1.0.0",
    ]


def test_a_requirement_without_a_record_is_queried(
    project_loaders: _Switched, glare: Client, project: str, cache: loader.Cache
) -> None:
    project_loaders.loader().load("org.wiki", VersionSpec.of("1"))
    (database,) = (
        path for path in (cache.folder / "archives").iterdir() if _name(path) == "org.db"
    )
    database.rename(cache.folder / database.name)
    catalog = GlareCatalog(glare.session(), project_id=project, endpoint=glare.url, attempts=1)
    catalog.name = "Glare"
    catalog._client.endpoint_override = "http://127.0.0.1:9"
    another = loader.Cache(cache.folder)
    index = loader.OfflineIndex([catalog], another, project)
    package_loader = loader.PackageLoader([catalog], another, offline_index=index)

    package_loader.load("org.wiki", VersionSpec.of("1"))
    with pytest.raises(loader.CatalogUnavailable, match=r"org\.db .*did not answer"):
        package_loader.load("org.db", VersionSpec.of("1.0"))
    catalog._client.endpoint_override = glare.url

    assert package_loader.load("org.db", VersionSpec.of("1.0"))


def _name(package: pathlib.Path) -> str:
    with Archive.open(package) as archive:
        return read_manifest(archive).fqn


def test_without_the_index_nothing_is_loaded_offline(project_loaders: _Switched) -> None:
    project_loaders.loader().load("org.db", VersionSpec.of("1"))
    project_loaders.go_down()

    with pytest.raises(loader.CatalogError, match="did not answer"):
        project_loaders.loader(opted_in=False).load("org.db", VersionSpec.of("1"))


def test_a_package_without_a_record_is_an_error(project_loaders: _Switched) -> None:
    project_loaders.loader().load("org.db", VersionSpec.of("1"))
    project_loaders.go_down()

    with pytest.raises(loader.CatalogError, match="did not answer"):
        project_loaders.loader().load("org.wiki", VersionSpec.of("1"))


def test_records_are_separate_for_each_project(
    project_loaders: _Switched, glare: Client, cache: loader.Cache
) -> None:
    project_loaders.loader().load("org.db", VersionSpec.of("1"))
    other = _Switched(glare, "other", cache)
    other.go_down()

    with pytest.raises(loader.CatalogError) as refusal:
        other.loader().load("org.db", VersionSpec.of("1"))

    assert "1.1.0" not in str(refusal.value)


def test_records_are_separate_for_each_region(
    glare: Client, project: str, cache: loader.Cache
) -> None:
    glare.publish("org.db", "1.1.0", packages.package("org.db", "1.1.0"))

    def load(url: str, region: str) -> str:
        session = Client(url, glare.token).session()
        catalog = GlareCatalog(session, project_id=project, region_name=region, attempts=1)
        index = loader.OfflineIndex([catalog], cache, project)
        package_loader = loader.PackageLoader([catalog], cache, offline_index=index)
        return str(package_loader.load("org.db", VersionSpec.of("1")).version)

    load(glare.url, "north")

    assert load("http://127.0.0.1:9", "north") == "1.1.0"
    with pytest.raises(loader.CatalogUnavailable, match="Glare of the region south did not answer"):
        load("http://127.0.0.1:9", "south")


def test_directories_are_queried_as_usual(
    glare: Client,
    project: str,
    cache: loader.Cache,
    tmp_path: pathlib.Path,
    set_option: Callable[[str, object], None],
) -> None:
    set_option("check_requirements", "off")
    content = packages.content("org.local")
    folder = DirectoryCatalog(packages.write(tmp_path / "local" / "org.local", content).parent)
    data = packages.package("org.wiki", Require={"org.local": "1"})
    glare.publish("org.wiki", "1.0.0", data)
    pins = loader.Pins()

    def load(endpoint: str, pins: loader.Pins) -> list[str]:
        glare_catalog = GlareCatalog(
            glare.session(), project_id=project, endpoint=endpoint, attempts=1
        )
        glare_catalog.name = "Glare"
        index = loader.OfflineIndex([folder, glare_catalog], cache, project)
        catalogs = [folder, glare_catalog]
        package_loader = loader.PackageLoader(catalogs, cache, pins, offline_index=index)
        names = ("org.wiki", "org.local")
        return [package_loader.load(n, VersionSpec.of("1")).full_name for n in names]

    found = load(glare.url, loader.Pins())

    assert load("http://127.0.0.1:9", pins) == found == ["org.wiki", "org.local"]
    assert pins.dump() == {}


def test_a_refusal_is_not_replaced(project_loaders: _Switched, glare: Client) -> None:
    project_loaders.loader().load("org.db", VersionSpec.of("1"))
    # Whoever has lost their rights gets nothing from before.
    project_loaders._client = Client(glare.url, "no token")

    with pytest.raises(loader.CatalogError, match="401") as refusal:
        project_loaders.loader().load("org.db", VersionSpec.of("1"))

    assert not isinstance(refusal.value, loader.CatalogUnavailable)


def test_no_pin_changes(project_loaders: _Switched) -> None:
    project_loaders.loader().load("org.db", VersionSpec.of("1"))
    project_loaders.pins = loader.Pins({"org.db": ["1.0.0"], "org.unused": ["7.0.0"]})
    before = project_loaders.pins.dump()
    project_loaders.go_down()

    # The pinned version was never loaded, so that it cannot be had.
    with pytest.raises(loader.CatalogError):
        project_loaders.loader().load("org.db", VersionSpec.of("1.0"))
    package = project_loaders.loader().load("org.db", VersionSpec.of("1.1"))
    project_loaders.pins.compact()

    assert str(package.version) == "1.1.0"
    assert project_loaders.pins.dump() == before


def test_a_record_without_an_archive_is_not_used(
    project_loaders: _Switched, tmp_path: pathlib.Path
) -> None:
    package = project_loaders.loader().load("org.db", VersionSpec.of("1"))
    # Without its archive, what was unpacked counts for nothing.
    assert pathlib.Path(package.get_resource("text")).parent.parent.is_dir()
    for archive in (tmp_path / "cache" / "archives").iterdir():
        archive.rename(tmp_path / archive.name)
    project_loaders.go_down()

    with pytest.raises(loader.CatalogError, match="did not answer"):
        project_loaders.loader().load("org.db", VersionSpec.of("1"))


def test_a_damaged_record_is_ignored(
    project_loaders: _Switched, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    project_loaders.loader().load("org.db", VersionSpec.of("1.0"))
    project_loaders.loader().load("org.db", VersionSpec.of("1.1"))
    resolved = (tmp_path / "cache" / "resolved").rglob("*.json")
    damaged = next(path for path in resolved if "1.1.0" in path.read_text())
    damaged.write_text("{")
    project_loaders.go_down()
    project_loaders.pins = loader.Pins()

    package = project_loaders.loader().load("org.db", VersionSpec.of("1"))

    assert str(package.version) == "1.0.0"
    assert str(damaged) in caplog.text
    # It is remembered anew when it is loaded the next time.
    project_loaders.endpoint = project_loaders._client.url
    project_loaders.loader().load("org.db", VersionSpec.of("1.1"))
    assert "1.1.0" in damaged.read_text()
