# SPDX-License-Identifier: Apache-2.0

"""The loader over the real Glare."""

import hashlib
import logging
import multiprocessing
import pathlib
import time
from collections.abc import Callable

import pytest
from oslo_config import cfg

import loader
from glare_murano.package import Archive, InvalidName, VersionSpec
from loader.catalogs.directory import DirectoryCatalog
from loader.catalogs.glare import GlareCatalog
from tests import packages
from tests.functional import other_process
from tests.functional.client import Client

Publish = Callable[..., None]


@pytest.fixture
def publish(glare: Client, name: str) -> Publish:
    """Publish versions of the test's package."""

    def publish_versions(*versions: str) -> None:
        for version in versions:
            glare.publish(name, version, packages.package(name, version))

    return publish_versions


@pytest.fixture(scope="module")
def released(glare_url: str) -> Client:
    """A member of a project with many versions of ``org.released``."""
    client = Client(glare_url, "user:released:member")
    versions = "2.0.0-rc.10", "1.2.0", "2.0.0", "1.2.3", "1.10.0", "2.0.0-rc.2", "1.2.5", "0.9.0"
    before_1 = "1.0.0-alpha.1", "1.0.0-alpha-1", "1.0.0-9", "1.0.0-10"
    for version in (*versions, *before_1, *(f"0.1.{patch}" for patch in range(8))):
        client.publish("org.released", version, packages.package("org.released", version))
    return client


def _catalog(client: Client, project: str | None = None) -> GlareCatalog:
    return GlareCatalog(client.session(), endpoint=client.url, project_id=project)


def _load(client: Client, project: str, cache: loader.Cache, name: str, text: str) -> str:
    catalog = _catalog(client, project)
    package = loader.PackageLoader([catalog], cache).load(name, VersionSpec.of(text))
    return str(package.version)


@pytest.mark.parametrize(
    ("text", "newest"),
    [
        ("1", "1.10.0"),
        ("1.2", "1.2.5"),
        ("1.2.3", "1.2.3"),
        (">=1.2,<1.10", "1.2.5"),
        ("<=1.2.3,!=1.2.3", "1.2.0"),
        ("*", "2.0.0"),
        ("2", "2.0.0"),
        ("<2.0.0", "1.10.0"),
        ("==2.0.0-rc.2", "2.0.0-rc.2"),
        (">=2.0.0-rc.1,<=2.0.0-rc.99", "2.0.0-rc.10"),
        # In the order of SemVer, which is not that of the database.
        (">=1.0.0-0,<=1.0.0-z", "1.0.0-alpha-1"),
        # The newest six are left out.
        (">=0.1.0,<0.2," + ",".join(f"!=0.1.{patch}" for patch in range(2, 8)), "0.1.1"),
    ],
)
def test_the_newest_release_in_the_range_is_loaded(
    released: Client, cache: loader.Cache, text: str, newest: str
) -> None:
    assert _load(released, "released", cache, "org.released", text) == newest


def test_a_bound_leaves_out_the_pre_releases_of_its_version(
    released: Client, cache: loader.Cache
) -> None:
    with pytest.raises(loader.NoSuchPackage):
        _load(released, "released", cache, "org.released", ">=2.0.0-rc.1,<2.0.0")


def test_drafts_and_deactivated_packages_are_not_loaded(
    glare: Client, admin: Client, project: str, name: str, publish: Publish, cache: loader.Cache
) -> None:
    publish("1.0.0")
    draft = glare.create(name, "1.1.0").json()["id"]
    glare.upload(draft, packages.package(name, "1.1.0"))
    withdrawn = glare.publish(name, "1.2.0", packages.package(name, "1.2.0"))["id"]
    assert admin.set(withdrawn, "status", "deactivated").status_code == 200

    assert _load(glare, project, cache, name, "1") == "1.0.0"


