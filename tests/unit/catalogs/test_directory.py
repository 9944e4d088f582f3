# SPDX-License-Identifier: Apache-2.0

import hashlib
import logging
import os
import pathlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator

import pytest

import loader
from glare_murano.package import VersionSpec
from glare_murano.package.manifest import FUNCTION_NAMESPACE, PLUGIN_NAMESPACE
from loader.catalogs import directory, spool
from loader.catalogs.directory import DirectoryCatalog
from tests import packages
from tests.plugins import Site

# More than a tick of a file system's clock.
TICK = 0.06

FQN = "org.app"

# A package type for both sides.
MADE = """
from glare_murano.package import Description
from loader.formats.base import PackageBase

CLASSES = {"made.One": [], "made.Two": ["made.One"]}
REQUIREMENTS = {"io.murano": ">=1"}

def describe(manifest, archive):
    return Description(CLASSES, REQUIREMENTS)

class MadePackage(PackageBase):
    classes = tuple(CLASSES)
    requirements = REQUIREMENTS
    ui = None

    def get_class(self, name):
        raise NotImplementedError
"""


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "packages"
    folder.mkdir()
    return folder


@pytest.fixture
def put(root: pathlib.Path) -> Callable[..., pathlib.Path]:
    """Write a package into a directory."""

    def write(where: str, version: str | None, name: str = FQN, **keys: object) -> pathlib.Path:
        return packages.write(root / where, packages.content(name, version, **keys))

    return write


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The packages that have been read, as they are read."""
    names: list[str] = []
    really = directory.read_contents

    def counting(archive: object) -> object:
        contents = really(archive)  # type: ignore[arg-type]
        names.append(f"{contents.manifest.fqn} {contents.manifest.version}")
        return contents

    for module in (directory, spool):
        monkeypatch.setattr(module, "read_contents", counting)
    return names


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The warnings since the last call."""

    def take() -> list[str]:
        found = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
        caplog.clear()
        return found

    return take


Put = Callable[..., pathlib.Path]
Warnings = Callable[[], list[str]]


def _versions(catalog: DirectoryCatalog, fqn: str = FQN) -> list[str]:
    return [str(release.version) for release in catalog.releases(fqn)]


def _settled(catalog: DirectoryCatalog) -> list[str]:
    """Query until new files are old enough to be recognized by their times."""
    time.sleep(TICK)
    return _versions(catalog)


def test_the_version_aware_layout_is_understood(
    root: pathlib.Path, put: Put, warnings: Warnings
) -> None:
    put("org.app/1.0.0", "1.0.0")
    put("org.app/1.10", "1.10.0")
    put("org.app/1.2.0", "1.2.0")
    put("org.app/dev", None)
    put("Plain", "3.0.0", "org.plain")
    (root / "any.name.zip").write_bytes(packages.package("org.zipped", "4.0.0"))
    catalog = DirectoryCatalog(root)

    assert _versions(catalog) == ["1.10.0", "1.2.0", "1.0.0", "0.0.0"]
    assert _versions(catalog, "org.plain") == ["3.0.0"]
    assert _versions(catalog, "org.zipped") == ["4.0.0"]
    (found,) = (r for r in catalog.releases(FQN) if str(r.version) == "1.2.0")
    assert catalog.directory(found) == root / "org.app" / "1.2.0"
    defining = catalog.releases_defining("org.app.Thing")
    assert [str(release.version) for release in defining] == ["1.10.0", "1.2.0", "1.0.0", "0.0.0"]
    known = catalog.releases_of([FQN, "org.nothing", "org.zipped"])
    assert sorted(map(str, known)) == [
        "org.app 0.0.0",
        "org.app 1.0.0",
        "org.app 1.10.0",
        "org.app 1.2.0",
        "org.zipped 4.0.0",
    ]
    assert warnings() == []


def test_a_package_in_development_has_the_version_of_its_manifest(
    put: Put, root: pathlib.Path
) -> None:
    put("org.app/1.0.0", "1.0.0")
    dev = put("org.app/dev", "2.0.0")
    catalog = DirectoryCatalog(root)

    assert _versions(catalog) == ["2.0.0", "1.0.0"]

    time.sleep(TICK)
    packages.write(dev, packages.content(FQN, "2.1.0"))
    assert _versions(catalog) == ["2.1.0", "1.0.0"]


