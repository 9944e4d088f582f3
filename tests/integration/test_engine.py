# SPDX-License-Identifier: Apache-2.0

"""The real Murano engine, which loads every package through the loader."""

import copy
import itertools
import json
import pathlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import semantic_version
from keystoneauth1 import identity, token_endpoint
from keystoneauth1 import session as ksa_session
from murano.dsl import exceptions as dsl_exceptions
from murano.dsl import helpers
from murano.engine import package_loader as murano_package_loader

from examples import demo
from loader import Lock, config
from loader.catalogs import options
from loader.catalogs.glare import GlareCatalog
from loader.engine import adapter, credentials
from loader.transport import sessions
from tests import packages
from tests.integration import publish, tasks

pytestmark = pytest.mark.usefixtures("conf")

Publish = Callable[..., None]


def _error(header: dict[str, Any]) -> str:
    action = tasks.run(header)["action"]
    assert action["isException"]
    message: str = action["result"]["message"]
    return message


def test_an_environment_runs_two_versions_of_a_library_side_by_side() -> None:
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
    name: str, publish_package: Publish
) -> None:
    app = f"{name}.app"
    publish_package(name, "1.0.0")
    publish_package(app, "1.0.0", Require={name: "1"}, Classes={f"{app}.Thing": "Thing.yaml"})
    pins = {name: ["1.0.0"]}

    publish_package(name, "1.1.0")
    with murano_package_loader.CombinedPackageLoader(tasks.session()) as loader:
        new = loader.load_package(name, helpers.parse_version_spec("1"))
    with murano_package_loader.CombinedPackageLoader(tasks.session()) as loader:
        loader.import_fixation_table(pins)
        deployed = loader.load_package(name, helpers.parse_version_spec("1"))
        loader.load_package(app, helpers.parse_version_spec("1"))
        table = loader.export_fixation_table()
        loader.compact_fixation_table()
        compacted = loader.export_fixation_table()

    assert (str(new.version), str(deployed.version)) == ("1.1.0", "1.0.0")
    assert table == compacted == {name: ["1.0.0"], app: ["1.0.0"]}


def test_compaction_drops_the_pins_that_nothing_used(name: str, publish_package: Publish) -> None:
    publish_package(name, "1.0.0")

    with murano_package_loader.CombinedPackageLoader(tasks.session()) as loader:
        loader.import_fixation_table({name: ["1.0.0"], "org.test.gone": ["3.0.0"]})
        loader.load_package(name, helpers.parse_version_spec("1"))
        loader.compact_fixation_table()

        assert loader.export_fixation_table() == {name: ["1.0.0"]}


def test_an_imported_fixation_table_takes_the_place_of_the_one_before() -> None:
    with murano_package_loader.CombinedPackageLoader(tasks.session()) as loader:
        loader.import_fixation_table({"org.test.a": ["1.0.0"], "org.test.b": ["1.0.0"]})
        loader.import_fixation_table({"org.test.b": ["2.0.0"]})

        assert loader.export_fixation_table() == {"org.test.b": ["2.0.0"]}


def test_a_class_whose_package_is_missing_is_reported_with_the_available_ones() -> None:
    message = _error({"type": "org.example.wiki.Wiki", "classVersion": "9"})

    for word in ("org.example.wiki.Wiki", "9", "org.example.wiki 1.1.0"):
        assert word in message


def test_a_missing_requirement_is_reported_with_the_requiring_package(
    glare: Any, name: str, tmp_path: pathlib.Path
) -> None:
    newest = packages.content("org.example.db", "3.0.0")
    (required,) = publish.publish(glare, [packages.write(tmp_path / "db", newest)], public=True)
    code = f"Name: {name}.Thing\nExtends: org.example.db.Database\n"
    content = packages.content(name, code=code, Require={"org.example.db": ">=3"})
    publish.publish(glare, [packages.write(tmp_path / name, content)], public=True)
    override = {"X-Murano-Override-Checks": "true"}
    glare.delete(f"{publish.ARTIFACTS}/{required['id']}", headers=override)

    message = _error({"type": f"{name}.Thing", "classVersion": "1"})

    for word in ("org.example.db", "required by", f"{name} 1.0.0", "2.0.0, 1.3.0"):
        assert word in message