def test_the_project_own_package_comes_before_a_public_one_of_the_same_version(
    glare: Client, admin: Client, project: str, name: str
) -> None:
    own = packages.package(name, Author="own")
    admin.publish(name, "1.0.0", packages.package(name, Author="public"), public=True)
    glare.publish(name, "1.0.0", own)

    found = _catalog(glare, project).releases(name)

    assert [glare.show(release.id)["author"] for release in found] == ["own", "public"]


def test_another_projects_private_package_is_out_of_reach_even_for_an_administrator(
    admin: Client, name: str, publish: Publish
) -> None:
    publish("1.0.0")

    assert admin.names(name=name) == [(name, "1.0.0")]
    for project in ("admin", None):
        catalog = _catalog(admin, project)
        assert list(catalog.releases_defining(f"{name}.Thing")) == []
        assert list(catalog.releases(name)) == list(catalog.releases_of([name])) == []


def test_the_error_for_a_private_package_says_what_the_caller_may_see(
    as_user: Callable[[str], Client], name: str, publish: Publish, tmp_path: pathlib.Path
) -> None:
    publish("1.0.0")
    catalog = _catalog(as_user("stranger"), "stranger")
    messages = []
    with loader.PackageLoader(catalog, tmp_path) as package_loader:
        for fqn in (name, f"{name}.missing"):
            with pytest.raises(loader.NoSuchPackage) as refused:
                package_loader.load(fqn, "1")
            messages.append(str(refused.value).replace(fqn, "NAME"))

    assert messages[0] == messages[1]
    assert messages[0].endswith(
        "(available: none); check the name; or publish a version in the range, or have one that "
        "is private to another project made public; or change the range"
    )


