# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Package types, found among the plug-ins that are installed."""

import pathlib
import time
from typing import Any

import pytest

import loader
from glare_murano.package import InvalidManifest
from glare_murano.package.manifest import PLUGIN_NAMESPACE
from glare_murano.package.manifest import Manifest
from loader.formats import PackageTypes
from tests import packages
from tests.plugins import Site

# As a plug-in for Murano is written, down to the names of the arguments.
PLUGIN = """
prepared = []

class PlainPackage:
    def __init__(self, format_name, runtime_version, source_directory, manifest):
        self.arguments = (format_name, runtime_version, source_directory, manifest)

    @staticmethod
    def init_plugin():
        prepared.append(True)
"""


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A package of the format ``Test.Plain``."""
    content = packages.manifest(
        "org.test", "1.10", Format="Test.Plain/1", Classes=None, Meta={"key": ["value"]}
    )
    return packages.write(tmp_path / "package", packages.files(content))


def test_murano_pl_is_read_in_all_its_versions(tmp_path: pathlib.Path) -> None:
    for minor in range(5):
        content = packages.files(packages.manifest("org.test", Format=f"1.{minor}"))
        package = PackageTypes().load(packages.write(tmp_path / str(minor), content))

        assert package.format_name == "MuranoPL"
        assert str(package.runtime_version) == f"1.{minor}.0"
        assert list(package.classes) == ["org.test.Thing"]


def test_a_plug_in_gets_what_murano_would_give_it(site: Site, folder: pathlib.Path) -> None:
    point = {"Test.Plain/1.0": "plain_plugin:PlainPackage"}
    site.install("plain", "1.0", {PLUGIN_NAMESPACE: point}, {"plain_plugin": PLUGIN})
    types = PackageTypes()

    package = types.load(folder)
    types.load(folder)

    name, version, source, manifest = package.arguments  # type: ignore[attr-defined]
    assert (name, str(version), source) == ("Test.Plain", "1.0.0", str(folder))
    assert manifest["FullName"] == "org.test"
    assert manifest["Version"] == "1.10"
    import plain_plugin

    assert plain_plugin.prepared == [True]


def test_a_format_that_nobody_reads_is_told_with_those_that_are_installed(
    site: Site, folder: pathlib.Path
) -> None:
    point = {"Test.Plain/1.0": "plain_plugin:PlainPackage"}
    types = PackageTypes()
    site.install("plain", "1.0", {PLUGIN_NAMESPACE: point}, {"plain_plugin": PLUGIN})

    with pytest.raises(loader.UnsupportedFormat) as refusal:
        types.load(folder)

    for word in ("org.test 1.10.0", "Test.Plain/1.0.0", "MuranoPL/1.4.0", "Heat.HOT/1.0.0"):
        assert word in str(refusal.value)


def test_a_plug_in_that_cannot_be_imported_is_told(site: Site, folder: pathlib.Path) -> None:
    point = {"Test.Plain/1.0": "plain_plugin:PlainPackage"}
    code = "raise RuntimeError('a library is missing')"
    site.install("plain", "1.0", {PLUGIN_NAMESPACE: point}, {"plain_plugin": code})

    with pytest.raises(loader.UnsupportedFormat, match="a library is missing"):
        PackageTypes().load(folder)


def test_an_operator_can_leave_plug_ins_out(site: Site, folder: pathlib.Path) -> None:
    point = {"Test.Plain/1.0": "plain_plugin:PlainPackage"}
    site.install("plain", "1.0", {PLUGIN_NAMESPACE: point}, {"plain_plugin": PLUGIN})

    with pytest.raises(loader.UnsupportedFormat, match="not enabled"):
        PackageTypes(enabled=["another"]).load(folder)
    assert PackageTypes(enabled=["plain"]).load(folder) is not None


def _cached(folder: pathlib.Path) -> dict[str, Any]:
    """What a plug-in is told of a package in a cache, by a new deployment."""
    manifest: dict[str, Any] = PackageTypes().load_cached(folder).arguments[3]  # type: ignore[attr-defined]
    return manifest


def test_what_a_plug_in_writes_to_a_manifest_is_its_own(site: Site, folder: pathlib.Path) -> None:
    point = {"Test.Plain/1.0": "plain_plugin:PlainPackage"}
    site.install("plain", "1.0", {PLUGIN_NAMESPACE: point}, {"plain_plugin": PLUGIN})
    first = _cached(folder)
    first["Tags"] = ["of this deployment"]
    first["Meta"]["key"].append("of this deployment")

    again = _cached(folder)

    assert again["FullName"] == "org.test"
    assert "Tags" not in again
    assert again["Meta"] == {"key": ["value"]}


def test_a_cached_manifest_is_read_once(
    site: Site, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = {"Test.Plain/1.0": "plain_plugin:PlainPackage"}
    site.install("plain", "1.0", {PLUGIN_NAMESPACE: point}, {"plain_plugin": PLUGIN})
    _cached(folder)
    monkeypatch.setattr(Manifest, "parse", None)

    assert _cached(folder)["FullName"] == "org.test"
    with pytest.raises(TypeError):
        PackageTypes().load(folder)


def test_a_manifest_that_was_mended_is_read_anew(folder: pathlib.Path) -> None:
    damaged = packages.manifest("org.tesx", Classes={})
    packages.write(folder, packages.files(damaged))
    assert PackageTypes().load_cached(folder).full_name == "org.tesx"
    # As coarse as the kernel's ticks.
    time.sleep(0.02)
    packages.write(folder, packages.files(packages.manifest("org.test", Classes={})))

    assert PackageTypes().load_cached(folder).full_name == "org.test"


def test_a_large_manifest_is_not_kept(tmp_path: pathlib.Path) -> None:
    def write(author: str) -> pathlib.Path:
        content = packages.manifest("org.test", Author=author, Description="many words " * 1000)
        return packages.write(tmp_path, packages.files(content))

    for author in ("the first", "the second"):
        assert PackageTypes().load_cached(write(author)).author == author


@pytest.mark.parametrize("is_folder", [False, True])
def test_what_has_no_manifest_is_told_each_time(tmp_path: pathlib.Path, is_folder: bool) -> None:
    if is_folder:
        packages.write(tmp_path, {"manifest.yaml/FullName": b"org.test"})
    for _ in range(2):
        with pytest.raises(InvalidManifest, match="manifest-missing"):
            PackageTypes().load_cached(tmp_path)
