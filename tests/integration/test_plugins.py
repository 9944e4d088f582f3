# SPDX-License-Identifier: Apache-2.0

"""Plug-ins in the real engine: package types and extensions written for Murano."""

import pathlib
from typing import Any

import pytest
from murano.common import engine as murano_engine
from murano.dsl import dsl_exception, executor, helpers
from murano.engine import execution_session
from murano.engine import package_loader as murano_package_loader

from examples import demo
from glare_murano.package.manifest import PLUGIN_NAMESPACE
from loader.engine import adapter
from loader.engine.extensions import NAMESPACE
from tests import packages
from tests.plugins import Site, site

__all__ = ["site"]

# Written against Murano's own classes, as its documentation has it.
PACKAGE_TYPE = """
from murano.packages import package_base

class PlainPackage(package_base.PackageBase):
    @property
    def classes(self):
        return [self.full_name]

    @property
    def requirements(self):
        return {}

    @property
    def ui(self):
        return None

    def get_class(self, name):
        with open(self.get_resource("answer")) as stream:
            answer = stream.read()
        text = "Name: %s\\nMethods:\\n  answer:\\n    Usage: Static\\n    Scope: Public\\n"
        return text % name + "    Body:\\n      Return: %s\\n" % answer
"""

# Written against the interface alone, with no member that it does not have.
BARE_PACKAGE_TYPE = """
from glare_murano.package import Version
from loader.formats import Package

class PlainPackage(Package):
    full_name = "org.test.Plain"
    version = Version("1.0.0")
    classes = ("org.test.Plain",)
    requirements = {}
    package_type = "Library"
    display_name = description = author = supplier = logo = supplier_logo = ui = None
    tags = []

    def __init__(self, format_name, runtime_version, source_directory, manifest):
        super().__init__(format_name, runtime_version, source_directory)

    def get_class(self, name):
        text = "Name: %s\\nMethods:\\n  answer:\\n    Usage: Static\\n    Scope: Public\\n"
        return text % name + "    Body:\\n      Return: 42\\n"

    def get_resource(self, name):
        raise NotImplementedError
"""

EXTENSION = """
class Adder:
    def __init__(self, start):
        self._value = start

    def add(self, number):
        self._value += number
        return self._value
"""

USER = """\
Name: {name}.Thing
Namespaces:
  ext: org.test.ext
Methods:
  sum:
    Usage: Static
    Scope: Public
    Body:
      - $adder: new(ext:Adder, start => 40)
      - Return: $adder.add(2)
"""


@pytest.fixture
def folder(conf: Any, tmp_path: pathlib.Path) -> pathlib.Path:
    """A directory whose packages the engine loads."""
    path = tmp_path / "packages"
    path.mkdir()
    conf.set_override("load_packages_from", [str(path)], "engine")
    return path


@pytest.fixture
def extensions(monkeypatch: pytest.MonkeyPatch) -> adapter.PluginLoader:
    """The extensions that are installed now."""
    found = adapter.PluginLoader()
    monkeypatch.setattr(murano_engine, "PLUGIN_LOADER", found)
    return found


def _call(class_name: str, method: str, version: str = "1") -> Any:
    task = {
        "id": "static",
        "action": {
            "class_name": class_name,
            "pkg_name": None,
            "class_version": version,
            "method": method,
            "args": {},
        },
        "token": demo.USER_TOKEN,
        "project_id": demo.PROJECT,
        "user_id": "alice",
    }
    return murano_engine.StaticActionExecutor(task).execute()


@pytest.mark.parametrize("code", [PACKAGE_TYPE, BARE_PACKAGE_TYPE], ids=["murano", "bare"])
def test_a_package_type_written_for_the_interface_works(
    site: Site, folder: pathlib.Path, code: str
) -> None:
    point = {"Test.Plain/1.0": "plain_plugin:PlainPackage"}
    site.install("plain", "1.0", {PLUGIN_NAMESPACE: point}, {"plain_plugin": code})
    content = packages.files(
        packages.manifest("org.test.Plain", Format="Test.Plain/1.0", Classes=None)
    )
    packages.write(folder / "plain", {**content, "Resources/answer": b"42"})

    assert _call("org.test.Plain", "answer") == 42


def test_an_extension_is_a_package_with_the_distributions_name_and_version(
    site: Site, folder: pathlib.Path, extensions: adapter.PluginLoader
) -> None:
    point = {"org.test.ext.Adder": "adder_plugin:Adder"}
    site.install("test-adder", "1.4.2", {NAMESPACE: point}, {"adder_plugin": EXTENSION})
    for name, range_text in (("org.test.user", "1.4"), ("org.test.old", ">=2")):
        content = packages.files(packages.manifest(name, Require={"test-adder": range_text}))
        content["Classes/Thing.yaml"] = USER.format(name=name).encode()
        packages.write(folder / name, content)

    assert _call("org.test.user.Thing", "sum") == 42
    with pytest.raises(dsl_exception.MuranoPlException, match="test-adder"):
        _call("org.test.old.Thing", "sum")


def test_an_extension_reaches_only_its_requirements(
    site: Site, folder: pathlib.Path, extensions: adapter.PluginLoader
) -> None:
    code = EXTENSION + "    murano_requirements = {'org.test.base': '1'}\n"
    point = {"org.test.ext.Adder": "adder_plugin:Adder"}
    site.install("test-adder", "1.4.2", {NAMESPACE: point}, {"adder_plugin": code})
    packages.write(folder / "base", packages.files(packages.manifest("org.test.base")))
    session = execution_session.ExecutionSession()
    session.token, session.project_id = demo.USER_TOKEN, demo.PROJECT

    with murano_package_loader.CombinedPackageLoader(session) as loader:
        extensions.register_in_loader(loader)
        with executor.MuranoDslExecutor(loader, murano_engine.ContextManager(), session):
            package = loader.load_package("test-adder", helpers.parse_version_spec("1"))
            found = package.find_class("org.test.base.Thing")

    assert (found.name, str(found.version)) == ("org.test.base.Thing", "1.0.0")
