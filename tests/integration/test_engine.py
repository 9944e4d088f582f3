# SPDX-License-Identifier: Apache-2.0

"""The real Murano engine, which loads every package through the loader."""

import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import semantic_version
from keystoneauth1 import identity, token_endpoint
from murano.common import engine as murano_engine
from murano.dsl import exceptions as dsl_exceptions
from murano.dsl import helpers
from murano.engine import execution_session
from murano.engine import package_loader as murano_package_loader

from examples import demo, publish
from loader.engine import adapter, patches
from loader.transport import sessions
from tests import packages

Publish = Callable[..., None]


def _session() -> Any:
    session = execution_session.ExecutionSession()
    session.token = demo.USER_TOKEN
    session.project_id = demo.PROJECT
    return session


def _task(header: dict[str, Any], **properties: Any) -> Any:
    """Load a model of one object, and return the engine's answer."""
    model = {
        "Objects": {"?": {"id": "object", **header}, **properties},
        "SystemData": {},
        "project_id": demo.PROJECT,
        "user_id": "alice",
    }
    task = {
        "id": "test",
        "action": None,
        "model": model,
        "token": demo.USER_TOKEN,
        "project_id": demo.PROJECT,
        "user_id": "alice",
    }
    return murano_engine.TaskExecutor(task).execute()


def _error(header: dict[str, Any]) -> str:
    action = _task(header)["action"]
    assert action["isException"]
    message: str = action["result"]["message"]
    return message


def test_an_environment_runs_two_versions_of_a_library_side_by_side(conf: Any) -> None:
    environment = demo.Environment.new("side-by-side")

    environment.deploy()

    assert environment.library_versions() == {"wiki": "1.3.0", "shop": "2.0.0"}
    assert environment.pins == {
        "io.murano": ["0.0.0"],
        "org.example.db": ["1.3.0", "2.0.0"],
        "org.example.shop": ["1.0.0"],
        "org.example.wiki": ["1.1.0"],
    }


def test_a_deployed_environment_keeps_its_pins_and_a_new_one_takes_the_newest(
    conf: Any, glare: Any, name: str, publish_package: Publish, tmp_path: pathlib.Path
) -> None:
    app = f"{name}.app"
    publish_package(name, "1.0.0")
    publish_package(app, "1.0.0", Require={name: "1"}, Classes={f"{app}.Thing": "Thing.yaml"})
    pins = {name: ["1.0.0"]}

    publish_package(name, "1.1.0")
    with murano_package_loader.CombinedPackageLoader(_session()) as loader:
        new = loader.load_package(name, helpers.parse_version_spec("1"))
    with murano_package_loader.CombinedPackageLoader(_session()) as loader:
        loader.import_fixation_table(pins)
        deployed = loader.load_package(name, helpers.parse_version_spec("1"))
        loader.load_package(app, helpers.parse_version_spec("1"))
        table = loader.export_fixation_table()
        loader.compact_fixation_table()
        compacted = loader.export_fixation_table()

    assert (str(new.version), str(deployed.version)) == ("1.1.0", "1.0.0")
    assert table == compacted == {name: ["1.0.0"], app: ["1.0.0"]}


def test_compaction_drops_the_pins_that_nothing_used(
    conf: Any, name: str, publish_package: Publish
) -> None:
    publish_package(name, "1.0.0")

    with murano_package_loader.CombinedPackageLoader(_session()) as loader:
        loader.import_fixation_table({name: ["1.0.0"], "org.test.gone": ["3.0.0"]})
        loader.load_package(name, helpers.parse_version_spec("1"))
        loader.compact_fixation_table()

        assert loader.export_fixation_table() == {name: ["1.0.0"]}


def test_an_imported_fixation_table_takes_the_place_of_the_one_before(conf: Any) -> None:
    with murano_package_loader.CombinedPackageLoader(_session()) as loader:
        loader.import_fixation_table({"org.test.a": ["1.0.0"], "org.test.b": ["1.0.0"]})
        loader.import_fixation_table({"org.test.b": ["2.0.0"]})

        assert loader.export_fixation_table() == {"org.test.b": ["2.0.0"]}


def test_a_class_whose_package_is_missing_is_reported_with_the_available_ones(conf: Any) -> None:
    message = _error({"type": "org.example.wiki.Wiki", "classVersion": "9"})

    for word in ("org.example.wiki.Wiki", "9", "org.example.wiki 1.1.0"):
        assert word in message