def test_a_released_version_counts_before_the_same_one_under_work(
    put: Put, root: pathlib.Path, warnings: Warnings
) -> None:
    put("org.app/dev", "1.0.0")
    released = put("org.app/zzz", "1.0.0")
    catalog = DirectoryCatalog(root)

    assert [catalog.directory(release) for release in catalog.releases(FQN)] == [released]
    (warning,) = warnings()
    for word in ("org.app 1.0.0", "org.app/dev", "org.app/zzz"):
        assert word in warning

    shutil.rmtree(released)
    assert [catalog.directory(release) for release in catalog.releases(FQN)] == [
        root / "org.app" / "dev"
    ]


@pytest.mark.parametrize("where", ["org.app/1.2.0", "org.other/1.3.0", "org.other/dev"])
def test_the_manifest_counts_if_the_directorys_name_disagrees(
    put: Put, root: pathlib.Path, warnings: Warnings, where: str
) -> None:
    put(where, "1.3.0")
    catalog = DirectoryCatalog(root)

    assert _versions(catalog) == ["1.3.0"]
    (warning,) = warnings()
    assert where in warning
    assert "org.app 1.3.0" in warning
    assert _versions(catalog) == ["1.3.0"]
    assert warnings() == []


def test_the_catalogues_directory_may_be_a_package(put: Put, root: pathlib.Path) -> None:
    folder = put("org.app/1.0.0", "1.0.0")
    put("org.app/1.0.0/Resources/inner", "9.0.0")

    assert _versions(DirectoryCatalog(folder)) == ["1.0.0"]
    assert _versions(DirectoryCatalog(root)) == ["1.0.0"]


