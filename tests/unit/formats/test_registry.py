# SPDX-License-Identifier: Apache-2.0

"""Package types, found among the plug-ins that are installed."""

import pathlib
import time
from collections.abc import Callable
from typing import Any

import pytest
import yaml

import loader
from glare_murano.package import Archive, InvalidArchive, InvalidManifest, Limits, parse_version
from glare_murano.package.manifest import PLUGIN_NAMESPACE, Manifest
from loader.formats.base import Package, PackageBase
from loader.formats.muranopl import MuranoPLPackage
from loader.formats.registry import PackageTypes
from loader.formats.source import ArchiveSource, DirectorySource
from tests import packages
from tests.plugins import Site

# As a plug-in for Murano is written, down to the names of the arguments.
PLUGIN = """
prepared = []

class PlainPackage:
    def __init__(self, format_name, runtime_version, source_directory, manifest):
        self.arguments = (format_name, runtime_version, source_directory, manifest)
        self.full_name, self.version = manifest["FullName"], "1.10.0"

    @staticmethod
    def init_plugin():
        prepared.append(True)
"""

# As a plug-in for this loader is written, which extends a built-in type.
DERIVED = """
from loader.formats.muranopl import MuranoPLPackage

class DerivedPackage(MuranoPLPackage):
    def __init__(self, format_name, runtime_version, source_directory, manifest):
        super().__init__(format_name, runtime_version, source_directory, manifest)
        self.given = source_directory
"""


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A package of the format ``Test.Plain``."""
    content = packages.manifest(
        "org.test", "1.10", Format="Test.Plain/1", Classes=None, Meta={"key": ["value"]}
    )
    return packages.write(tmp_path / "package", packages.files(content))


def test_the_interface_has_the_documented_members() -> None:
    required = {
        "full_name", "version", "classes", "requirements", "package_type", "display_name",
        "description", "author", "supplier", "tags", "logo", "supplier_logo", "ui",
        "get_class", "get_resource",
    }  # fmt: skip
    optional = {"format_name", "runtime_version", "source_directory", "blob", "read_class"}

    assert Package.__abstractmethods__ == required
    assert {name for name in vars(Package) if not name.startswith("_")} == required | optional
    left_to_plug_ins = {"classes", "requirements", "ui", "get_class"}
    assert PackageBase.__abstractmethods__ == left_to_plug_ins


def test_murano_pl_is_read_in_all_its_versions(tmp_path: pathlib.Path) -> None:
    for minor in range(5):
        content = packages.content("org.test", Format=f"1.{minor}")
        package = PackageTypes().load(
            DirectorySource(packages.write(tmp_path / str(minor), content))
        )

        assert package.format_name == "MuranoPL"
        assert str(package.runtime_version) == f"1.{minor}.0"
        assert list(package.classes) == ["org.test.Thing"]


def test_a_plug_in_gets_the_arguments_that_murano_passes(site: Site, folder: pathlib.Path) -> None:
    point = {"Test.Plain/1.0": "plain_plugin:PlainPackage"}
    site.install("plain", "1.0", {PLUGIN_NAMESPACE: point}, {"plain_plugin": PLUGIN})
    types = PackageTypes()

    package = types.load(DirectorySource(folder))
    types.load(DirectorySource(folder))

    name, version, source, manifest = package.arguments  # type: ignore[attr-defined]
    assert (name, str(version), source) == ("Test.Plain", "1.0.0", str(folder))
    assert manifest["FullName"] == "org.test"
    assert manifest["Version"] == "1.10"
    import plain_plugin

    assert plain_plugin.prepared == [True]


def test_an_unknown_format_is_reported_with_the_installed_ones(
    site: Site, folder: pathlib.Path
) -> None:
    point = {"Test.Plain/1.0": "plain_plugin:PlainPackage"}
    types = PackageTypes()
    site.install("plain", "1.0", {PLUGIN_NAMESPACE: point}, {"plain_plugin": PLUGIN})

    with pytest.raises(loader.UnsupportedFormat) as refusal:
        types.load(DirectorySource(folder))

    for word in ("org.test 1.10.0", "Test.Plain/1.0.0", "MuranoPL/1.4.0", "Heat.HOT/1.0.0"):
        assert word in str(refusal.value)


def test_a_plug_in_that_cannot_be_imported_is_reported(site: Site, folder: pathlib.Path) -> None:
    point = {"Test.Plain/1.0": "plain_plugin:PlainPackage"}
    code = "raise RuntimeError('a library is missing')"
    site.install("plain", "1.0", {PLUGIN_NAMESPACE: point}, {"plain_plugin": code})

    with pytest.raises(loader.UnsupportedFormat, match="a library is missing"):
        PackageTypes().load(DirectorySource(folder))


@pytest.mark.parametrize("computed", ['"org.other", "1.10.0"', '"org.test", "2.0.0"'])
def test_a_plug_in_computes_no_other_name_or_version(
    site: Site, folder: pathlib.Path, computed: str
) -> None:
    point = {"Test.Plain/1.0": "plain_plugin:PlainPackage"}
    code = PLUGIN.replace('manifest["FullName"], "1.10.0"', computed)
    site.install("plain", "1.0", {PLUGIN_NAMESPACE: point}, {"plain_plugin": code})

    with pytest.raises(loader.UnsupportedFormat) as refusal:
        PackageTypes().load(DirectorySource(folder))

    name, version = (part.strip('" ') for part in computed.split(","))
    assert str(refusal.value) == (
        f"org.test 1.10.0 has the format Test.Plain/1.0.0, whose plug-in computes {name} "
        f"{version}; name and version must be those of the manifest"
    )


def test_an_operator_can_leave_plug_ins_out(site: Site, folder: pathlib.Path) -> None:
    point = {"Test.Plain/1.0": "plain_plugin:PlainPackage"}
    site.install("plain", "1.0", {PLUGIN_NAMESPACE: point}, {"plain_plugin": PLUGIN})

    with pytest.raises(loader.UnsupportedFormat, match="not enabled"):
        PackageTypes(enabled=["another"]).load(DirectorySource(folder))
    assert PackageTypes(enabled=["plain"]).load(DirectorySource(folder)) is not None


class _Kept:
    """A package's archive, which may be replaced, and a directory for its files."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._archive = folder / "archive"
        self.unpacked = 0

    def replace(self, files: dict[str, bytes]) -> None:
        # As coarse as the kernel's ticks.
        time.sleep(0.02)
        self._archive.write_bytes(packages.zipped(files))

    def source(self) -> ArchiveSource:
        """The source that a new deployment has."""
        return ArchiveSource(lambda: self._archive, self._unpack)

    def load(self) -> Any:
        return PackageTypes().load(self.source())

    def _unpack(self) -> pathlib.Path:
        self.unpacked += 1
        target = self._folder / str(self.unpacked)
        with Archive.open(self._archive) as archive:
            archive.unpack(target)
        return target