def test_a_missing_package_is_the_engines_own_error() -> None:
    nothing = helpers.parse_version_spec("7")
    with murano_package_loader.CombinedPackageLoader(tasks.session()) as loader:
        with pytest.raises(dsl_exceptions.NoPackageFound, match=r"org\.test\.nothing"):
            loader.load_package("org.test.nothing", nothing)
        with pytest.raises(dsl_exceptions.NoPackageForClassFound, match=r"org\.test\.Nothing"):
            loader.load_class_package("org.test.Nothing", nothing)


def test_a_static_action_is_answered() -> None:
    database = "org.example.db"

    assert tasks.call_static(f"{database}.Database", "version", ">=1,<1.3", database) == "1.2.0"


@pytest.mark.parametrize("version", [None, "", "=0"])
def test_a_static_action_without_a_version_runs_in_the_newest(version: str | None) -> None:
    database = "org.example.db"
    assert tasks.call_static(f"{database}.Database", "version", version, database) == "2.0.0"


def test_an_object_without_a_version_gets_the_newest(name: str, publish_package: Publish) -> None:
    publish_package(name, "1.0.0")
    publish_package(name, "1.1.0")

    answer = tasks.run({"type": f"{name}.Thing"})
    saved = answer["model"]["SystemData"]["Packages"]

    assert saved == {"io.murano": ["0.0.0"], name: ["1.1.0"]}


# python-muranoclient sends the last one.
@pytest.mark.parametrize("version", [None, "", "=0"])
def test_a_schema_without_a_version_is_of_the_newest(
    glare: Any, name: str, tmp_path: pathlib.Path, version: str | None
) -> None:
    code = "Name: {0}.Thing\nProperties: {{{1}: {{Contract: $}}}}\n"
    for number, added in (("1.9.0", "old"), ("1.10.0", "new")):
        files = packages.content(name, number, code=code.format(name, added))
        publish.publish(glare, [packages.write(tmp_path / number, files)], public=True)

    assert tasks.schemas(f"{name}.Thing", version)[""]["properties"].keys() == {"new"}


def test_a_resource_is_read_as_text(conf: Any, name: str, tmp_path: pathlib.Path) -> None:
    code = (
        "Namespaces:\n  sys: io.murano.system\nName: {name}.Thing\nMethods:\n  read:\n"
        "    Usage: Static\n    Scope: Public\n    Body:\n"
        "      - Return: new(sys:Resources).string('text')\n"
    )
    files = packages.content(name, code=code.format(name=name))
    packages.write(tmp_path / "package", {**files, "Resources/text": b"one\r\ntwo\n"})
    conf.set_override("load_packages_from", [str(tmp_path)], "engine")

    assert tasks.call_static(f"{name}.Thing", "read", "1", name) == "one\ntwo\n"


@pytest.mark.parametrize(
    ("class_name", "version"), [("org..wiki", None), ("org.example.wiki.Wiki", "newest")]
)
def test_an_invalid_request_for_a_schema_is_refused(class_name: str, version: str | None) -> None:
    with pytest.raises(ValueError, match="is not a valid") as refused:
        tasks.schemas(class_name, version)

    # A class of Python reaches murano-api as it is, and becomes 400.
    assert refused.type is ValueError


@pytest.mark.parametrize(
    ("class_name", "version", "package"),
    [
        ("org..db", "1", None),
        ("org.example.db.Database", "newest", None),
        ("org.example.db.Database", 1.1, None),
        ("org.example.db.Database", "1", "../x"),
    ],
)
def test_an_invalid_static_action_is_refused(
    class_name: str, version: Any, package: str | None
) -> None:
    # murano-api makes it 400.
    with pytest.raises(dsl_exceptions.ContractViolationException, match="is not a valid"):
        tasks.call_static(class_name, "version", version, package)


@pytest.mark.parametrize("argument", ["", "__name", "1"])
def test_an_invalid_name_of_an_argument_is_refused(argument: str) -> None:
    with pytest.raises(dsl_exceptions.ContractViolationException, match="is not a valid name"):
        tasks.call_static("org.example.db.Database", "version", **{argument: 1})


def test_a_schema_of_an_unknown_method_is_not_found() -> None:
    # A class of Python reaches murano-api as it is, and becomes 404.
    with pytest.raises(LookupError, match=r"org\.example\.wiki\.Wiki: .*missing") as refused:
        tasks.schemas("org.example.wiki.Wiki", "1", method_names=["", "missing"])

    assert refused.type is LookupError


