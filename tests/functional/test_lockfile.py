# SPDX-License-Identifier: Apache-2.0

"""Lock files of closures in the real Glare."""

import dataclasses
import pathlib
import stat
from collections.abc import Callable
from typing import Any

import pytest
import yaml

import loader
from glare_murano.package import VersionSpec
from loader import config
from loader.catalogs.glare import GlareCatalog
from tests import configuration, packages
from tests.functional.client import Client

Publish = Callable[..., None]


@pytest.fixture
def publish(glare: Client) -> Publish:
    def publish_package(name: str, version: str = "1.0.0", **require: str) -> None:
        requirements = {fqn.replace("__", "."): text for fqn, text in require.items()}
        glare.publish(name, version, packages.package(name, version, Require=requirements))

    return publish_package


@pytest.fixture
def nowhere(glare: Client, project: str) -> GlareCatalog:
    """The same catalogue while it cannot be reached."""
    return GlareCatalog(
        glare.session(), project_id=project, endpoint="http://127.0.0.1:9", attempts=1
    )


def _ranges(**requirements: str) -> dict[str, VersionSpec]:
    return {f"org.{name}": VersionSpec.of(text) for name, text in requirements.items()}


def _versions(lock: loader.Lock) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for release in lock.releases:
        found.setdefault(release.fqn.removeprefix("org."), []).append(str(release.version))
    return found


def test_a_lock_reproduces_a_closure_without_network(
    publish: Publish, catalog: GlareCatalog, nowhere: GlareCatalog, tmp_path: pathlib.Path
) -> None:
    publish("org.db", "1.2.0")
    publish("org.db", "2.0.0")
    publish("org.shop", org__db="2")
    publish("org.wiki", org__db="1", org__shop="1")
    cache = loader.Cache(tmp_path / "cache")
    lock = loader.Lock.create([catalog], _ranges(wiki="1"))
    lock.save(tmp_path / "packages.lock")
    loader.PackageLoader([catalog], cache).load("org.wiki", VersionSpec.of("1"))
    publish("org.db", "1.3.0")
    publish("org.wiki", "1.1.0")

    read = loader.Lock.load(tmp_path / "packages.lock")
    locked = loader.LockedCatalog(read, [nowhere])
    package_loader = loader.PackageLoader([locked], cache)

    assert read == lock
    assert str(package_loader.load("org.wiki", VersionSpec.of("*")).version) == "1.0.0"
    assert str(package_loader.load("org.db", VersionSpec.of("1")).version) == "1.2.0"
    assert str(package_loader.load("org.db", VersionSpec.of("2")).version) == "2.0.0"
    assert package_loader.load_class_package("org.shop.Thing", VersionSpec.of("1")).full_name
    assert package_loader.counters.requests == 0


def test_a_locked_archive_is_fetched_by_its_digest(
    publish: Publish, catalog: GlareCatalog, nowhere: GlareCatalog, tmp_path: pathlib.Path
) -> None:
    publish("org.db", "1.2.0")
    lock = loader.Lock.create([catalog], _ranges(db="1"))
    cache = loader.Cache(tmp_path)

    with pytest.raises(loader.CatalogError, match="did not answer"):
        loader.PackageLoader([loader.LockedCatalog(lock, [nowhere])], cache).load(
            "org.db", VersionSpec.of("1")
        )
    package = loader.PackageLoader([loader.LockedCatalog(lock, [catalog])], cache).load(
        "org.db", VersionSpec.of("1")
    )

    assert str(package.version) == "1.2.0"