def test_all_versions_of_several_packages_take_one_request(
    glare: Client, project: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{name}.{letter}" for letter in "abc"]
    for fqn in names:
        for version in ("1.0.0", "1.1.0", "2.0.0-rc.1"):
            glare.publish(fqn, version, packages.package(fqn, version))
    catalog = _catalog(glare, project)

    found = list(catalog.releases_of([*names, f"{name}.nothing", "a,b", "a b"]))

    versions = ("1.0.0", "1.1.0", "2.0.0-rc.1")
    expected = [f"{fqn} {version}" for fqn in names for version in versions]
    assert sorted(map(str, found)) == expected
    assert {release.owner for release in found} == {project}
    assert all(release.visibility == "private" and release.size for release in found)
    assert catalog.counters.requests == 1

    # The same in pages, and in lists that are split.
    monkeypatch.setattr("loader.catalogs.openstack.PAGE", 2)
    monkeypatch.setattr("loader.catalogs.openstack._NAMES_LENGTH", 2 * len(names[0]))
    assert sorted(map(str, catalog.releases_of(names))) == expected
    assert list(catalog.releases_of([])) == list(catalog.releases_of(["a,b"])) == []


def test_many_long_names_are_split_into_urls_that_servers_take(
    glare: Client, project: str, name: str, publish: Publish
) -> None:
    publish("1.0.0")
    catalog = _catalog(glare, project)
    long = [f"{name}.{number}{'x' * 110}" for number in range(50)]

    assert [str(release) for release in catalog.releases_of([*long, name])] == [f"{name} 1.0.0"]
    assert catalog.counters.requests == 2


@pytest.mark.parametrize("has_filter", [True, False])
def test_names_too_long_for_glare_are_not_found(
    glare: Client, project: str, name: str, publish: Publish, has_filter: bool
) -> None:
    publish("1.0.0")
    catalog = _catalog(glare, project)
    catalog._answers_queries = has_filter
    long = f"{name}.{'x' * 200}"

    assert list(catalog.releases(long)) == []
    assert [str(release) for release in catalog.releases_of([long, name])] == [f"{name} 1.0.0"]
    assert list(catalog.releases_defining(f"{long}.Thing")) == []


@pytest.mark.parametrize("has_filter", [True, False])
def test_releases_are_found_by_names_and_by_classes(
    glare: Client, project: str, name: str, publish: Publish, has_filter: bool
) -> None:
    publish("1.0.0", "2.0.0-rc.1", "1.1.0")
    catalog = _catalog(glare, project)
    catalog._answers_queries = has_filter

    for found in (
        catalog.releases(name),
        catalog.releases_of([name, "org.nothing"]),
        catalog.releases_defining(f"{name}.Thing"),
    ):
        assert [str(each.version) for each in found] == ["2.0.0-rc.1", "1.1.0", "1.0.0"]
    assert list(catalog.releases_extending([f"{name}.Thing"])) == []


def test_pages_may_be_shorter_than_requested(
    glare: Client, project: str, name: str, publish: Publish
) -> None:
    publish(*(f"1.{minor}.0" for minor in range(7)))
    cfg.CONF.set_override("max_api_limit", 2)
    try:
        catalog = _catalog(glare, project)
        catalog._answers_queries = False
        assert len(list(catalog.releases_of([name]))) == 7
        assert [str(r.version) for r in catalog.releases(name)][-1] == "1.0.0"
    finally:
        cfg.CONF.clear_override("max_api_limit")


def test_releases_are_listed_newest_first_and_the_project_s_own_before_public_ones(
    glare: Client, admin: Client, project: str, name: str, publish: Publish
) -> None:
    publish("1.0.0-alpha.1", "1.0.0-alpha-1", "1.0.0-9", "1.0.0-10", "1.0.0", "0.9.0")
    for version in ("1.0.0", "1.0.0-9"):
        data = packages.package(name, version, Author="public")
        admin.publish(name, version, data, public=True)
    catalog = _catalog(glare, project)

    for found in (catalog.releases(name), catalog.releases_defining(f"{name}.Thing")):
        releases = list(found)
        assert [(str(release.version), release.owner) for release in releases] == [
            ("1.0.0", project),
            ("1.0.0", "admin"),
            ("1.0.0-alpha-1", project),
            ("1.0.0-alpha.1", project),
            ("1.0.0-10", project),
            ("1.0.0-9", project),
            ("1.0.0-9", "admin"),
            ("0.9.0", project),
        ]


def test_a_shared_cache_gives_no_private_package_to_another_project(
    glare: Client,
    as_user: Callable[[str], Client],
    project: str,
    name: str,
    cache: loader.Cache,
) -> None:
    secret = packages.package(name, "3.1.4", Classes={f"org.{project}.Secret": "Thing.yaml"})
    digest = glare.publish(name, "3.1.4", secret)["archive"]["sha256"]
    assert _load(glare, project, cache, name, "*") == "3.1.4"
    assert (cache.folder / "archives" / digest).is_file()

    stranger = _catalog(as_user(f"other-{project}"), f"other-{project}")
    package_loader = loader.PackageLoader([stranger], loader.Cache(cache.folder))
    with pytest.raises(loader.NoSuchPackage) as no_package:
        package_loader.load(name, VersionSpec.of("*"))
    with pytest.raises(loader.NoSuchClass) as no_class:
        package_loader.load_class_package(f"org.{project}.Secret", VersionSpec.of("*"))

    for word in ("3.1.4", digest):
        assert word not in str(no_package.value)
    for word in (name, "3.1.4", digest):
        assert word not in str(no_class.value)
    assert package_loader.counters.hits == 0


def test_a_missing_package_is_reported_with_the_available_versions(
    glare: Client,
    project: str,
    name: str,
    publish: Publish,
    cache: loader.Cache,
    tmp_path: pathlib.Path,
) -> None:
    publish("1.0.0", "1.2.0", "1.3.0", "2.0.0")
    content = packages.content("org.app", Require={name: ">=3"})
    packages.write(tmp_path / "directory" / "app", content)
    directory = loader.DirectoryCatalog(tmp_path / "directory")
    package_loader = loader.PackageLoader([directory, _catalog(glare, project)], cache)
    app = package_loader.load("org.app")

    with pytest.raises(loader.NoSuchPackage) as no_package:
        package_loader.load_requirement(app, name)
    with pytest.raises(loader.NoSuchClass) as no_class:
        package_loader.load_class_package(f"{name}.Thing", VersionSpec.of("4"))
    with pytest.raises(loader.NoSuchPackage) as nothing:
        package_loader.load(f"{name}.nothing", VersionSpec.of(None))

    for word in (name, ">=3", "org.app 1.0.0", "2.0.0, 1.3.0, 1.2.0, 1.0.0", glare.url):
        assert word in str(no_package.value)
    for word in (f"{name}.Thing", "range 4", f"{name} 2.0.0"):
        assert word in str(no_class.value)
    assert "(available: none)" in str(nothing.value)


def test_a_class_is_found_in_the_newest_package_that_defines_it(
    glare: Client, project: str, name: str, publish: Publish, cache: loader.Cache
) -> None:
    publish("1.0.0", "1.1.0", "2.0.0")
    package_loader = loader.PackageLoader([_catalog(glare, project)], cache)

    package = package_loader.load_class_package(f"{name}.Thing", VersionSpec.of("1"))

    assert (package.full_name, str(package.version)) == (name, "1.1.0")
    text, _ = package.get_class(f"{name}.Thing")
    assert b"Return: 1.1.0" in text


def test_a_loaded_version_in_the_range_is_used_again(
    glare: Client, project: str, name: str, publish: Publish, cache: loader.Cache
) -> None:
    publish("1.0.0", "1.1.0")
    package_loader = loader.PackageLoader([_catalog(glare, project)], cache)
    package_loader.load(name, VersionSpec.of("1.0"))
    requests = package_loader.counters.requests

    assert str(package_loader.load(name, VersionSpec.of("1")).version) == "1.0.0"
    assert package_loader.counters.requests == requests


def test_an_archive_is_fetched_once_and_found_by_the_next_process(
    glare: Client, name: str, publish: Publish, tmp_path: pathlib.Path
) -> None:
    publish("1.0.0")
    arguments = (glare.url, glare.token, str(tmp_path / "cache"), name)

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        first = pool.apply(other_process.load, arguments)
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        later = pool.starmap(other_process.load, [arguments] * 4)

    # The package, and the core library, which it requires.
    assert first == (2, 0)
    assert later == [(0, 1)] * 4


def test_processes_that_load_at_once_fetch_once(
    glare: Client, name: str, publish: Publish, tmp_path: pathlib.Path
) -> None:
    publish("1.0.0")
    arguments = (glare.url, glare.token, str(tmp_path / "cache"), name)

    with multiprocessing.get_context("spawn").Pool(6) as pool:
        costs = pool.starmap(other_process.load, [arguments] * 6)

    assert sum(downloads for downloads, _ in costs) == 2


@pytest.fixture
def rich(glare: Client, name: str) -> str:
    """Publish a package with all kinds of files, and a required one; return its name."""
    needed = f"{name}.needed"
    for fqn, require in ((needed, {}), (name, {needed: "1"})):
        files = packages.content(fqn, Require=require)
        files["UI/ui.yaml"] = packages.FORM
        files["logo.png"] = b"\x89PNG\r\n\x1a\n"
        files["Resources/script.sh"] = fqn.encode()
        glare.publish(fqn, "1.0.0", packages.zipped(files))
    return name


def _unpacked(cache: loader.Cache) -> list[pathlib.Path]:
    return list((cache.folder / "packages").iterdir())


def test_nothing_is_unpacked_before_files_are_needed(
    glare: Client, project: str, rich: str, cache: loader.Cache
) -> None:
    package_loader = loader.PackageLoader([_catalog(glare, project)], cache)
    package = package_loader.load(rich, VersionSpec.of("1"))
    needed = package_loader.load_class_package(f"{rich}.needed.Thing", VersionSpec.of("1"))

    for one in (package, needed):
        assert b"Return: 1.0.0" in one.get_class(f"{one.full_name}.Thing")[0]
        assert (one.ui, one.logo, one.supplier_logo) == (
            packages.FORM,
            b"\x89PNG\r\n\x1a\n",
            None,
        )
    assert _unpacked(cache) == []

    script = pathlib.Path(package.get_resource("script.sh"))
    assert script.read_text() == rich
    assert [script.is_relative_to(folder) for folder in _unpacked(cache)] == [True]
    # Both, and the core library.
    assert (package_loader.counters.downloads, package_loader.counters.hits) == (3, 0)


def test_processes_that_unpack_at_once_get_the_same_files(
    glare: Client, rich: str, tmp_path: pathlib.Path
) -> None:
    arguments = (glare.url, glare.token, str(tmp_path / "cache"), rich)

    with multiprocessing.get_context("spawn").Pool(4) as pool:
        found = pool.starmap(other_process.unpack, [arguments] * 8)

    assert len(set(found)) == 1
    assert found[0][0] == rich
    assert list((tmp_path / "cache" / "staging").iterdir()) == []


def test_a_template_is_given_as_files(
    glare: Client, project: str, name: str, cache: loader.Cache
) -> None:
    keys = {"Format": "Heat.HOT/1.0", "Type": "Application", "Classes": None}
    files = packages.content(name, **keys)
    files["template.yaml"] = b"heat_template_version: 2013-05-23\nresources: {}\n"
    glare.publish(name, "1.0.0", packages.zipped(files))

    package_loader = loader.PackageLoader([_catalog(glare, project)], cache)
    package = package_loader.load(name, VersionSpec.of("1"))

    assert f'"Name": "{name}"' in package.get_class(name)
    (folder,) = _unpacked(cache)
    assert package.source_directory == str(folder / "files")


def test_a_damaged_archive_is_downloaded_again_on_use(
    glare: Client, project: str, rich: str, cache: loader.Cache
) -> None:
    package_loader = loader.PackageLoader([_catalog(glare, project)], cache)
    package = package_loader.load(rich, VersionSpec.of("1"))
    downloads = package_loader.counters.downloads
    for archive in (cache.folder / "archives").iterdir():
        archive.write_bytes(archive.read_bytes()[:-1] + b"x")
    with loader.Cache(cache.folder) as other:
        assert len(other.verify()) == 3

    assert package.logo == b"\x89PNG\r\n\x1a\n"
    assert pathlib.Path(package.get_resource("script.sh")).read_text() == rich
    assert package_loader.counters.downloads == downloads + 1


def test_a_changed_archive_is_refused_and_not_kept(
    glare: Client, project: str, name: str, cache: loader.Cache, state_dir: pathlib.Path
) -> None:
    data = packages.package(name)
    glare.publish(name, "1.0.0", data)
    stored = next(p for p in (state_dir / "blobs").iterdir() if p.read_bytes() == data)
    # Of the same size, which Glare tells: another one would not come through.
    stored.write_bytes(data[:-1] + b"x")

    with pytest.raises(loader.DigestMismatch):
        _load(glare, project, cache, name, "1")

    assert not cache.has(hashlib.sha256(data).hexdigest())


@pytest.mark.usefixtures("waits")
def test_an_unreachable_catalogue_is_reported(cache: loader.Cache) -> None:
    nobody = Client("http://127.0.0.1:9", "a:b:c")

    with pytest.raises(loader.CatalogError, match=r"127\.0\.0\.1:9"):
        _load(nobody, "b", cache, "org.test", "1")


def test_a_refused_token_is_reported(glare_url: str, cache: loader.Cache) -> None:
    with pytest.raises(loader.CatalogError, match="401"):
        _load(Client(glare_url, "nonsense"), "b", cache, "org.test", "1")


@pytest.mark.parametrize("odd", ["like:%", "neq:zzz", "in:a,b", "a b", "", "a\nb", "a..b"])
def test_a_name_is_a_name_and_never_a_filter(
    glare: Client, project: str, publish: Publish, cache: loader.Cache, odd: str
) -> None:
    publish("1.0.0")
    package_loader = loader.PackageLoader([_catalog(glare, project)], cache)

    with pytest.raises(InvalidName):
        package_loader.load(odd, VersionSpec.of("*"))
    with pytest.raises(InvalidName):
        package_loader.load_class_package(odd, VersionSpec.of("*"))
    assert list(_catalog(glare, project).releases("neq:zzz")) == []


@pytest.mark.parametrize(
    "text", [">=1,<100000", ">=1.0.0-20240101", "!=1.70000.0", f">=1.0.0-{'a' * 80}"]
)
def test_ranges_that_glare_cannot_filter_are_checked_by_the_loader(
    glare: Client, project: str, name: str, publish: Publish, cache: loader.Cache, text: str
) -> None:
    publish("1.0.0", "1.2.0")

    assert _load(glare, project, cache, name, text) == "1.2.0"


def test_a_package_that_cannot_be_loaded_is_named(
    glare: Client, project: str, name: str, cache: loader.Cache, state_dir: pathlib.Path
) -> None:
    data = packages.package(name)
    glare.publish(name, "1.0.0", data)
    stored = next(p for p in (state_dir / "blobs").iterdir() if p.read_bytes() == data)
    stored.write_bytes(bytes(reversed(data)))

    with pytest.raises(loader.DigestMismatch, match=rf"{name} 1\.0\.0 of Glare at"):
        _load(glare, project, cache, name, "1")


def test_a_partly_unpacked_package_is_not_found(tmp_path: pathlib.Path) -> None:
    """Unpacking that is killed at a random moment leaves nothing that a catalogue finds."""
    files = packages.content("org.killed")
    files.update({f"Resources/{number}": b"x" * 100 for number in range(800)})
    (tmp_path / "package.zip").write_bytes(packages.zipped(files))
    for moment in range(25):
        folder = tmp_path / f"try{moment}"
        folder.mkdir()
        process = multiprocessing.get_context("fork").Process(
            target=_unpack, args=(tmp_path / "package.zip", folder / "package")
        )
        process.start()
        time.sleep(moment * 0.004)
        process.kill()
        process.join()

        catalog = DirectoryCatalog(folder)
        found = catalog.releases("org.killed")
        assert [catalog.directory(release) for release in found] in ([], [folder / "package"])
        for hidden in folder.glob(".*"):
            assert (
                not (hidden / "manifest.yaml").exists()
                or len(list((hidden / "Resources").iterdir())) == 800
            )


def _unpack(archive: pathlib.Path, target: pathlib.Path) -> None:
    with Archive.open(archive) as package:
        package.unpack(target)


@pytest.mark.parametrize(
    ("header", "used"),
    [
        ("1.2.0", "1.2.0"),
        ("1.2.9", "1.2.5"),
        ("1.7.0", "1.3.0"),
        ("1", "1.3.0"),
        ("2.1.1", "2.0.0"),
    ],
)
def test_an_objects_missing_version_is_replaced_by_a_near_one(
    glare: Client,
    project: str,
    name: str,
    publish: Publish,
    cache: loader.Cache,
    header: str,
    used: str,
) -> None:
    publish("1.2.0", "1.2.5", "1.3.0", "2.0.0")
    spec = VersionSpec.of(header)

    def fresh() -> loader.PackageLoader:
        return loader.PackageLoader([_catalog(glare, project)], cache)

    assert str(fresh().load_object_package(name, spec).version) == used
    assert str(fresh().load_class_package(f"{name}.Thing", spec).version) == used
    if header != used and header != "1":
        with pytest.raises(loader.NoSuchPackage):
            fresh().load(name, spec)


def test_answers_are_read_where_keystoneauth_logs_them(
    glare: Client,
    project: str,
    name: str,
    publish: Publish,
    cache: loader.Cache,
    caplog: pytest.LogCaptureFixture,
) -> None:
    publish("1.0.0")
    caplog.set_level(logging.DEBUG, "keystoneauth")
    catalog = _catalog(glare, project)

    assert [str(release.version) for release in catalog.releases(name)] == ["1.0.0"]
    assert _load(glare, project, cache, name, "1") == "1.0.0"
    assert "RESP BODY: {" in caplog.text


def test_a_missing_pinned_version_is_replaced_only_for_an_object(
    glare: Client,
    project: str,
    name: str,
    publish: Publish,
    cache: loader.Cache,
    caplog: pytest.LogCaptureFixture,
) -> None:
    publish("1.2.5", "1.2.6", "1.3.0")

    def fresh(*pinned: str) -> loader.PackageLoader:
        pins = loader.Pins({name: pinned})
        return loader.PackageLoader([_catalog(glare, project)], cache, pins)

    # A pinned version is preferred to a planned one.
    mixed = fresh("1.2.5")
    assert str(mixed.load(name, VersionSpec.of("==1.2.6")).version) == "1.2.6"
    mixed.pins.load({name: ["1.2.5"]})
    assert str(mixed.load_object_package(name, VersionSpec.of("1.2.1")).version) == "1.2.5"

    gone = VersionSpec.of("1.2.0")
    assert str(fresh("1.2.0").load_object_package(name, gone).version) == "1.2.6"
    assert str(fresh("1.2.0", "1.2.5").load_object_package(name, gone).version) == "1.2.5"
    assert str(fresh("1.2.0").load_class_package(f"{name}.Thing", gone).version) == "1.2.6"
    with pytest.raises(loader.NoSuchPackage, match=r"pinned to 1\.2\.0"):
        fresh("1.2.0").load(name, VersionSpec.of("1"))
    with pytest.raises(loader.NoSuchPackage, match=r"pinned to 1\.2\.0"):
        fresh("1.2.0").load_object_package(name, VersionSpec.of("1"))

    caplog.clear()
    found = fresh("1.2.0").load_class_package(f"{name}.Thing", VersionSpec.of("1"))
    assert str(found.version) == "1.3.0"
    assert "missing in the pinned version 1.2.0" in caplog.text


def test_an_objects_version_without_a_near_one_is_an_error(
    glare: Client, project: str, name: str, publish: Publish, cache: loader.Cache
) -> None:
    publish("1.2.0")
    package_loader = loader.PackageLoader([_catalog(glare, project)], cache)

    with pytest.raises(loader.NoSuchPackage, match=r"range 3\.0\.0"):
        package_loader.load_object_package(name, VersionSpec.of("3.0.0"))


def test_a_closure_from_a_full_cache_is_one_request_and_no_download(
    glare: Client, project: str, name: str, cache: loader.Cache
) -> None:
    last = 5
    for number in range(last, -1, -1):
        required = {} if number == last else {f"{name}.p{number + 1}": "1"}
        fqn = f"{name}.p{number}"
        glare.publish(fqn, "1.0.0", packages.package(fqn, Require=required))

    def load(cache: loader.Cache) -> loader.Counters:
        package_loader = loader.PackageLoader([_catalog(glare, project)], cache)
        for number in range(last + 1):
            package_loader.load(f"{name}.p{number}", VersionSpec.of("1"))
        return package_loader.counters

    cold = load(cache)
    with loader.Cache(cache.folder) as other:
        warm = load(other)

    # A query and a batch; with the core library, which every package requires.
    assert (cold.requests, cold.downloads) == (2, last + 2)
    assert (warm.requests, warm.downloads, warm.bytes, warm.hits) == (1, 0, 0, last + 1)