def test_a_schema_is_generated() -> None:
    schemas = tasks.schemas("org.example.wiki.Wiki", "1")

    assert schemas[""]["properties"]["name"]["type"] == "string"


_EXTENDING = """\
Namespaces: {{base: {base}}}
Name: {name}.Thing
Extends: base:Thing
Properties:
  next: {{Contract: $.class(base:Thing).notNull()}}
  others: {{Contract: [$.template(base:Thing)]}}
"""


@pytest.fixture
def extending(name: str, publish_package: Publish, glare: Any, tmp_path: pathlib.Path) -> str:
    """Packages that require version 1, 2, or any, of a package, and extend its class."""
    for version in ("1.0.0", "2.0.0"):
        publish_package(name, version)
    for suffix, range_text in (("one", "1"), ("two", "2"), ("any", ">=1")):
        requirer = f"{name}.{suffix}"
        content = packages.content(requirer, Require={name: range_text})
        content["Classes/Thing.yaml"] = _EXTENDING.format(base=name, name=requirer).encode()
        publish.publish(glare, [packages.write(tmp_path / requirer, content)], public=True)
    return name


def test_a_schema_of_an_object_lists_subclasses_on_request(
    conf: Any, extending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This process counts the calls, and does not see those of a cell.
    conf.set_override("request_cells", False, "engine")
    listed = []
    list_subclasses = adapter.EnginePackageLoader.list_subclasses

    def count(loader: Any, *arguments: Any) -> Any:
        listed.append(arguments)
        return list_subclasses(loader, *arguments)

    monkeypatch.setattr(adapter.EnginePackageLoader, "list_subclasses", count)

    def inputs(**arguments: Any) -> list[Any]:
        properties = tasks.schemas(f"{extending}.one.Thing", **arguments)[""]["properties"]
        return [properties["next"], properties["others"]["items"]]

    assert all("subclasses" not in each for each in inputs())
    # The catalogues were not queried.
    assert listed == []
    requested = inputs(subclasses=True)
    # Once for all properties of the class.
    assert listed == [(f"{extending}.Thing", "1", extending)]
    for each in requested:
        assert each["version"] == "1"
        assert each["subclasses"] == [
            {
                "class": f"{extending}.{suffix}.Thing",
                "extends": [f"{extending}.Thing"],
                "packages": {f"{extending}.{suffix}": ["1.0.0"]},
            }
            for suffix in ("any", "one")
        ]
        assert each["subclassesTruncated"] is False
    conf.set_override("max_subclasses", 1, "package_loader")
    for each in inputs(subclasses=True):
        assert [found["class"] for found in each["subclasses"]] == [f"{extending}.any.Thing"]
        assert each["subclassesTruncated"] is True


def test_murano_s_own_loader_cannot_list_subclasses(conf: Any, core_library: pathlib.Path) -> None:
    conf.set_override("package_loader", "murano", "engine")
    conf.set_override("load_packages_from", [str(core_library)], "engine")

    with pytest.raises(ValueError, match="package_loader = catalogs"):
        tasks.schemas("io.murano.Environment", subclasses=True)


def test_directories_of_the_host_come_before_glare(
    conf: Any, name: str, publish_package: Publish, tmp_path: pathlib.Path
) -> None:
    publish_package(name, "1.5.0")
    folder = tmp_path / "folders"
    packages.write(folder / "thing", packages.content(name, "1.1.0"))
    packages.write(folder / "broken", {"manifest.yaml": b"FullName: [a"})
    conf.set_override("load_packages_from", [str(folder), str(tmp_path / "missing")], "engine")

    with murano_package_loader.CombinedPackageLoader(tasks.session()) as loader:
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
        packages.write(tmp_path / name / version, packages.content(name, version))
        with murano_package_loader.CombinedPackageLoader(tasks.session()) as loader:
            package = loader.load_package(name, helpers.parse_version_spec("1"))
        loaded.append(str(package.version))
    (tmp_path / "newer.zip").write_bytes(packages.package(name, "1.2.0"))
    with murano_package_loader.CombinedPackageLoader(tasks.session()) as loader:
        zipped = loader.load_package(name, helpers.parse_version_spec("1"))
        (class_name,) = zipped.classes

    assert [*loaded, str(zipped.version)] == ["1.0.0", "1.1.0", "1.2.0"]
    assert class_name == f"{name}.Thing"


@pytest.fixture
def locked(
    conf: Any, glare_url: str, name: str, publish_package: Publish, tmp_path: pathlib.Path
) -> Iterator[None]:
    """A lock of an application and its library, to both of which newer versions were added."""
    session = ksa_session.Session(token_endpoint.Token(glare_url, demo.USER_TOKEN))
    catalog = GlareCatalog(session, endpoint=glare_url, project_id=demo.PROJECT)
    for version in ("1.0.0", "1.1.0"):
        publish_package(name, version)
        publish_package(f"{name}.app", version, Require={name: "1"})
        if version == "1.0.0":
            Lock.create(catalog, {f"{name}.app": "1"}).save(tmp_path / "lock")
    options.register(conf, config.OPTIONS)
    conf.set_override("packages_cache", str(tmp_path / "cache"), "engine")
    conf.set_override("lock_file", str(tmp_path / "lock"), "package_loader")
    yield
    conf.clear_override("lock_file", "package_loader")


@pytest.mark.parametrize("version", ["1.0.0", "1.0.7", "1", None])
@pytest.mark.usefixtures("locked")
def test_an_object_gets_the_nearest_locked_release(name: str, version: str | None) -> None:
    header = {"classVersion": version} if version else {}

    result = tasks.run({"type": f"{name}.app.Thing", **header})

    assert not result["action"]["isException"], result["action"]
    pins = result["model"]["SystemData"]["Packages"]
    assert pins == {"io.murano": ["0.0.0"], f"{name}.app": ["1.0.0"]}


def test_the_requirements_of_a_locked_package_are_locked(locked: Any, name: str) -> None:
    with murano_package_loader.CombinedPackageLoader(tasks.session()) as loader:
        app = loader.load_package(f"{name}.app", helpers.parse_version_spec("1"))
        library = loader.load_package(name, app.requirements[name])
        table = loader.export_fixation_table()

    assert str(library.version) == "1.0.0"
    assert table == {name: ["1.0.0"], f"{name}.app": ["1.0.0"]}
    assert adapter.totals.requests > 0


@pytest.mark.parametrize(
    ("pins", "requirement", "words"),
    [
        ({}, "1.1", "the lock file (available: 1.0.0); create the lock file again from catalogues"),
        ({"": ["1.1.0"]}, "1", "pinned to 1.1.0, was not found in the lock file"),
    ],
)
def test_what_is_not_locked_is_not_loaded(
    locked: Any, name: str, pins: dict[str, list[str]], requirement: str, words: str
) -> None:
    with murano_package_loader.CombinedPackageLoader(tasks.session()) as loader:
        loader.import_fixation_table({f"{name}{key}": found for key, found in pins.items()})
        with pytest.raises(dsl_exceptions.NoPackageFound) as missing:
            loader.load_package(name, helpers.parse_version_spec(requirement))

    assert words in str(missing.value)


@pytest.mark.usefixtures("locked")
def test_the_next_task_reads_a_changed_lock_file(name: str, tmp_path: pathlib.Path) -> None:
    assert not tasks.run({"type": f"{name}.app.Thing"})["action"]["isException"]
    text = (tmp_path / "lock").read_text()
    (tmp_path / "lock").write_text(text.replace("version: 1.0.0", "version: 1.1.0"))

    assert "it was edited" in _error({"type": f"{name}.app.Thing"})


def test_packages_are_kept_for_the_next_task(
    conf: Any, name: str, publish_package: Publish, tmp_path: pathlib.Path
) -> None:
    publish_package(name, "1.0.0")
    conf.set_override("packages_cache", str(tmp_path / "cache"), "engine")
    fetched = []

    for _ in range(2):
        before = adapter.totals.downloads
        with murano_package_loader.CombinedPackageLoader(tasks.session()) as loader:
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

    with murano_package_loader.CombinedPackageLoader(tasks.session()) as loader:
        package = loader.load_package(name, helpers.parse_version_spec("1"))
        assert pathlib.Path(package.application_package.source_directory).is_dir()

    kept = [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert kept == ["lock"]
    assert list((tmp_path / "cache" / "staging").iterdir()) == []


@pytest.mark.parametrize(("chosen", "ours"), [("catalogs", True), ("murano", False)])
def test_the_operator_chooses_the_loader(conf: Any, chosen: str, ours: bool) -> None:
    conf.set_override("package_loader", chosen, "engine")

    with murano_package_loader.CombinedPackageLoader(tasks.session()) as loader:
        assert isinstance(loader, adapter.EnginePackageLoader) is ours


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (None, "<1.0.0,>=0.0.0"),
        ("", "<1.0.0,>=0.0.0"),
        ("1.2", "<1.3.0,>=1.2.0"),
        ("=1", "<2.0.0,>=1.0.0"),
        (">1.0 , <=2.1", "<2.2.0,>=1.1.0"),
        ("1.0.0-rc.1", "==1.0.0-rc.1"),
        (1.5, "<1.6.0,>=1.5.0"),
        (semantic_version.Version("1.2.0"), "==1.2.0"),
        (semantic_version.Spec(">=1.0.0"), ">=1.0.0"),
        (semantic_version.Spec("!=1.5"), "!=1.5"),
    ],
)
def test_the_engine_reads_a_range_as_the_loader_does(written: object, expected: str) -> None:
    assert str(helpers.parse_version_spec(written)) == expected