@pytest.fixture
def kept(tmp_path: pathlib.Path) -> _Kept:
    """An archive of the format ``Test.Plain``."""
    kept = _Kept(tmp_path)
    content = packages.manifest(
        "org.test", "1.10", Format="Test.Plain/1", Classes=None, Meta={"key": ["value"]}
    )
    kept.replace(packages.files(content))
    return kept


def test_a_plug_in_gets_a_directory_with_the_files_of_an_archive(site: Site, kept: _Kept) -> None:
    point = {"Test.Plain/1.0": "plain_plugin:PlainPackage"}
    site.install("plain", "1.0", {PLUGIN_NAMESPACE: point}, {"plain_plugin": PLUGIN})

    *_, source, _ = kept.load().arguments

    assert type(source) is str
    assert (pathlib.Path(source) / "manifest.yaml").is_file()
    assert kept.unpacked == 1


def test_a_package_type_of_ones_own_may_take_a_source(site: Site, kept: _Kept) -> None:
    point = {"Test.Plain/1.0": "plain_plugin:PlainPackage"}
    code = f"{PLUGIN}\n    takes_source = True\n"
    site.install("plain", "1.0", {PLUGIN_NAMESPACE: point}, {"plain_plugin": code})

    *_, source, _ = kept.load().arguments

    assert source.read("manifest.yaml").startswith(b"Author: ")
    assert kept.unpacked == 0


