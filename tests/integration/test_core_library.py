# SPDX-License-Identifier: Apache-2.0

"""Murano's core library in the real engine: which may be one, and two releases of it."""

import pathlib
import shutil
from typing import Any

import pytest
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint
from murano.common import engine

from examples import demo
from glare_murano.package.reserved_names import ReservedNames
from loader import DirectoryCatalog, GlareCatalog, NoSuchPackage, PackageLoader
from loader.engine import adapter, extensions
from tests import packages
from tests.integration import publish, tasks

# Without packages in Glare.
PROJECT = "two-core-libraries"
OWNER = {"token": f"alice:{PROJECT}:member", "project_id": PROJECT, "user_id": "alice"}

# Of the newer core library only.
ADDED = """
  added:
    Body:
      Return: from the newer core library
"""

CODE = """\
Namespaces:
  =: {name}
  std: io.murano
  sys: io.murano.system
Name: App
Extends: std:Application
Properties:
  added:
    Usage: Out
    Contract: $.string()
  caught:
    Usage: Out
    Contract: $.string()
  found:
    Usage: Out
    Contract: $.bool()
Methods:
  deploy:
    Body:
      - $.found: $.find(std:Environment) != null
      - Try:
        - $.added: $.added()
        Catch:
          With: 'yaql.language.exceptions.NoMethodRegisteredException'
          Do: {{$.added: null}}
      - Try:
        - Throw: Failure
          Message: {name}
        Catch:
          As: e
          Do: {{$.caught: $e.message}}
  used:
    Scope: Public
    Body:
      - $ancestors: typeinfo($).ancestors.where($.name = 'io.murano.Application')
      - Return:
          own: str(typeinfo(std:Application).version)
          inherited: str($ancestors.single().version)
          resource: new(sys:Resources).string('text')
"""


def _run(model: dict[str, Any], object_id: str, method: str) -> Any:
    answer = tasks.run_model(model, tasks.action(object_id, method), OWNER)
    assert not answer["action"]["isException"], answer["action"]["result"]["details"]
    return answer


@pytest.fixture
def applications(conf: Any, core_library: pathlib.Path, tmp_path: pathlib.Path) -> dict[str, str]:
    """Put two core libraries into the operator's directory, and an application for each.

    :returns: the name of each application -> the version of its core library.
    """
    place = tmp_path / "packages"
    for version in ("0.15.0", "0.16.0"):
        copy = shutil.copytree(core_library / "io.murano", place / "io.murano" / version)
        with (copy / "manifest.yaml").open("a") as file:
            file.write(f"\nVersion: {version}\n")
    with (place / "io.murano/0.16.0/Classes/Application.yaml").open("a") as file:
        file.write(ADDED)
    names = {"org.test.core.old": "0.15", "org.test.core.new": "0.16"}
    for name, required in names.items():
        classes = {f"{name}.App": "App.yaml"}
        content = packages.content(name, Require={"io.murano": required}, Classes=classes)
        content["Classes/App.yaml"] = CODE.format(name=name).encode()
        content["Resources/text"] = name.encode()
        packages.write(place / name, content)
    conf.set_override("load_packages_from", [str(place)], "engine")
    return {name: f"{required}.0" for name, required in names.items()}


def test_applications_of_two_core_libraries_deploy_side_by_side(
    applications: dict[str, str],
) -> None:
    model: dict[str, Any] = {
        "Objects": {
            "?": {"id": "environment", "type": "io.murano.Environment"},
            "name": "two",
            "applications": [{"?": {"id": name, "type": f"{name}.App"}} for name in applications],
        },
        "SystemData": {},
        "project_id": PROJECT,
        "user_id": "alice",
    }

    model = _run(model, "environment", "deploy")["model"]

    assert model["SystemData"]["Packages"] == {
        "io.murano": ["0.15.0", "0.16.0"],
        **{name: ["1.0.0"] for name in applications},
    }
    old, new = model["Objects"]["applications"]
    assert (old["added"], new["added"]) == (None, "from the newer core library")
    assert [app["caught"] for app in (old, new)] == list(applications)
    # The environment itself is of the newer core library.
    assert (old["found"], new["found"]) == (False, True)
    for name, version in applications.items():
        assert _run(model, name, "used")["action"]["result"] == {
            "own": version,
            "inherited": version,
            "resource": name,
        }


# What a core library of a tenant would do.
POSING = """
Namespaces:
  =: io.murano
Name: Posing
Methods:
  read:
    Usage: Static
    Scope: Public
    Body:
      Return: config(rabbitmq, password)
"""