def test_the_engine_reads_a_range_once() -> None:
    assert helpers.parse_version_spec(">=1,<2") is helpers.parse_version_spec(">=1,<2")
    for _ in range(2):
        with pytest.raises(ValueError, match="is not a valid range"):
            helpers.parse_version_spec("newest")


def test_the_range_of_the_specifications_example_is_read(
    name: str, publish_package: Publish
) -> None:
    publish_package(name, "1.0.0", Require={"org.example.db": ">=1.2,<2.0,!=1.3"})

    with murano_package_loader.CombinedPackageLoader(tasks.session()) as loader:
        package = loader.load_package(name, helpers.parse_version_spec("!=2"))
        found = package.find_class("org.example.db.Database")

    assert str(found.version) == "1.2.0"


@pytest.fixture
def publish_class(glare: Any, tmp_path: pathlib.Path) -> Callable[..., None]:
    """Publish a package with the class ``NAME.Thing``, of this code."""

    def publish_code(name: str, version: str, code: str, **keys: Any) -> None:
        content = packages.content(name, version, code=f"Name: {name}.Thing\n{code}", **keys)
        folder = packages.write(tmp_path / "classes" / name / version, content)
        publish.publish(glare, [folder], public=True)

    return publish_code


def test_a_move_to_a_version_that_does_not_load_changes_nothing(
    name: str, publish_class: Publish
) -> None:
    publish_class(name, "1.0.0", "")
    publish_class(name, "1.1.0", "Properties:\n  new:\n    Contract: $.string().notNull()\n")
    pins = {"io.murano": ["0.0.0"], name: ["1.0.0"]}
    header = {"type": f"{name}.Thing/1.0.0@{name}", "_pins": {name: "1.1.0"}}

    answer = tasks.run(header, pins)
    again = tasks.run(answer["model"]["Objects"]["?"], pins)

    assert "notNull" in answer["action"]["result"]["message"]
    for result in (answer, again):
        assert result["model"]["SystemData"]["Packages"] == pins
        assert result["model"]["Objects"]["?"] == {**header, "id": "object", "_pins": pins}
    assert not again["action"]["isException"]