def test_a_type_that_is_derived_from_ours_gets_a_directory(site: Site, kept: _Kept) -> None:
    point = {"Test.Plain/1.0": "derived_plugin:DerivedPackage"}
    site.install("derived", "1.0", {PLUGIN_NAMESPACE: point}, {"derived_plugin": DERIVED})

    package = kept.load()

    assert type(package.given) is str
    assert (pathlib.Path(package.given) / "manifest.yaml").is_file()
    assert kept.unpacked == 1
    assert package.full_name == "org.test"


@pytest.mark.parametrize("kind", [str, pathlib.Path])
def test_a_package_may_be_made_with_a_path_of_any_kind(
    tmp_path: pathlib.Path, kind: Callable[[pathlib.Path], str | pathlib.Path]
) -> None:
    content = packages.manifest("org.test", UI="form.yaml")
    files = {**packages.files(content), "UI/form.yaml": b"Version: 2\n", "logo.png": b"\x89PNG"}
    folder = packages.write(tmp_path / "package", files)
    made: Any = MuranoPLPackage

    package = made(
        "MuranoPL", parse_version("1"), kind(folder), yaml.safe_load(files["manifest.yaml"])
    )

    assert package.logo == b"\x89PNG"
    assert package.ui == b"Version: 2\n"
    assert package.source_directory == str(folder)
    assert package.get_resource("a") == str(folder / "Resources" / "a")


def test_a_plug_ins_changes_of_a_manifest_stay_its_own(site: Site, kept: _Kept) -> None:
    point = {"Test.Plain/1.0": "plain_plugin:PlainPackage"}
    site.install("plain", "1.0", {PLUGIN_NAMESPACE: point}, {"plain_plugin": PLUGIN})
    first = kept.load().arguments[3]
    first["Tags"] = ["of this deployment"]
    first["Meta"]["key"].append("of this deployment")

    again = kept.load().arguments[3]

    assert again["FullName"] == "org.test"
    assert "Tags" not in again
    assert again["Meta"] == {"key": ["value"]}


def test_the_manifest_of_an_archive_is_read_once(
    site: Site, folder: pathlib.Path, kept: _Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = {"Test.Plain/1.0": "plain_plugin:PlainPackage"}
    site.install("plain", "1.0", {PLUGIN_NAMESPACE: point}, {"plain_plugin": PLUGIN})
    kept.load()
    monkeypatch.setattr(Manifest, "parse", None)

    assert kept.load().arguments[3]["FullName"] == "org.test"
    with pytest.raises(TypeError):
        PackageTypes().load(DirectorySource(folder))


def test_a_manifest_that_was_mended_is_read_anew(kept: _Kept) -> None:
    for name in ("org.tesx", "org.test"):
        kept.replace(packages.content(name, Classes={}))
        assert kept.load().full_name == name


def test_a_limit_holds_for_an_archive_read_under_another(kept: _Kept) -> None:
    kept.replace(packages.content("org.test"))
    assert kept.source().manifest().fqn == "org.test"

    small = ArchiveSource(lambda: kept._archive, kept._unpack, Limits(archive_size=10))
    with pytest.raises(InvalidArchive, match="archive-size"):
        small.manifest()


@pytest.mark.parametrize("files", [{"other": b""}, {"manifest.yaml/FullName": b"org.test"}])
def test_a_missing_manifest_is_reported_each_time(
    kept: _Kept, tmp_path: pathlib.Path, files: dict[str, bytes]
) -> None:
    kept.replace(files)
    folder = DirectorySource(packages.write(tmp_path / "folder", files))
    for _ in range(2):
        with pytest.raises(InvalidManifest, match="manifest-missing"):
            kept.load()
        with pytest.raises(InvalidManifest, match="manifest-missing"):
            PackageTypes().load(folder)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("Other", "'Other' is not a valid version"),
        ("1.5", "'1.5' is newer than MuranoPL/1.4.0"),
        ("muranopl/1.0", "did you mean MuranoPL/1.0.0?"),
    ],
)
def test_an_unknown_format_is_reported_with_the_packages_path(
    kept: _Kept, tmp_path: pathlib.Path, written: str, words: str
) -> None:
    kept.replace(packages.content("org.test", Format=written))

    with pytest.raises(loader.UnsupportedFormat) as refusal:
        kept.load()
    assert str(refusal.value).startswith(f"the package in {tmp_path}/archive: ")
    assert words in str(refusal.value)
    assert kept.unpacked == 0


