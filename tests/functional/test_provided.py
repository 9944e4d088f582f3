# SPDX-License-Identifier: Apache-2.0

"""Requirements on extension plug-ins, which engines provide."""

import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import requests

import loader
from glare_murano.glare.api import middleware
from glare_murano.package import Version, VersionSpec
from glare_murano.resolver import Demand
from glare_murano.wire import Answer, Query
from loader import errors
from loader.catalogs.directory import DirectoryCatalog
from loader.catalogs.glare import GlareCatalog
from tests import packages, processes
from tests.functional.client import Client, refusal

PLUGIN = "org-example-mail"
MAIL = "org.example.mail.Mail"
SetOption = Callable[[str, object], None]


def _activate(client: Client, fqn: str, **require: str) -> requests.Response:
    artifact_id = client.create(fqn, "1.0.0").json()["id"]
    data = packages.package(fqn, Require={name.replace("_", "-"): r for name, r in require.items()})
    assert client.upload(artifact_id, data).status_code == 200
    return client.set(artifact_id, "status", "active")


@pytest.fixture
def wiki(glare: Client, name: str, set_option: SetOption) -> str:
    """An active package that requires a plug-in, of which Glare knows two versions."""
    set_option("provided_packages", [f"{PLUGIN}:1.4", f"{PLUGIN}:2.0.0"])
    answer = _activate(glare, name, org_example_mail=">=1.4,<2")
    assert answer.status_code == 200, answer.text
    return name


def test_a_requirement_on_a_provided_package_is_satisfied(
    glare: Client, admin: Client, wiki: str
) -> None:
    (artifact,) = glare.request("GET", "", params={"name": wiki}).json()["artifacts"]

    assert admin.set(artifact["id"], "visibility", "public").status_code == 200


def test_a_range_without_the_provided_version_is_refused(glare: Client, wiki: str) -> None:
    refused = refusal(_activate(glare, "org.other", org_example_mail=">=3"), 409)

    assert f"{PLUGIN} in the range >=3 (provided by engines: 2.0.0, 1.4.0)" in refused
    assert "option" not in refused


def test_the_refusal_of_an_unknown_requirement_names_the_option(glare: Client, wiki: str) -> None:
    refused = refusal(_activate(glare, "org.other", org_example_db="1"), 409)

    assert "org-example-db in the range 1 (missing, or not visible)" in refused
    assert "the operator names it in the option provided_packages" in refused


def test_an_answer_marks_the_requirement_as_external(glare: Client, wiki: str) -> None:
    answer = glare.resolve(requirements={wiki: "1"}).json()

    requirer = {"name": wiki, "version": "1.0.0"}
    assert answer["external"] == [
        {"name": PLUGIN, "range": ">=1.4,<2", "requirer": requirer, "version": "1.4.0"}
    ]
    assert answer["unsatisfied"] == []

    missing = glare.resolve(requirements={wiki: "1"}, provided={PLUGIN: ["2.1.0"]}).json()
    assert "external" not in missing
    assert [m["provided"] for m in missing["unsatisfied"]] == [["2.1.0"]]


@pytest.mark.parametrize("is_known", [True, False], ids=["by Glare", "by the engine alone"])
def test_a_closure_is_loaded_without_the_provided_package(
    catalog: GlareCatalog, wiki: str, tmp_path: pathlib.Path, set_option: SetOption, is_known: bool
) -> None:
    packages_ = loader.PackageLoader(catalog, tmp_path / "cache")
    if not is_known:
        set_option("provided_packages", [])
        packages_.provide(PLUGIN, Version("1.4.0"))

    loaded = packages_.load_all(wiki)

    assert [package.full_name for package in loaded] == [wiki, "io.murano"]
    with pytest.raises(
        loader.NoSuchPackage,
        match=f"required by {wiki} 1.0.0, .* install the extension plug-in {PLUGIN} 1.4.0 beside",
    ):
        packages_.load_requirement(loaded[0], PLUGIN)


def test_a_loader_of_directories_knows_what_its_engine_brings_along(tmp_path: pathlib.Path) -> None:
    content = packages.manifest("org.wiki", Require={PLUGIN: "1.4", "io.murano": "*"})
    packages.write(tmp_path / "in" / "wiki", packages.files(content))
    packages.write(tmp_path / "in" / "core", packages.content("io.murano", "0.1.0"))

    def load(version: str) -> list[str]:
        packages_ = loader.PackageLoader(DirectoryCatalog(tmp_path / "in"), tmp_path / "cache")
        packages_.provide(PLUGIN, Version(version))
        return [package.full_name for package in packages_.load_all("org.wiki")]

    assert load("1.4.2") == ["org.wiki", "io.murano"]
    with pytest.raises(loader.NoSuchPackage, match=r"provided by engines: 2\.0\.0"):
        load("2.0.0")