def _posing(folder: pathlib.Path, core_library: pathlib.Path, version: str) -> pathlib.Path:
    """Write the core library with a class more, in a newer version."""
    copy = shutil.copytree(core_library / "io.murano", folder)
    text = (copy / "manifest.yaml").read_text()
    classes = text.replace("Classes:\n", "Classes:\n  io.murano.Posing: Posing.yaml\n")
    assert classes != text
    (copy / "manifest.yaml").write_text(f"{classes}\nVersion: {version}\n")
    (copy / "Classes/Posing.yaml").write_text(POSING)
    return copy


def _classes(package: adapter.EnginePackage) -> set[str]:
    """Return the classes written in Python."""
    return set(package._native_load_queue)


def test_a_private_core_library_is_not_loaded_even_for_its_own_project(
    conf: Any, glare: Any, glare_url: str, core_library: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    folder = _posing(tmp_path / "posing", core_library, "0.99.0")
    (private,) = publish.publish(glare, [folder], public=False)
    owner = private["owner"]
    task_owner = {"token": demo.PUBLISHER_TOKEN, "project_id": owner, "user_id": "publisher"}
    action = {
        "class_name": "io.murano.Posing",
        "pkg_name": None,
        "class_version": None,
        "method": "read",
        "args": {},
    }
    task = {"id": "static", "action": action, **task_owner}

    try:
        with pytest.raises(Exception, match=r"class io\.murano\.Posing .* was not found"):
            engine.StaticActionEndpoint.call_static_action({}, task)
        model = {
            "Objects": {"?": {"id": "e", "type": "io.murano.Environment"}, "name": "e"},
            "SystemData": {},
            "project_id": owner,
            "user_id": "publisher",
        }
        answer = tasks.run_model(model, None, task_owner)
        assert answer["model"]["SystemData"]["Packages"] == {"io.murano": ["0.0.0"]}
    finally:
        glare.delete(f"{publish.ARTIFACTS}/{private['id']}")


def test_the_core_library_of_a_directory_gets_python_classes_and_config(
    conf: Any, core_library: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    _posing(tmp_path / "packages/io.murano", core_library, "0.99.0")
    conf.set_override("load_packages_from", [str(tmp_path / "packages")], "engine")

    read = tasks.call_static("io.murano.Posing", "read", "0.99.0")

    assert read == conf.rabbitmq.password


def test_another_package_of_that_name_gets_neither(
    conf: Any, core_library: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Whatever brought it: only the package object that the loader has loaded counts."""
    _posing(tmp_path / "packages/io.murano", core_library, "0.99.0")
    catalog = DirectoryCatalog(tmp_path / "packages")
    with (
        PackageLoader(catalog, tmp_path / "one") as one,
        PackageLoader(catalog, tmp_path / "two") as two,
    ):
        loader = adapter.EnginePackageLoader(one)
        core = loader.load_package("io.murano", "*")
        package = two.load("io.murano")
        other = adapter.EnginePackage(loader, package, two.release(package))

        assert core.is_core_library
        assert not other.is_core_library
        assert _classes(core) - _classes(other) >= {"io.murano.system.HeatStack"}
        manager = engine.ContextManager()
        functions, _ = manager.create_package_context(core).get_functions("config")
        assert len(functions) == 2
        assert manager.create_package_context(other) is None
        plugin = extensions.ExtensionPackage("io.murano", core.version, {}, {})
        extension = adapter.EngineExtension(loader, plugin)
        assert manager.create_package_context(extension) is None


def test_a_core_library_of_a_project_that_owns_the_name_is_one(
    conf: Any, glare: Any, glare_url: str, core_library: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    folder = _posing(tmp_path / "posing", core_library, "0.98.0")
    (private,) = publish.publish(glare, [folder], public=False)
    owner = private["owner"]
    catalog = GlareCatalog(
        ksa_session.Session(token_endpoint.Token(glare_url, demo.PUBLISHER_TOKEN)),
        project_id=owner,
        endpoint=glare_url,
    )
    # Of two catalogues, the loader chooses by its own file.
    catalogs = [DirectoryCatalog(tmp_path / "none"), catalog]
    allowed = ReservedNames.parse(f"io.murano: [{owner}]".encode(), "names")
    others = ReservedNames.parse(b"io.murano: [somebody]", "names")

    try:
        with PackageLoader(catalogs, tmp_path / "cache", reserved_names=allowed) as loader:
            found = loader.load("io.murano")
            assert str(found.version) == "0.98.0"
            assert loader.is_core_library(found)
        with (
            PackageLoader(catalogs, tmp_path / "cache", reserved_names=others) as loader,
            pytest.raises(NoSuchPackage, match="reserved for project somebody"),
        ):
            loader.load("io.murano")
    finally:
        glare.delete(f"{publish.ARTIFACTS}/{private['id']}")