@pytest.fixture
def deploy(name: str, publish_class: Publish) -> Callable[..., Any]:
    """Load a model of several objects, given by their headers, and return its pins."""
    group = f"{name}.group"
    contract = "Properties:\n  things:\n    Contract: [$.class('io.murano.Object')]\n"
    publish_class(group, "1.0.0", contract)

    def load(headers: Iterable[dict[str, Any]], pins: dict[str, list[str]] | None = None) -> Any:
        things = [{"?": {"id": f"id{n}", **header}} for n, header in enumerate(headers)]
        answer = tasks.run({"type": f"{group}.Thing/1"}, pins, things=things)
        assert not answer["action"]["isException"], answer
        loaded = answer["model"]["SystemData"]["Packages"]
        return {fqn: loaded[fqn] for fqn in loaded.keys() - {group, "io.murano"}}

    return load


def test_the_order_of_objects_does_not_change_their_versions(
    name: str, publish_package: Publish, publish_class: Publish, deploy: Callable[..., Any]
) -> None:
    app = f"{name}.app"
    for version in ("0.2.0", "0.3.0", "0.5.0"):
        publish_package(name, version)
    publish_class(app, "1.0.0", f"Extends: {name}.Thing\n", Require={name: ">=0.1"})
    headers = [
        {"type": f"{name}.Thing", "classVersion": "<0.4"},
        {"type": f"{name}.Thing/>=0@{name}"},
        {"type": f"{app}.Thing", "package": app},
    ]

    for ordered in itertools.permutations(headers):
        assert deploy(ordered) == {name: ["0.3.0"], app: ["1.0.0"]}
    assert deploy(headers, {name: ["0.2.0"]}) == {name: ["0.2.0"], app: ["1.0.0"]}