def test_a_missing_requirement_is_reported_with_the_requiring_package(
    conf: Any, glare: Any, name: str, tmp_path: pathlib.Path
) -> None:
    newest = packages.files(packages.manifest("org.example.db", "3.0.0"))
    (required,) = publish.publish(glare, [packages.write(tmp_path / "db", newest)], public=True)
    content = packages.files(packages.manifest(name, Require={"org.example.db": ">=3"}))
    subclass = f"Name: {name}.Thing\nExtends: org.example.db.Database\n"
    content["Classes/Thing.yaml"] = subclass.encode()
    publish.publish(glare, [packages.write(tmp_path / name, content)], public=True)
    override = {"X-Murano-Override-Checks": "true"}
    glare.delete(f"{publish.ARTIFACTS}/{required['id']}", headers=override)

    message = _error({"type": f"{name}.Thing", "classVersion": "1"})

    for word in ("org.example.db", "required by", f"{name} 1.0.0", "2.0.0, 1.3.0"):
        assert word in message


def test_a_missing_package_is_the_engines_own_error(conf: Any) -> None:
    nothing = helpers.parse_version_spec("7")
    with murano_package_loader.CombinedPackageLoader(_session()) as loader:
        with pytest.raises(dsl_exceptions.NoPackageFound, match=r"org\.test\.nothing"):
            loader.load_package("org.test.nothing", nothing)
        with pytest.raises(dsl_exceptions.NoPackageForClassFound, match=r"org\.test\.Nothing"):
            loader.load_class_package("org.test.Nothing", nothing)


def _call_static(package_name: str, class_name: str, version: str, method: str) -> Any:
    task = {
        "id": "static",
        "action": {
            "class_name": class_name,
            "pkg_name": package_name,
            "class_version": version,
            "method": method,
            "args": {},
        },
        "token": demo.USER_TOKEN,
        "project_id": demo.PROJECT,
        "user_id": "alice",
    }
    return murano_engine.StaticActionExecutor(task).execute()


def test_a_static_action_is_answered(conf: Any) -> None:
    database = "org.example.db"

    assert _call_static(database, f"{database}.Database", ">=1,<1.3", "version") == "1.2.0"


def test_a_resource_is_read_as_text(conf: Any, name: str, tmp_path: pathlib.Path) -> None:
    code = (
        "Namespaces:\n  sys: io.murano.system\nName: {name}.Thing\nMethods:\n  read:\n"
        "    Usage: Static\n    Scope: Public\n    Body:\n"
        "      - Return: new(sys:Resources).string('text')\n"
    )
    files = packages.files(packages.manifest(name))
    files["Classes/Thing.yaml"] = code.format(name=name).encode()
    packages.write(tmp_path / "package", {**files, "Resources/text": b"one\r\ntwo\n"})
    conf.set_override("load_packages_from", [str(tmp_path)], "engine")

    assert _call_static(name, f"{name}.Thing", "1", "read") == "one\ntwo\n"


def test_a_schema_is_generated(conf: Any) -> None:
    context = {"token": demo.USER_TOKEN, "project_id": demo.PROJECT}

    schemas = murano_engine.SchemaEndpoint.generate_schema(
        context, "org.example.wiki.Wiki", class_version="1"
    )

    assert schemas[""]["properties"]["name"]["type"] == "string"


def test_directories_of_the_host_come_before_glare(
    conf: Any, name: str, publish_package: Publish, tmp_path: pathlib.Path
) -> None:
    publish_package(name, "1.5.0")
    folder = tmp_path / "folders"
    packages.write(folder / "thing", packages.files(packages.manifest(name, "1.1.0")))
    packages.write(folder / "broken", {"manifest.yaml": b"FullName: [a"})
    conf.set_override("load_packages_from", [str(folder), str(tmp_path / "missing")], "engine")

    with murano_package_loader.CombinedPackageLoader(_session()) as loader:
        local = loader.load_package(name, helpers.parse_version_spec("1.1"))
        remote = loader.load_package(name, helpers.parse_version_spec("1.5"))

    assert (str(local.version), str(remote.version)) == ("1.1.0", "1.5.0")
    assert str(local.application_package.source_directory) == str(folder / "thing")


def test_the_next_task_sees_the_changes_of_a_directory(
    conf: Any, name: str, tmp_path: pathlib.Path
) -> None:
    conf.set_override("load_packages_from", [str(tmp_path)], "engine")
    loaded = []

    for version in ("1.0.0", "1.1.0"):
        content = packages.files(packages.manifest(name, version))
        packages.write(tmp_path / name / version, content)
        with murano_package_loader.CombinedPackageLoader(_session()) as loader:
            package = loader.load_package(name, helpers.parse_version_spec("1"))
        loaded.append(str(package.version))
    (tmp_path / "newer.zip").write_bytes(packages.package(name, "1.2.0"))
    with murano_package_loader.CombinedPackageLoader(_session()) as loader:
        zipped = loader.load_package(name, helpers.parse_version_spec("1"))
        (class_name,) = zipped.classes

    assert [*loaded, str(zipped.version)] == ["1.0.0", "1.1.0", "1.2.0"]
    assert class_name == f"{name}.Thing"