def test_a_zip_file_is_loaded_by_its_digest(root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    data = packages.package(FQN, "1.0.0")
    path = root / "app.ZIP"
    path.write_bytes(data)
    catalog = DirectoryCatalog(root)
    cache = loader.Cache(tmp_path / "cache")

    (release,) = catalog.releases(FQN)
    package = loader.PackageLoader([catalog], cache).load(FQN, VersionSpec.of("1"))

    assert (catalog.directory(release), release.size) == (None, len(data))
    assert release.digest == hashlib.sha256(data).hexdigest()
    assert package.full_name == FQN

    path.write_bytes(packages.package(FQN, "1.0.0", Author="Somebody else"))
    with pytest.raises(loader.DigestMismatch):
        loader.Cache(tmp_path / "other").package(release.digest, lambda: catalog.fetch(release))
    path.unlink()
    with pytest.raises(loader.CatalogError, match=r"app\.ZIP"):
        list(catalog.fetch(release))


@pytest.mark.usefixtures("read")
def test_every_change_is_seen_by_the_next_query(put: Put, root: pathlib.Path) -> None:
    catalog = DirectoryCatalog(root)
    assert _versions(catalog) == []

    first = put("org.app/1.0.0", "1.0.0")
    assert _versions(catalog) == ["1.0.0"]

    put("deep/down/there", "1.1.0")
    assert _versions(catalog) == ["1.1.0", "1.0.0"]

    packages.write(first, packages.content(FQN, "1.0.5"))
    assert _versions(catalog) == ["1.1.0", "1.0.5"]

    (root / "app.zip").write_bytes(packages.package(FQN, "2.0.0"))
    assert _versions(catalog) == ["2.0.0", "1.1.0", "1.0.5"]

    (root / "app.zip").write_bytes(packages.package(FQN, "2.0.1"))
    assert _versions(catalog) == ["2.0.1", "1.1.0", "1.0.5"]

    shutil.rmtree(root / "deep")
    (root / "app.zip").unlink()
    assert _versions(catalog) == ["1.0.5"]


def test_only_changed_packages_are_read(put: Put, root: pathlib.Path, read: list[str]) -> None:
    folders = [put(f"org.app/1.{minor}.0", f"1.{minor}.0") for minor in range(5)]
    (root / "app.zip").write_bytes(packages.package(FQN, "2.0.0"))
    catalog = DirectoryCatalog(root)
    _settled(catalog)
    assert len(read) == 6
    read.clear()

    for _ in range(3):
        list(catalog.releases_of([FQN, "org.other"]))
        list(catalog.releases_defining("org.app.Thing"))
    assert read == []

    class_file = folders[3] / "Classes" / "Thing.yaml"
    class_file.write_text("Name: org.app.Thing\n")
    put("org.app/1.7.0", "1.7.0")
    assert len(_settled(catalog)) == 7
    assert read == ["org.app 1.3.0", "org.app 1.7.0"]
    read.clear()

    shutil.rmtree(folders[0])
    assert len(_settled(catalog)) == 6
    assert read == []


def test_a_change_within_one_tick_of_the_clock_is_seen(put: Put, root: pathlib.Path) -> None:
    catalog = DirectoryCatalog(root)
    for patch in range(10, 40):
        put("org.app", f"1.0.{patch}")
        assert _versions(catalog) == [f"1.0.{patch}"]


def test_a_broken_package_is_left_out_with_one_warning_and_tried_again_when_it_changes(
    put: Put, root: pathlib.Path, read: list[str], warnings: Warnings
) -> None:
    put("org.app/1.0.0", "1.0.0")
    broken = put("org.app/2.0.0", "2.0.0")
    (broken / "Classes" / "Thing.yaml").write_text("Name: [")
    (root / "half.zip").write_bytes(packages.package(FQN, "3.0.0")[:-50])
    catalog = DirectoryCatalog(root)

    for _ in range(3):
        assert _settled(catalog) == ["1.0.0"]
    logged = warnings()
    assert len(logged) == 2
    assert any("org.app/2.0.0" in text and "Thing.yaml" in text for text in logged)
    assert any("half.zip" in text for text in logged)

    (broken / "Classes" / "Thing.yaml").write_text("Name: org.app.Thing\n")
    assert _versions(catalog) == ["2.0.0", "1.0.0"]
    (broken / "manifest.yaml").write_text("FullName: [")
    assert _versions(catalog) == ["1.0.0"]
    (warning,) = warnings()
    assert "org.app/2.0.0" in warning


def test_a_package_that_changes_while_it_is_read_is_not_used(
    put: Put, root: pathlib.Path, warnings: Warnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = put("org.app/1.0.0", "1.0.0")
    catalog = DirectoryCatalog(root)
    really = directory.read_contents

    def writing(archive: object) -> object:
        contents = really(archive)  # type: ignore[arg-type]
        packages.write(folder, {"Resources/late.txt": b"still copied"})
        return contents

    with monkeypatch.context() as patch:
        patch.setattr(directory, "read_contents", writing)
        assert _versions(catalog) == []
    (warning,) = warnings()
    assert "changed while being read" in warning

    assert _versions(catalog) == ["1.0.0"]


def test_a_package_is_not_there_before_its_files_are(put: Put, root: pathlib.Path) -> None:
    """However its files arrive, one after the other, it is used when the last has come."""
    whole = put("org.app/1.0.0", "1.0.0", Classes={"org.app.A": "A.yaml", "org.app.B": "B.yaml"})
    files = [path for path in whole.rglob("*") if path.is_file()]
    for order in (sorted(files), sorted(files, reverse=True)):
        target = root.parent / order[0].name
        catalog = DirectoryCatalog(target)
        for count, source in enumerate(order, 1):
            copy = target / "package" / source.relative_to(whole)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
            assert _versions(catalog) == (["1.0.0"] if count == len(order) else [])


def test_hidden_entries_are_left_out(put: Put, root: pathlib.Path) -> None:
    hidden = put(".new", "1.0.0")
    (root / ".new.zip").write_bytes(packages.package(FQN, "2.0.0"))
    catalog = DirectoryCatalog(root)
    assert _versions(catalog) == []

    hidden.rename(root / "new")
    (root / ".new.zip").rename(root / "new.zip")
    assert _versions(catalog) == ["2.0.0", "1.0.0"]


def test_links_to_targets_outside_are_logged_and_not_followed(
    put: Put, root: pathlib.Path, tmp_path: pathlib.Path, warnings: Warnings
) -> None:
    outside = packages.write(tmp_path / "out", packages.content("org.out"))
    zipped = tmp_path / "out.zip"
    zipped.write_bytes(packages.package("org.out", "2.0.0"))
    put("org.app/1.0.0", "1.0.0")
    (root / "org.app" / "current").symlink_to("1.0.0")
    (root / "folder").symlink_to(outside)
    (root / "archive.zip").symlink_to(zipped)
    (root / "README").symlink_to("/etc/hostname")
    (root / "round").symlink_to(root)
    linked = put("linked", "1.0.0", "org.linked")
    (linked / "Resources").symlink_to(outside)
    catalog = DirectoryCatalog(root)

    assert _versions(catalog) == ["1.0.0"]
    assert _versions(catalog, "org.out") == _versions(catalog, "org.linked") == []
    logged = "\n".join(warnings())
    for path in (root / "folder", root / "archive.zip", linked):
        assert str(path) in logged
    for path in ("README", "round", "current"):
        assert path not in logged


def test_the_catalogues_directory_may_be_a_link_that_is_moved(
    root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    for version in ("1.0.0", "2.0.0"):
        packages.write(root / version / "app", packages.content(FQN, version))
    link = tmp_path / "link"
    link.symlink_to(root / "1.0.0")
    catalog = DirectoryCatalog(link)
    assert _settled(catalog) == ["1.0.0"]

    link.unlink()
    link.symlink_to(root / "2.0.0")
    assert _versions(catalog) == ["2.0.0"]


def test_a_missing_directory_is_logged_and_found_later(
    root: pathlib.Path, put: Put, warnings: Warnings
) -> None:
    catalog = DirectoryCatalog(root / "later")

    assert _versions(catalog) == _versions(catalog) == []
    (warning,) = warnings()
    assert str(root / "later") in warning

    put("later/app", "1.0.0")
    assert _versions(catalog) == ["1.0.0"]


@pytest.fixture
def as_nobody(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Without the rights of root, to whom every file is open."""
    # Not into log files that other tests have opened, which are root's.
    monkeypatch.setattr(directory.LOG, "propagate", False)
    monkeypatch.setattr(directory.LOG, "handlers", [caplog.handler])
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.usefixtures("as_nobody")
def test_unreadable_entries_are_logged_and_the_rest_is_found(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Not below pytest's own folder, which is closed to everybody else.
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        names = ("org.open", "org.manifest", "org.classes")
        for name in names:
            packages.write(root / name, packages.content(name))
        (root / "closed").mkdir()
        (root / "org.zip").write_bytes(packages.package("org.zip"))
        closed = [
            root / "closed",
            root / "org.zip",
            root / "org.manifest" / "manifest.yaml",
            root / "org.classes" / "Classes",
        ]
        for path in closed:
            path.chmod(0)
        catalog = DirectoryCatalog(root)

        assert [str(release) for release in catalog.releases_of([*names, "org.zip"])] == [
            "org.open 1.0.0"
        ]
        for path in closed:
            assert str(path) in caplog.text
            path.chmod(0o755)
        assert len(list(catalog.releases_of([*names, "org.zip"]))) == 4


def test_archives_that_break_a_rule_are_left_out_as_packages_are(
    root: pathlib.Path, warnings: Warnings
) -> None:
    (root / "bad.zip").write_bytes(packages.package(FQN, more={"../evil": b"x"}))
    catalog = DirectoryCatalog(root)

    assert _versions(catalog) == []
    (warning,) = warnings()
    assert "path-escape" in warning


def test_the_files_of_a_package_type_are_read_again_when_they_change(
    put: Put, root: pathlib.Path
) -> None:
    path = put("hot", "1.0.0", Format="Heat.HOT/1.0", Type="Application", Classes=None)
    template = path / "template.yaml"
    template.write_bytes(b"resources: {}\n")
    catalog = DirectoryCatalog(root)
    (release,) = catalog.releases(FQN)
    assert release.classes == {FQN}
    time.sleep(TICK)

    with template.open("ab") as stream:
        stream.write(b"parameters: []\n")

    assert list(catalog.releases(FQN)) == []


def test_what_a_plug_in_generates_is_planned_locked_and_loaded(
    root: pathlib.Path, tmp_path: pathlib.Path, site: Site
) -> None:
    points = {
        FUNCTION_NAMESPACE: {"Test.Made/1.0": "made_plugin:describe"},
        PLUGIN_NAMESPACE: {"Test.Made/1.0": "made_plugin:MadePackage"},
    }
    site.install("made", "1.0", points, {"made_plugin": MADE})
    for version in ("0.5.0", "2.5.0"):
        (root / f"{version}.zip").write_bytes(packages.package("io.murano", version))
    made = packages.package(FQN, Format="Test.Made/1.0", Classes=None)
    (root / "made.zip").write_bytes(made)
    catalog = DirectoryCatalog(root)

    (release,) = catalog.releases_defining("made.Two")
    lock = loader.Lock.create([catalog], {FQN: "1"})
    closures = []
    for source in (catalog, loader.LockedCatalog(lock, catalog)):
        with loader.PackageLoader(source, tmp_path / "cache") as package_loader:
            closures.append([str(p) for p in package_loader.load_all(FQN, "1")])

    # The package type's own default, in place of io.murano 0.
    assert {fqn: str(spec) for fqn, spec in release.requirements.items()} == {
        "io.murano": ">=1",
        FQN: "1",
    }
    assert release.classes == {"made.One", "made.Two"}
    assert closures == [[f"<MadePackage {FQN} 1.0.0>", "<MuranoPLPackage io.murano 2.5.0>"]] * 2