def test_objects_of_two_builds_share_an_environment(
    name: str, publish_package: Publish, deploy: Callable[..., Any]
) -> None:
    headers = [{"type": f"{name}.Thing/{text}@{name}"} for text in ("1.0.0", "1.0.0+b")]
    publish_package(name, "1.0.0")
    pins = deploy(headers[:1])
    publish_package(name, "1.0.0+b")

    for _ in range(2):
        pins = deploy(headers, pins)
        assert pins == {name: ["1.0.0", "1.0.0+b"]}


def test_a_deployment_of_many_packages_takes_one_request(
    conf: Any, glare: Any, name: str, deploy: Callable[..., Any], tmp_path: pathlib.Path
) -> None:
    conf.set_override("packages_cache", str(tmp_path / "cache"), "engine")
    apps = [f"{name}.app{number}" for number in range(4)]
    manifests = [packages.manifest(app, Require={name: "1"}) for app in apps]
    folders = [
        packages.write(tmp_path / manifest["FullName"], packages.files(manifest))
        for manifest in (packages.manifest(name), *manifests)
    ]
    publish.publish(glare, folders, public=True)
    headers = [
        *({"type": f"{app}.Thing"} for app in apps[:2]),
        *({"type": f"{app}.Thing/1.0.0@{app}"} for app in apps[2:]),
    ]
    requests = []

    for _ in range(2):
        before = adapter.totals.requests
        assert sorted(deploy(headers)) == apps
        requests.append(adapter.totals.requests - before)

    # The first has to fetch the archives, by one request for all of them.
    assert requests == [2, 1]


_VERSIONS = {0: "0.3.0", 1: "1.10.0", "1.1": "1.1.0", "": "2.0.0", None: "2.0.0"}


@pytest.fixture
def versions(name: str, publish_class: Publish) -> str:
    """A class in several versions."""
    for version in ("0.3.0", "1.1.0", "1.10.0", "2.0.0"):
        method = f"  version:\n    Usage: Static\n    Body:\n      Return: '{version}'\n"
        publish_class(
            name, version, "Methods:\n" + method.replace("Body", "Scope: Public\n    Body")
        )
    return f"{name}.Thing"


def test_a_whole_number_is_a_range_and_only_nothing_is_the_newest(versions: str) -> None:
    package = versions.removesuffix(".Thing")
    for written, expected in _VERSIONS.items():
        # As JSON in a model, and for a static action.
        answer = tasks.run({"type": versions, "classVersion": written})
        assert answer["model"]["SystemData"]["Packages"][package] == [expected]
        assert tasks.call_static(versions, "version", written) == expected