def test_subclasses_of_a_class_in_python_are_listed(tmp_path: pathlib.Path) -> None:
    content = packages.content("org.wiki", Require={PLUGIN: "1.4"})
    content["Classes/Thing.yaml"] = b"Name: org.wiki.Thing\nExtends: org.ext.Mail\n"
    packages.write(tmp_path / "in" / "wiki", content)

    def list_subclasses(version: str, package: str | None) -> list[str]:
        packages_ = loader.PackageLoader(DirectoryCatalog(tmp_path / "in"), tmp_path / "cache")
        packages_.provide(PLUGIN, Version(version))
        return [each.name for each in packages_.subclasses("org.ext.Mail", "*", package).found]

    assert list_subclasses("1.4.2", PLUGIN) == ["org.wiki.Thing"]
    assert list_subclasses("2.0.0", PLUGIN) == []
    assert list_subclasses("1.4.2", "org.wiki") == []
    assert list_subclasses("1.4.2", None) == []


def test_a_lock_file_marks_the_requirement_as_external(
    catalog: GlareCatalog, wiki: str, tmp_path: pathlib.Path, set_option: SetOption
) -> None:
    path = tmp_path / "packages.lock"
    lock = loader.Lock.create(catalog, {wiki: "1"})
    lock.save(path)

    assert loader.Lock.load(path) == lock
    assert f"external:\n  {PLUGIN}:\n  - 1.4.0\n" in path.read_text()
    locked = loader.LockedCatalog(loader.Lock.load(path), catalog)
    packages_ = loader.PackageLoader(locked, tmp_path / "cache")
    assert len(packages_.load_all(wiki)) == 2

    set_option("provided_packages", [])
    with pytest.raises(loader.NoSuchPackage, match=PLUGIN):
        loader.Lock.create(catalog, {wiki: "1"})
    assert loader.Lock.create(catalog, {wiki: "1"}, {PLUGIN: ["1.4"]}) == lock
    assert lock.update(catalog) == lock


def _mail_package(fqn: str, version: str = "1.0.0") -> bytes:
    """A package that defines the class of the plug-in."""
    content = packages.content(fqn, version, Classes={MAIL: "Mail.yaml"})
    return packages.zipped({**content, "Classes/Mail.yaml": f"Name: {MAIL}\n".encode()})


def test_a_package_with_the_name_of_a_plugin_is_refused(
    glare: Client, admin: Client, name: str, set_option: SetOption
) -> None:
    early = glare.draft(name, "2.0.0", packages.package(name, "2.0.0"))
    late = glare.create(name, "2.1.0").json()["id"]
    set_option("provided_packages", [f"{name}:1.4.0"])
    expected = (
        f"FullName: {name} is the name of an extension plug-in (1.4.0, in the option "
        f"provided_packages), whose code belongs to the operator of the engines; choose another "
        f"name [plugin-name]"
    )

    assert expected in refusal(glare.upload(late, packages.package(name, "2.1.0")), 400)
    for answer in (
        glare.create(name, "2.2.0"),
        # What was uploaded before the option was set.
        glare.set(early, "status", "active"),
        glare.publish_all([early], "private"),
        admin.publish_all([early], "public"),
    ):
        assert refusal(answer, 403) == f"{name}: {expected}"


def test_a_package_with_a_class_of_a_plugin_is_refused(
    glare: Client, admin: Client, name: str, set_option: SetOption
) -> None:
    active = glare.create(name, "1.0.0").json()["id"]
    assert glare.upload(active, _mail_package(name)).status_code == 200
    assert glare.set(active, "status", "active").status_code == 200
    set_option("provided_classes", [MAIL])

    artifact_id = glare.create(name, "1.1.0").json()["id"]
    refused = refusal(glare.upload(artifact_id, _mail_package(name, "1.1.0")), 400)
    expected = f"Classes: class {MAIL} is defined by an extension plug-in"
    assert expected in refused

    # Even for an administrator, who may override the checks of requirements.
    overriding = Client(admin.url, admin.token)
    overriding.headers["X-Murano-Override-Checks"] = "true"
    refused = refusal(overriding.set(active, "visibility", "public"), 403)
    assert f"{name}: {expected}" in refused
    assert "[plugin-name]" in refused


def test_a_package_does_not_satisfy_a_requirement_on_a_plugin_of_its_name(
    glare: Client, name: str, set_option: SetOption
) -> None:
    assert _activate(glare, name).status_code == 200
    requiring = {"Require": {name: ">=1"}}
    artifact_id = glare.create(f"{name}.app", "1.0.0").json()["id"]
    data = packages.package(f"{name}.app", **requiring)
    assert glare.upload(artifact_id, data).status_code == 200
    set_option("provided_packages", [f"{name}:0.9.0"])

    refused = refusal(glare.set(artifact_id, "status", "active"), 409)

    assert f"{name} in the range >=1 (provided by engines: 0.9.0)" in refused
    assert [
        m["available"] for m in glare.resolve(requirements={name: "1"}).json()["unsatisfied"]
    ] == [[]]