def test_another_archive_in_the_place_of_a_locked_one_is_refused(
    glare: Client, publish: Publish, catalog: GlareCatalog, tmp_path: pathlib.Path
) -> None:
    publish("org.db", "1.2.0")
    lock = loader.Lock.create([catalog], _ranges(db="1"))
    (old,) = glare.request("GET", "", params={"name": "org.db"}).json()["artifacts"]
    assert glare.delete(old["id"]).status_code == 204
    changed = packages.package("org.db", "1.2.0", Author="Mallory")
    new = glare.publish("org.db", "1.2.0", changed)

    package_loader = loader.PackageLoader(
        [loader.LockedCatalog(lock, [catalog])], loader.Cache(tmp_path)
    )
    with pytest.raises(loader.CatalogError) as refusal:
        package_loader.load("org.db", VersionSpec.of("1"))

    for word in ("org.db 1.2.0", old["archive"]["sha256"], new["archive"]["sha256"]):
        assert word in str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        (
            {"requirements": {"org.db": VersionSpec.of(">=1")}},
            "requirements: io.murano none, but the package has 0;",
        ),
        (
            {"requirements": _ranges(db=">=1") | {"io.murano": VersionSpec.of("0")}},
            "requirements: org.db >=1, but the package has 1;",
        ),
        (
            {"classes": frozenset(["org.wiki.Other", "org.wiki.Thing"])},
            "class_definitions org.wiki.Other, but the package has none;",
        ),
        ({"classes": frozenset()}, "class_definitions none, but the package has org.wiki.Thing;"),
    ],
)
def test_a_package_that_is_not_as_locked_is_refused(
    publish: Publish,
    catalog: GlareCatalog,
    tmp_path: pathlib.Path,
    changes: dict[str, Any],
    reported: str,
) -> None:
    publish("org.db")
    publish("org.wiki", org__db="1")
    lock = loader.Lock.create([catalog], _ranges(wiki="1"))
    *others, wiki = lock.releases
    loader.Lock(lock.requirements, (*others, dataclasses.replace(wiki, **changes))).save(
        tmp_path / "lock"
    )
    locked = loader.LockedCatalog(loader.Lock.load(tmp_path / "lock"), catalog)

    with loader.PackageLoader(locked, tmp_path / "cache") as package_loader:
        with pytest.raises(loader.LockError) as refusal:
            package_loader.load("org.wiki")
        assert package_loader.load("org.db", "1").full_name == "org.db"
        assert package_loader.counters.requests > 0

    assert str(refusal.value) == (
        f"org.wiki 1.0.0 of the lock file cannot be loaded: org.wiki 1.0.0 is locked with "
        f"{reported} create the lock file again"
    )


def test_update_takes_the_newest_of_one_package_or_of_all(
    publish: Publish, catalog: GlareCatalog
) -> None:
    publish("org.db", "1.2.0")
    publish("org.log", "1.0.0")
    publish("org.wiki", org__db=">=1.2,<2", org__log="1")
    lock = loader.Lock.create([catalog], _ranges(wiki="1"))
    for name in ("org.db", "org.log"):
        publish(name, "1.5.0")
        publish(name, "2.0.0")

    one = lock.update([catalog], ["org.db"])
    both = lock.update([catalog])

    assert _versions(one)["db"] == ["1.5.0"]
    assert _versions(one)["log"] == ["1.0.0"]
    assert _versions(both)["db"] == _versions(both)["log"] == ["1.5.0"]
    assert _versions(lock)["db"] == ["1.2.0"]
    with pytest.raises(loader.LockError, match=r"org\.none: not in the lock"):
        lock.update([catalog], ["org.none"])


def test_an_update_has_no_unused_releases(
    publish: Publish, catalog: GlareCatalog, tmp_path: pathlib.Path
) -> None:
    publish("org.db")
    publish("org.wiki", org__db=">=1")
    lock = loader.Lock.create([catalog], _ranges(db=">=1", wiki=">=1"))
    publish("org.db", "2.0.0")
    publish("org.wiki", "2.0.0", org__db=">=2")

    updated = lock.update([catalog], ["org.wiki"])

    # One version of a package serves here, as wherever one can.
    assert _versions(updated)["db"] == _versions(updated)["wiki"] == ["2.0.0"]
    locked = loader.LockedCatalog(updated, [catalog])
    package_loader = loader.PackageLoader([locked], loader.Cache(tmp_path))
    for release in updated.releases:
        assert package_loader.load(release.fqn, VersionSpec.of("*"))
    loaded = package_loader.pins.dump()
    assert loaded == {r.fqn: [str(r.version)] for r in updated.releases}


def test_a_failed_update_changes_nothing(
    publish: Publish, catalog: GlareCatalog, nowhere: GlareCatalog, tmp_path: pathlib.Path
) -> None:
    publish("org.db", "1.2.0")
    loader.Lock.create([catalog], _ranges(db="1")).save(tmp_path / "lock")
    before = (tmp_path / "lock").read_bytes()

    with pytest.raises(loader.CatalogError):
        loader.Lock.load(tmp_path / "lock").update([nowhere]).save(tmp_path / "lock")

    assert (tmp_path / "lock").read_bytes() == before


def test_a_missing_package_cannot_be_locked(
    publish: Publish, catalog: GlareCatalog, set_option: Callable[[str, str], None]
) -> None:
    set_option("check_requirements", "off")
    publish("org.wiki", org__db=">=3")
    publish("org.portal", org__wiki="1")

    with pytest.raises(loader.NoSuchPackage) as missing:
        loader.Lock.create([catalog], _ranges(portal="1"))

    message = str(missing.value)
    assert "org.db in the range >=3, required by org.wiki 1.0.0, was not found" in message
    assert "on it: org.portal 1 (1.0.0) -> org.wiki 1 (1.0.0) -> org.db >=3" in message