def test_a_header_in_a_workflow_is_read_as_one_in_a_model(
    name: str, versions: str, publish_class: Publish
) -> None:
    code = "".join(
        f"  make{number}:\n    Usage: Static\n    Scope: Public\n    Body:\n"
        f"      - $model: {{'?': {{type: {versions}, classVersion: {version}}}}}\n"
        f"      - Return: str(typeinfo(new($model)).version)\n"
        for number, version in enumerate(("0", "1.10"))
    )
    publish_class(f"{name}.app", "1.0.0", f"Methods:\n{code}", Require={name: "*"})

    assert tasks.call_static(f"{name}.app.Thing", "make0") == "0.3.0"
    with pytest.raises(Exception, match=r"1\.10 without quotes is the number 1\.1"):
        tasks.call_static(f"{name}.app.Thing", "make1")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"type": "org.example.wiki.Wiki", "classVersion": "newest"}, "'newest' is not a valid ra"),
        ({"type": "org.example.wiki.Wiki", "classVersion": 1.1}, "1.10 without quotes is the num"),
        ({"type": "org.example.wiki.Wiki", "classVersion": True}, "the bool 'True' is not a valid"),
        ({"type": "org.example.wiki.Wiki/newest"}, "'newest' is not a valid range"),
        ({"type": "org.example..Wiki"}, "'org.example..Wiki' is not a valid"),
        ({"type": "org.example.wiki:Wiki"}, "'org.example.wiki:Wiki' is not a valid name"),
        ({"type": " org.example.wiki.Wiki "}, "' org.example.wiki.Wiki ' is not a valid name"),
        ({"type": "org.example.wiki.Wiki/"}, "has no range after '/'; add one, or remove '/'"),
        ({"type": "org.example.wiki.Wiki/2@"}, "has no FQN after '@'; add one, or remove '@'"),
        ({"type": "org.example.wiki.Wiki@a b"}, "'a b' is not a valid name"),
        ({"type": "org.example.wiki.Wiki", "package": ["a"]}, "is not a valid name"),
        ({"type": ["org.example.wiki.Wiki"]}, "expected a string such as org.example.App"),
    ],
)
def test_a_malformed_header_is_an_error_that_says_what_is_wrong(
    header: dict[str, Any], message: str
) -> None:
    assert message in _error(header)


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ({"name": "no header"}, "Invalid object representation"),
        ([{"?": {}}], "Invalid object representation"),
        ({"?": None}, "'NoneType' object has no attribute 'get'"),
    ],
)
def test_a_model_without_a_header_is_the_engines_own_error_and_stays_as_it_is(
    objects: Any, message: str
) -> None:
    model = {"SystemData": {}, "project_id": demo.PROJECT, "user_id": "alice"}

    answer = tasks.run_model({"Objects": copy.deepcopy(objects), **model})

    assert answer["action"]["result"]["message"].startswith(message)
    assert answer["model"]["Objects"] == objects


_CREATE = """\
  create_{prefix}:
    Usage: Static
    Scope: Public
    Body: [{{$it: new({prefix}:Thing)}}, {{Return: $it.version()}}]
  accept_{prefix}:
    Usage: Static
    Scope: Public
    Arguments: [it: {{Contract: $.class({prefix}:Thing)}}]
    Body: [{{Return: accepted}}]
"""


def test_a_package_sees_itself_and_its_direct_requirements_and_nothing_else(
    name: str, publish_package: Publish, publish_class: Publish
) -> None:
    app, middle, child = f"{name}.app", f"{name}.middle", f"{name}.child"
    prefixes = {"own": app, "direct": middle, "indirect": name}
    methods = "".join(_CREATE.format(prefix=prefix) for prefix in prefixes)
    version = "  version:\n    Body: [{Return: own}]\n"
    publish_package(name, "1.0.0")
    publish_class(middle, "1.1.0", f"Extends: {name}.Thing\n", Require={name: "1"})
    code = f"Namespaces: {json.dumps(prefixes)}\nMethods:\n{version}{methods}"
    publish_class(app, "1.0.0", code, Require={middle: "1"})
    publish_class(child, "1.0.0", f"Extends: {name}.Thing\n", Require={middle: "1"})

    def call(method: str) -> Any:
        return tasks.call_static(f"{app}.Thing", method, "1", app)

    assert (call("create_own"), call("create_direct")) == ("own", "1.0.0")
    assert (call("accept_own"), call("accept_direct")) == ("accepted", "accepted")
    unseen = f'Class "{name}.Thing" is not found in'
    for method in ("create_indirect", "accept_indirect"):
        with pytest.raises(Exception, match=unseen):
            call(method)
    assert unseen in _error({"type": f"{child}.Thing"})


def test_a_contract_accepts_the_versions_that_the_package_requires(
    name: str, publish_package: Publish, publish_class: Publish
) -> None:
    app = f"{name}.app"
    for version in ("1.0.0", "1.2.0", "1.3.0", "2.0.0"):
        publish_package(name, version)
    contract = f"Properties:\n  thing:\n    Contract: $.class('{name}.Thing')\n"
    publish_class(app, "1.0.0", contract, Require={name: ">=1.1,<2"})

    def check(version: str) -> Any:
        thing = {"?": {"id": "thing", "type": f"{name}.Thing/{version}"}}
        return tasks.run({"type": f"{app}.Thing/1"}, thing=thing)

    assert check("1.2.0")["model"]["SystemData"]["Packages"][name] == ["1.2.0"]
    for version in ("1.0.0", "2.0.0"):
        message = check(version)["action"]["result"]["message"]
        assert f"{version}) is not compatible with requested type" in message, message