# As a plug-in for Murano is written, which has no source_directory and no read_class.
CLASSES = """
import os

class ClassesPackage:
    full_name, version, classes = "org.test", "1.10.0", ("org.test.A",)

    def __init__(self, format_name, runtime_version, source_directory, manifest):
        self.path = os.path.join(source_directory, "Things", "A.yaml")

    def get_class(self, name):
        return {result}
"""
CODE = b"Name: org.test.A\n# \xc3\xa4\n"


@pytest.mark.parametrize(
    ("result", "path"),
    [
        (f"{CODE!r}, self.path", "Things/A.yaml"),
        (f"{CODE!r}, 'Things/A.yaml'", "Things/A.yaml"),
        (f"{CODE!r}.decode(), self.path", "Things/A.yaml"),
        (f"{CODE!r}", "org.test.A"),
        (f"{CODE!r}.decode()", "org.test.A"),
    ],
)
def test_a_class_is_read_from_a_package_of_every_plug_in(
    site: Site, folder: pathlib.Path, result: str, path: str
) -> None:
    point = {"Test.Plain/1.0": "classes_plugin:ClassesPackage"}
    code = CLASSES.replace("{result}", result)
    site.install("classes", "1.0", {PLUGIN_NAMESPACE: point}, {"classes_plugin": code})

    package = PackageTypes().load(DirectorySource(folder))

    assert package.read_class("org.test.A") == (CODE, path)
    assert package.source_directory == str(folder)
    assert repr(package) == "<PluginPackage org.test 1.10.0>"
    with pytest.raises(
        KeyError, match=r"org\.test 1\.10\.0 does not define the class org\.test\.B"
    ):
        package.read_class("org.test.B")


def test_a_class_is_read_from_a_package_of_every_built_in_type(tmp_path: pathlib.Path) -> None:
    plain = packages.manifest("org.plain", Classes={"org.plain.A": "deep/A.yaml"})
    hot = packages.manifest("org.hot", Format="Heat.HOT/1.0", Type="Application", Classes=None)
    files = {"template.yaml": b"heat_template_version: 2013-05-23\nresources: {}\n"}
    content = {"plain": packages.files(plain), "hot": {**files, **packages.files(hot)}}
    found = {
        name: PackageTypes().load(DirectorySource(packages.write(tmp_path / name, each)))
        for name, each in content.items()
    }

    code, path = found["plain"].read_class("org.plain.A")
    assert (code, path) == (content["plain"]["Classes/deep/A.yaml"], "Classes/deep/A.yaml")
    code, path = found["hot"].read_class("org.hot")
    assert path == "org.hot"
    assert b'"Name": "org.hot"' in code
    for package in found.values():
        with pytest.raises(KeyError, match="does not define the class"):
            package.read_class("org.other")