def test_the_file_is_sorted_and_the_same_each_time(
    publish: Publish, catalog: GlareCatalog, tmp_path: pathlib.Path
) -> None:
    for version in ("1.10.0", "1.9.0"):
        publish("org.db", version)
    publish("org.old", org__db="1.9")
    publish("org.wiki", org__db="1.10", org__old="1")
    lock = loader.Lock.create([catalog], _ranges(wiki="1", db="1.9"))

    for name in ("one", "two"):
        lock.save(tmp_path / name)

    text = (tmp_path / "one").read_text()
    assert (tmp_path / "two").read_text() == text
    content = yaml.safe_load(text)
    assert list(content["requirements"]) == ["org.db", "org.wiki"]
    found = [(release["name"], release["version"]) for release in content["releases"]]
    assert found[1:3] == [("org.db", "1.9.0"), ("org.db", "1.10.0")]
    assert [name for name, _ in found] == sorted(name for name, _ in found)


_BAD = {
    "no YAML": b"a: [",
    "a list": b"- a\n",
    "nothing": b"",
    "another form": b"form: 2\nrequirements: {}\nreleases: []\n",
    "no packages": b"form: 1\ncount: 0\nrequirements: {}\n",
    "no range": b"form: 1\ncount: 0\nrequirements: {a: '>>1'}\nreleases: []\n",
    "a path for a digest": b"form: 1\ncount: 1\nrequirements: {}\nreleases: [{name: a, "
    b"version: 1.0.0, sha256: ../../etc, requirements: {}, class_definitions: []}]\n",
    "an object": b"!!python/object/apply:os.system ['true']\n",
    "growing YAML": b"a: &a [x, x]\nb: &b [*a, *a]\nform: 3\nrequirements: *b\n",
    "lists in lists": b"[" * 1_000_000,
    "mappings in mappings": b"{a: " * 200_000,
    "aliases that double": b"a: &a [x, x]\n"
    + b"".join(b"%c: &%c [*%c, *%c]\n" % (n + 1, n + 1, n, n) for n in range(97, 122))
    + b"form: *z\nrequirements: {}\nreleases: []\n",
    "no UTF-8": b"\xff\xfe\xff",
}


@pytest.mark.parametrize("content", _BAD.values(), ids=_BAD)
def test_an_invalid_lock_file_is_reported(tmp_path: pathlib.Path, content: bytes) -> None:
    (tmp_path / "lock").write_bytes(content)

    with pytest.raises(loader.LockError, match=r"/lock "):
        loader.Lock.load(tmp_path / "lock")


def test_a_lock_file_that_cannot_be_read_or_written_is_reported(tmp_path: pathlib.Path) -> None:
    with pytest.raises(loader.LockError, match="there is no lock file"):
        loader.Lock.load(tmp_path / "none")
    lock = loader.Lock({}, ())
    with pytest.raises(loader.LockError, match="cannot write"):
        lock.save(tmp_path / "none" / "lock")
    (tmp_path / "folder").mkdir()
    with pytest.raises(loader.LockError, match="cannot write"):
        lock.save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_the_mode_of_the_file_follows_the_umask(tmp_path: pathlib.Path) -> None:
    (tmp_path / "other").touch()
    loader.Lock({}, ()).save(tmp_path / "lock")

    mode = stat.S_IMODE((tmp_path / "lock").stat().st_mode)
    assert mode == stat.S_IMODE((tmp_path / "other").stat().st_mode)


def test_an_engine_refuses_a_lock_with_a_private_package(
    publish: Publish, catalog: GlareCatalog, tmp_path: pathlib.Path
) -> None:
    publish("org.mine", "1.2.0")
    path = tmp_path / "lock"
    loader.Lock.create(catalog, {"org.mine": "1"}).save(path)
    conf = configuration.read(
        tmp_path / "loader.conf",
        {
            "engine": {"packages_cache": tmp_path / "cache"},
            "glare": {"auth_type": "none", "endpoint": "http://127.0.0.1:9"},
            "package_loader": {"lock_file": path},
        },
    )

    with pytest.raises(loader.LockError, match=r"lock_file = .*: org\.mine 1\.2\.0.*: private to"):
        config.package_loader(conf)
    assert loader.LockedCatalog(loader.Lock.load(path), catalog).releases("org.mine")