def _class(name: str, *parents: str) -> dict[str, bytes]:
    """Return the class of a package, which extends the classes of other packages."""
    extends = ", ".join(f"{parent}.Thing" for parent in parents)
    method = f"Methods:\n  from_{name.rsplit('.', 1)[1]}:\n    Body:\n      Return: 1\n"
    return {"Classes/Thing.yaml": f"Name: {name}.Thing\nExtends: [{extends}]\n{method}".encode()}


@pytest.fixture
def inherit(
    glare: Any, name: str, publish_package: Publish, tmp_path: pathlib.Path
) -> Callable[[str, str], Any]:
    """Load the specification's example: A extends B and C, which extend D of package Z."""
    b, c, d, a = (f"{name}.{letter}" for letter in "xyza")
    for version in ("1.2.0", "1.3.0"):
        publish_package(d, version)

    def load(b_requires: str, c_requires: str) -> Any:
        required = {b: ({d: b_requires}, [d]), c: ({d: c_requires}, [d]), a: ({b: 1, c: 1}, [b, c])}
        folders = []
        for package, (requirements, parents) in required.items():
            content = packages.content(package, Require=requirements)
            folders.append(
                packages.write(tmp_path / package, {**content, **_class(package, *parents)})
            )
        publish.publish(glare, folders, public=True)
        loader = murano_package_loader.CombinedPackageLoader(tasks.session())
        # Used for every range with it from now on, also where 1.2.0 is needed beside it.
        loader.load_package(d, helpers.parse_version_spec("1.3.0"))
        return loader.load_package(a, helpers.parse_version_spec("1")).find_class(f"{a}.Thing")

    return load


def _ancestors(cls: Any, name: str) -> list[str]:
    return sorted({str(each.version) for each in cls.ancestors() if each.name == f"{name}.z.Thing"})


@pytest.mark.parametrize(
    ("b_requires", "c_requires", "versions"),
    [
        ("1.2.0", "1", ["1.2.0"]),
        (">=1.2", "1", ["1.3.0"]),
        ("1.2.0", "1.3.0", ["1.2.0", "1.3.0"]),
    ],
)
def test_a_class_inherits_one_version_that_satisfies_all_its_parents(
    name: str,
    inherit: Callable[[str, str], Any],
    b_requires: str,
    c_requires: str,
    versions: list[str],
) -> None:
    assert _ancestors(inherit(b_requires, c_requires), name) == versions


def test_of_several_inherited_versions_only_an_ambiguous_member_is_an_error(
    name: str, inherit: Callable[[str, str], Any]
) -> None:
    cls = inherit("1.2.0", "1.3.0")

    assert cls.find_single_method("from_x").name == "from_x"
    with pytest.raises(dsl_exceptions.AmbiguousMethodName) as caught:
        cls.find_single_method("version")
    message = str(caught.value)
    assert f"{name}.z.Thing of {name}.z 1.2.0, required by {name}.x 1.0.0" in message
    assert f"{name}.z.Thing of {name}.z 1.3.0, required by {name}.y 1.0.0" in message


def test_a_task_reads_no_range_that_another_has_read(
    name: str, publish_package: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_package(name, "1.2.0", Require={"org.example.db": ">=1,<3"})
    spec = helpers.parse_version_spec("1")

    def load() -> Any:
        with murano_package_loader.CombinedPackageLoader(tasks.session()) as loader:
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

    auth = credentials.task_session(tasks.session()).auth

    assert isinstance(auth, credentials.TaskToken)
    assert isinstance(auth._renewing, identity.Token)
    assert auth.auth_url == "http://127.0.0.1:5000/v3"


@pytest.mark.parametrize("keystone", [None, "http://127.0.0.1:5000"])
def test_no_session_waits_without_end(conf: Any, keystone: str | None) -> None:
    conf.set_override("www_authenticate_uri", keystone, "murano_auth")

    assert credentials.task_session(tasks.session()).timeout == sessions.DEFAULT_TIMEOUT


def test_without_keystone_the_token_goes_to_glare_as_it_is() -> None:
    auth = credentials.task_session(tasks.session()).auth

    assert isinstance(auth, token_endpoint.Token)
    assert auth.token == demo.USER_TOKEN