def test_packages_are_kept_for_the_next_task(
    conf: Any, name: str, publish_package: Publish, tmp_path: pathlib.Path
) -> None:
    publish_package(name, "1.0.0")
    conf.set_override("packages_cache", str(tmp_path / "cache"), "engine")
    fetched = []

    for _ in range(2):
        before = adapter.totals.downloads
        with murano_package_loader.CombinedPackageLoader(_session()) as loader:
            loader.load_package(name, helpers.parse_version_spec("1"))
        fetched.append(adapter.totals.downloads - before)

    # The package, and the core library, which it requires.
    assert fetched == [2, 0]


def test_without_a_cache_nothing_is_kept(
    conf: Any, name: str, publish_package: Publish, tmp_path: pathlib.Path
) -> None:
    publish_package(name, "1.0.0")
    conf.set_override("packages_cache", str(tmp_path / "cache"), "engine")
    conf.set_override("enable_packages_cache", False, "engine")

    with murano_package_loader.CombinedPackageLoader(_session()) as loader:
        package = loader.load_package(name, helpers.parse_version_spec("1"))
        assert pathlib.Path(package.application_package.source_directory).is_dir()

    kept = [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert kept == ["lock"]
    assert list((tmp_path / "cache" / "staging").iterdir()) == []


@pytest.mark.parametrize(
    ("service", "ours"), [("glare", True), ("glance", True), ("murano", False)]
)
def test_the_operator_chooses_the_loader(conf: Any, service: str, ours: bool) -> None:
    conf.set_override("packages_service", service, "engine")

    with murano_package_loader.CombinedPackageLoader(_session()) as loader:
        assert isinstance(loader, adapter.EnginePackageLoader) is ours


def test_a_range_is_read_once_and_as_the_engine_reads_it(conf: Any) -> None:
    texts = [None, "", "0", "1", "1.2", "=1", ">=1,<2", ">1.0 , <=2.1", "1.0.0-rc.1", 1, 1.5]
    versions = [semantic_version.Version("1.2.0"), semantic_version.Spec(">=1.0.0")]

    for written in (*texts, *versions):
        found = helpers.parse_version_spec(written)
        assert str(found) == str(patches._murano_parse_version_spec(written))
    assert helpers.parse_version_spec(">=1,<2") is helpers.parse_version_spec(">=1,<2")
    for _ in range(2):
        with pytest.raises(ValueError, match="Invalid"):
            helpers.parse_version_spec("newest")


def test_a_task_reads_no_range_that_another_has_read(
    conf: Any, name: str, publish_package: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_package(name, "1.2.0", Require={"org.example.db": ">=1,<3"})
    spec = helpers.parse_version_spec("1")

    def load() -> Any:
        with murano_package_loader.CombinedPackageLoader(_session()) as loader:
            package = loader.load_package(name, spec)
            package.find_class(f"{name}.Thing")
            return package

    before = load()
    monkeypatch.setattr(semantic_version.Spec, "_parse_to_clause", None)
    after = load()

    assert {fqn: set(str(upon).split(",")) for fqn, upon in after.requirements.items()} == {
        name: {"==1"},
        "io.murano": {"==0"},
        "org.example.db": {">=1.0.0", "<3.0.0"},
    }
    assert before is not after
    assert before.requirements == after.requirements


def test_with_keystone_the_token_is_scoped_as_murano_scopes_it(conf: Any) -> None:
    conf.set_override("www_authenticate_uri", "http://127.0.0.1:5000", "murano_auth")

    auth = adapter._keystone_session(_session()).auth

    assert isinstance(auth, identity.Token)
    assert auth.auth_url == "http://127.0.0.1:5000/v3"


@pytest.mark.parametrize("keystone", [None, "http://127.0.0.1:5000"])
def test_no_session_waits_without_end(conf: Any, keystone: str | None) -> None:
    conf.set_override("www_authenticate_uri", keystone, "murano_auth")

    assert adapter._keystone_session(_session()).timeout == sessions.DEFAULT_TIMEOUT


def test_without_keystone_the_token_goes_to_glare_as_it_is(conf: Any) -> None:
    auth = adapter._keystone_session(_session()).auth

    assert isinstance(auth, token_endpoint.Token)
    assert auth.token == demo.USER_TOKEN