class Directory:
    """A directory of packages, and loaders of an engine with a plug-in."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        packages.write(folder / "in" / "core", packages.content("io.murano", "0.1.0"))

    def write(self, data: bytes) -> None:
        (self._folder / "in" / f"{len(list(self._folder.rglob('*')))}.zip").write_bytes(data)

    def loader(self, plugin: str, catalog: type[DirectoryCatalog] = DirectoryCatalog) -> Any:
        packages_ = loader.PackageLoader(catalog(self._folder / "in"), self._folder / "cache")
        packages_.provide(plugin, Version("1.4.0"), [MAIL])
        return packages_


@pytest.fixture
def directory(tmp_path: pathlib.Path) -> Directory:
    return Directory(tmp_path)


def test_no_package_of_a_catalogue_is_planned_in_place_of_a_plugin(directory: Directory) -> None:
    directory.write(packages.package("org.mail", "2.0.0"))
    directory.write(packages.package("org.app", Require={"org.mail": ">=2"}))
    packages_ = directory.loader("org.mail")

    with pytest.raises(
        loader.NoSuchPackage,
        match=r"required by org.app 1.0.0, .*\(available: none; provided by engines: 1\.4\.0\); "
        r"install a version of the extension plug-in org\.mail in the range beside the engine",
    ):
        packages_.load_all("org.app")
    with pytest.raises(
        errors.NameOfPlugin,
        match=r"class org\.mail\.Thing is defined by a package in the directory .* that has the "
        r"name of the extension plug-in org\.mail, which is code of the operator",
    ):
        packages_.load_class_package("org.mail.Thing")


def test_no_package_of_a_catalogue_has_subclasses_in_place_of_a_plugin(
    directory: Directory,
) -> None:
    directory.write(packages.package("org.mail", "2.0.0"))
    content = packages.content("org.app", Require={"org.mail": ">=2"})
    content["Classes/Thing.yaml"] = b"Name: org.app.Thing\nExtends: org.mail.Thing\n"
    directory.write(packages.zipped(content))

    def subclasses(plugin: str, text: str) -> list[str]:
        found = directory.loader(plugin).subclasses("org.mail.Thing", text, None).found
        return [each.name for each in found]

    assert subclasses(PLUGIN, "*") == ["org.app.Thing"]
    assert subclasses(PLUGIN, "<2") == []
    assert subclasses("org.mail", "*") == []


def test_a_package_with_a_class_of_a_plugin_is_not_loaded(directory: Directory) -> None:
    directory.write(_mail_package("org.app"))
    packages_ = directory.loader(PLUGIN)

    for load in (
        lambda: packages_.load("org.app"),
        lambda: packages_.load_class_package(MAIL),
    ):
        with pytest.raises(
            errors.NameOfPlugin,
            match=rf"org\.app 1\.0\.0 of .* cannot be loaded: it defines the class {MAIL} of the "
            rf"extension plug-in {PLUGIN} 1\.4\.0, which is code of the operator",
        ):
            load()
    packages_.pins.compact()
    assert packages_.pins.dump() == {}


def test_an_answer_with_the_name_of_a_plugin_is_refused(directory: Directory) -> None:
    class Careless(DirectoryCatalog):
        """A service that does not read which packages the engine provides."""

        def resolve(self, query: Query) -> Answer:
            (release,) = self.releases_of(["org.mail"])
            return Answer(((release, (Demand("org.mail", VersionSpec.of("2"), None),)),), (), ())

    directory.write(packages.package("org.mail", "2.0.0"))

    with pytest.raises(
        errors.NameOfPlugin, match=r"it has the name of the extension plug-in org\.mail 1\.4\.0"
    ):
        directory.loader("org.mail", Careless).load("org.mail", "2")


@pytest.mark.parametrize("text", ["Mail!", "", "org..Mail"])
def test_an_invalid_name_of_a_class_is_named(set_option: SetOption, text: str) -> None:
    set_option("provided_classes", [text])

    with pytest.raises(
        RuntimeError, match=f"provided_classes: {text!r} is not the name of a class"
    ):
        middleware.MuranoFilter(None)


@pytest.mark.parametrize("text", ["org-example-mail", "org-example-mail:", "a b:1", "mail:x"])
def test_an_invalid_option_is_named(set_option: SetOption, text: str) -> None:
    set_option("provided_packages", [text])

    with pytest.raises(RuntimeError, match=f"provided_packages: {text!r} is not a name"):
        middleware.MuranoFilter(None)


def test_a_service_with_an_invalid_option_does_not_start(tmp_path: pathlib.Path) -> None:
    text = "a b:1"
    tmp_path.chmod(0o700)
    (tmp_path / "local.conf").write_text(f"[artifact_type:murano]\nprovided_packages = {text}\n")
    command = (sys.executable, "-W", "ignore", "-m", "glare_murano.glare.server", "--port", "0")

    ended = subprocess.run(
        (*command, "--state-dir", tmp_path),
        cwd=processes.ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ended.returncode == 1
    assert f"[artifact_type:murano] provided_packages: {text!r} is not a name" in ended.stderr
