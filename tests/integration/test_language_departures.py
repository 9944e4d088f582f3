# SPDX-License-Identifier: Apache-2.0

"""Departures from the MuranoPL reference and the specifications: the rows of both pages.

If a test fails here, Murano may have been corrected: then remove the row and the test.
"""

import io
import pathlib
import re
from collections.abc import Callable
from typing import Any

import pytest
import requests
from murano.dsl import dsl_exception, helpers
from murano.dsl import exceptions as dsl_exceptions
from muranoclient.v1 import schemas

from glare_murano.package import (
    Archive,
    Contents,
    Description,
    InvalidPackage,
    manifest,
    package_types,
    read_contents,
    read_manifest,
)
from glare_murano.package.ui_form import check_form
from loader import compatibility
from loader.engine import error_places
from tests import packages
from tests.functional import murano_api
from tests.integration import murano_pl, publish, tasks
from tests.plugins import Site, site

__all__ = ["site"]

SOURCE = pathlib.Path(__file__).parents[2] / "doc" / "source"
PAGES = (SOURCE / "reference" / "language.rst", SOURCE / "explanation" / "departures.rst")
# Rows about the documentation, and clients that do not exist.
NOT_SHOWN = {"Documentation", "A package without a form"}

LANGUAGE = "org.example.language"
CONTRACTS = f"{LANGUAGE}.contracts.Contracts"
DEPARTURES = f"{LANGUAGE}.departures"
PROPERTIES = f"{DEPARTURES}.Properties"

_PRIVATE = """\
Name: {0}.Thing
Properties:
  configured:
    Contract: $.string()
    Usage: Config
    Default: default
Methods:
  read:
    Scope: Public
    Body:
      Return: $.configured
  decrypt:
    Scope: Public
    Body:
      Return: decryptData('6d1f3a5c-7e9b-4d0f-8a2c-4e6b8d0f1a3c')
"""

_shown: set[str] = set()


def shows(*rows: str) -> Callable[[Any], Any]:
    """Mark a test that shows the departures of these rows, by their first column."""
    _shown.update(rows)
    return lambda test: test


def test_each_row_of_the_documentation_is_shown() -> None:
    text = "".join(page.read_text() for page in PAGES)
    rows = re.findall(r"^   \* - (.+(?:\n {7}.+)*)$", text, re.MULTILINE)

    found = {" ".join(row.split()) for row in rows} - {"Construct", "Subject"}
    assert found == _shown | NOT_SHOWN


def _take(engine: murano_pl.Engine, contract: str, *values: Any) -> list[Any]:
    """Return what becomes of values by a contract."""
    return [engine.dump(engine.load(CONTRACTS, **{contract: value}))[contract] for value in values]


@shows("``$.class(A, B)``")
def test_the_second_class_makes_no_object(engine: murano_pl.Engine) -> None:
    loaded = engine.dump(engine.load(CONTRACTS))

    assert loaded["hostOrVirtualHost"] is None
    # With the default {} there is an object, but not in the place of null.
    assert loaded["virtualHost"]["?"]["type"].startswith(f"{LANGUAGE}.contracts.VirtualHost/")
    assert _take(engine, "virtualHost", None) == [None]


@shows("``[$.int(), $.string()]``")
def test_an_array_may_be_shorter_than_its_contract(engine: murano_pl.Engine) -> None:
    assert _take(engine, "integerAndStrings", [], [1]) == [[], [1]]
    with pytest.raises(dsl_exceptions.ContractViolationException, match="less than 2"):
        _take(engine, "twoOrMore", [1])


@shows("``[ ]``, ``[$.int()]``, ``{ }``")
def test_arrays_and_dictionaries_are_never_null(engine: murano_pl.Engine) -> None:
    assert _take(engine, "integers", "5", None) == [[5], []]
    assert _take(engine, "anyArray", 5, None) == [[5], []]
    assert _take(engine, "anyDictionary", None) == [{}]


@shows("``{A: $.int(), B: [$.string()]}``")
def test_keys_that_the_contract_does_not_name_are_dropped(engine: murano_pl.Engine) -> None:
    assert _take(engine, "record", {"A": 1, "C": 2}) == [{"A": 1, "B": []}]


@shows("``$.string()``")
def test_some_values_do_not_become_strings(engine: murano_pl.Engine) -> None:
    assert _take(engine, "string", True) == ["True"]
    for value in (1.5, [1], {"a": 1}):
        with pytest.raises(dsl_exceptions.ContractViolationException, match="string"):
            _take(engine, "string", value)


@shows("``$.bool()``")
def test_empty_values_become_false(engine: murano_pl.Engine) -> None:
    assert _take(engine, "bool", "", [], {}, 0.0) == [False] * 4
    assert _take(engine, "bool", "false", "0") == [True, True]


@shows("``$.int()``")
def test_fractions_are_dropped(engine: murano_pl.Engine) -> None:
    assert _take(engine, "integer", 1.9, -1.9, True) == [1, -1, 1]


@shows("``Usage: Out``", "``Usage: Const``")
def test_a_user_sets_outputs_and_changes_constants(language: None, conf: Any) -> None:
    read = tasks.action("object", "read")
    deployed = tasks.run({"type": PROPERTIES}, action=read, output="user", constant="before")
    deployed["model"]["Objects"]["constant"] = "after"
    again = tasks.run_model(deployed["model"], read)

    assert deployed["action"]["result"] == [None, "before", "user", "default"]
    assert again["action"]["result"] == [None, "after", "user", "default"]


@shows("``Usage: In``")
def test_initialize_writes_inputs(engine: murano_pl.Engine) -> None:
    loaded = engine.load(PROPERTIES, input="initialize", constant="user")

    assert engine.act(loaded, "read") == ["changed", "changed", None, "default"]


@shows("``Usage: Config``")
def test_a_configuration_file_needs_the_version_in_its_name(
    language: None, conf: Any, tmp_path: pathlib.Path
) -> None:
    conf.set_override("class_configs", str(tmp_path), "engine")
    found = []

    for name in (PROPERTIES, f"{PROPERTIES}-1", f"{PROPERTIES}-1.0", f"{PROPERTIES}-1.0.0"):
        (tmp_path / f"{name}.yaml").write_text(f"configured: {name[len(PROPERTIES) :]!r}\n")
        with murano_pl.running() as engine:
            found.append(engine.act(engine.load(PROPERTIES), "read")[-1])

    assert found == ["default", "-1", "-1.0", "-1.0.0"]


@shows("``Usage: Config`` in a private package", "``decryptData(ID)``")
def test_a_private_package_gets_no_value_and_no_secret_of_the_operator(
    tenant: Any, name: str, conf: Any, tmp_path: pathlib.Path
) -> None:
    content = packages.content(name, code=_PRIVATE.format(name))
    publish.publish(tenant, [packages.write(tmp_path / name, content)], public=False)
    (tmp_path / f"{name}.Thing-1.yaml").write_text("configured: by the operator\n")
    conf.set_override("class_configs", str(tmp_path), "engine")
    header = {"type": f"{name}.Thing"}

    read, decrypted = (
        tasks.run(header, action=tasks.action("object", method))["action"]["result"]
        for method in ("read", "decrypt")
    )

    assert read == "default"
    assert "decryptData is disabled" in decrypted["message"]


@shows("``If``, ``While``, ``Switch``")
def test_conditions_are_any_values(engine: murano_pl.Engine) -> None:
    assert engine.call(f"{DEPARTURES}.Predicates", "truth") == [2, "no", [0]]
    with pytest.raises(error_places.InvalidClass, match="the block is incomplete: While, Do"):
        engine.find_class(f"{DEPARTURES}.ConstantCondition")


@shows("``Parallel``")
def test_a_method_runs_once_at_a_time_on_an_object(engine: murano_pl.Engine) -> None:
    assert engine.call(f"{DEPARTURES}.Parallel", "oneObject") == 1
    assert engine.call(f"{DEPARTURES}.Parallel", "oneObjectAtOnce") == 2


@shows("``Catch``")
def test_exceptions_of_python_are_not_found_by_their_short_names(
    engine: murano_pl.Engine,
) -> None:
    assert engine.call(f"{DEPARTURES}.Exceptions", "byName") == "ValueError"
    assert engine.call(f"{DEPARTURES}.Exceptions", "byFullName") == "caught by name"


@shows("``Scope``")
def test_any_scope_is_accepted(engine: murano_pl.Engine) -> None:
    assert engine.call(f"{DEPARTURES}.Scopes", "call") == "called"


@shows("``type($object)``", "``Format: 1.3``")
def test_a_type_is_a_name_before_format_1_4(language: None, conf: Any) -> None:
    old = f"{LANGUAGE}.oldformat.OldFormat"

    # The method is public, although "Scope" is of the format 1.4.
    assert tasks.call_static(old, "types") == [old, True]


@shows("``Usage: Extension``")
def test_an_extension_method_without_an_argument_is_refused_when_it_is_called(
    engine: murano_pl.Engine,
) -> None:
    with pytest.raises(dsl_exception.MuranoPlException, match='No method "method"'):
        engine.call(f"{DEPARTURES}.NoArgument", "call")


@shows("``typeinfo($).version``")
def test_a_version_is_a_list_once_it_is_a_value(engine: murano_pl.Engine) -> None:
    assert engine.call(f"{DEPARTURES}.Reflection", "versions") == [[1, 0, 0, [], []], "1.0.0"]


@shows("``typeinfo($).methods``", "``io.murano.Object``")
def test_initialize_and_destroy_are_no_methods(engine: murano_pl.Engine) -> None:
    reflection = f"{DEPARTURES}.Reflection"
    methods = engine.call(reflection, "methods")

    assert {"getAttr", "setAttr", "methods"} < set(methods)
    assert not {"initialize", "destroy", ".init", ".destroy"} & set(methods)
    with pytest.raises(dsl_exception.MuranoPlException, match='Unknown method "initialize"'):
        engine.call(reflection, "callInitialize")


@shows("``$method.arguments``")
def test_methods_in_python_have_no_arguments(engine: murano_pl.Engine) -> None:
    assert engine.call(f"{DEPARTURES}.Reflection", "pythonArguments") is None


@shows("``logger(NAME)``")
def test_a_logger_has_a_prefix(engine: murano_pl.Engine, caplog: pytest.LogCaptureFixture) -> None:
    messages = f"{LANGUAGE}.logging.Messages"
    engine.call(messages, "unformatted")

    assert f"applications.{messages}" in {record.name for record in caplog.records}


@shows("``Default``")
def test_the_default_of_the_references_example_is_refused(engine: murano_pl.Engine) -> None:
    with pytest.raises(dsl_exceptions.ContractViolationException, match=r"scope\] Value 'private'"):
        engine.load(f"{LANGUAGE}.contracts.ApplicationPort", port=80)


@shows("``windows-init.sh``")
def test_a_resource_of_the_core_library_has_another_name(core_library: pathlib.Path) -> None:
    names = {file.name for file in (core_library / "io.murano" / "Resources").iterdir()}

    assert {"Agent-v1.template", "Agent-v2.template", "linux-init.sh", "windows-init.ps1"} < names
    assert "windows-init.sh" not in names


@shows("``> 0``", "``class()``, ``new()``")
def test_a_partial_version_counts_as_a_whole_and_a_loaded_version_comes_first(
    conf: Any, publish_package: Callable[..., None], name: str
) -> None:
    app = f"{name}.app"
    for version in ("0.3.0", "1.0.0", "1.1.0"):
        publish_package(name, version)
    publish_package(app, "1.0.0", Require={name: ">=1"})
    with murano_pl.running() as engine:
        loader = engine.loader
        assert str(loader.load_package(name, helpers.parse_version_spec("> 0")).version) == "1.1.0"
        with pytest.raises(dsl_exceptions.NoPackageFound):
            loader.load_package(name, helpers.parse_version_spec("> 0, < 1"))
    with murano_pl.running() as engine:
        engine.loader.load_package(name, helpers.parse_version_spec("1.0"))
        package = engine.loader.load_package(app, helpers.parse_version_spec("1"))
        assert str(package.find_class(f"{name}.Thing").version) == "1.0.0"


# Versions


def _package(name: str, code: str, **keys: Any) -> io.BytesIO:
    return io.BytesIO(packages.package(name, code=f"Name: {name}.Thing\n{code}", **keys))


@shows("Changed behaviour", "``Extends``")
def test_the_guard_reads_base_classes_and_no_bodies(name: str) -> None:
    extends, method = "Extends: io.murano.Application\n", "Methods: {{run: {{Body: [$.{}()]}}}}\n"

    def compare(old: str, new: str) -> compatibility.Part:
        return compatibility.compare(_package(name, old), _package(name, new)).part

    assert compare(method.format("one"), method.format("two")) is compatibility.Part.PATCH
    assert compare(extends, "") is compatibility.Part.MAJOR
    assert compare("", extends) is compatibility.Part.MINOR


@shows("``?/classVersion``", "``?/package``, ``?/version``")
@shows("A new component of a deployed environment")
def test_the_version_of_an_object_is_in_its_type(
    conf: Any, glare: Any, name: str, tmp_path: pathlib.Path
) -> None:
    for version in ("1.0.0", "2.0.0"):
        content = packages.content(name, version)
        method = "Methods: {run: {Scope: Public, Body: [Return: done]}}\n"
        content["Classes/Thing.yaml"] = f"Name: {name}.Thing\n{method}".encode()
        publish.publish(glare, [packages.write(tmp_path / version, content)], public=True)

    def saved(header: dict[str, Any], pins: dict[str, list[str]] | None = None) -> Any:
        answer = tasks.run({"type": f"{name}.Thing", **header}, pins, tasks.action("object", "run"))
        assert answer["action"]["result"] == "done"
        return answer["model"]["Objects"]["?"]

    header = saved({"classVersion": "1", "package": name, "version": "2.0.0"})
    assert header["type"] == f"{name}.Thing/1.0.0@{name}"
    assert not {"classVersion", "package"} & header.keys()
    # The pinned version, and not the newest.
    assert saved({}, {name: ["1.0.0"]})["type"] == f"{name}.Thing/1.0.0@{name}"


@shows("1.2.0 and 1.3.0 of a base class")
def test_a_class_may_inherit_two_versions(engine: murano_pl.Engine) -> None:
    loaded = engine.load(f"{LANGUAGE}.inheritance.application.Application")
    versions = [str(each.version) for each in loaded.type.ancestors() if each.name.endswith("Base")]

    assert versions == ["1.0.0", "2.0.0"]


@shows("``Format: MuranoPL/1.3.1``")
def test_a_format_has_to_be_registered(name: str) -> None:
    archive = _package(name, "", Format="MuranoPL/1.3.1")

    with (
        Archive.open(archive) as opened,
        pytest.raises(InvalidPackage, match=r"1\.3\.1"),
    ):
        read_manifest(opened)


@shows("``Format`` of a form")
def test_the_version_of_a_form_is_not_its_format() -> None:
    problems, warnings = check_form(packages.FORM + b"Format: 2.1\n", "ui.yaml")

    assert problems == []
    assert ["the section 'Format' is unknown" in str(each) for each in warnings] == [True]


# Package types


@shows("All data of a package", "``full_name``, ``version``", "``supplier_logo``")
def test_a_function_describes_the_packages_of_a_type(site: Site, name: str) -> None:
    point = {manifest.PLUGIN_NAMESPACE: {"Test.Made/1.0": "no.such:Class"}}
    site.install("made", "1.0", point, {})
    keys = {"Format": "Test.Made/1.0", "Classes": None, "Name": "By hand"}
    files = packages.content(name, more={"supplier_logo.png": b"GIF89a"}, **keys)

    def read(describe: package_types.Describe) -> Contents:
        with Archive.open(io.BytesIO(packages.zipped(files))) as archive:
            return read_contents(archive, describe)

    with pytest.raises(InvalidPackage, match="has to list the classes, since no function is"):
        read(package_types.describe)
    found = read(lambda *_: Description({f"{name}.Thing": ()}, {}, manifest={"Name": "Computed"}))
    assert ([each.name for each in found.classes], found.manifest.display_name) == (
        [f"{name}.Thing"],
        "Computed",
    )
    assert found.supplier_logo == b"GIF89a"
    with pytest.raises(InvalidPackage, match="name and version must be those of the manifest"):
        read(lambda *_: Description({}, {}, manifest={"Version": "2.0.0"}))


# Schemas


@shows("A schema without ``classVersion``")
def test_a_schema_without_a_version_is_of_the_newest(
    conf: Any, publish_package: Callable[..., None], name: str
) -> None:
    publish_package(name, "1.0.0")

    assert tasks.schemas(f"{name}.Thing", "=0").keys() == {""}
    with pytest.raises(dsl_exceptions.NoPackageForClassFound):
        tasks.schemas(f"{name}.Thing", "0")


@shows("An empty list of methods")
def test_muranoclient_drops_an_empty_list_of_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[str] = []
    manager = schemas.SchemaManager(None)
    monkeypatch.setattr(manager, "_get", requested.append)

    manager.get("org.example.App", [""])

    assert requested == ["/v1/schemas/org.example.App"]


@shows("No access to a schema")
def test_a_denied_policy_is_another_status_than_an_invalid_token(tmp_path: pathlib.Path) -> None:
    (tmp_path / "policy.yaml").write_text("get_schema: '!'\n")

    with murano_api.running(tmp_path) as url:
        statuses = [
            requests.get(
                f"{url}/v1/schemas/org.example.App", headers={"X-Auth-Token": token}, timeout=60
            ).status_code
            for token in ("invalid", "alice:project:member")
        ]

    assert statuses == [401, 403]


@shows("``io.murano.metadata.Position``")
def test_a_position_is_a_class_of_another_namespace(engine: murano_pl.Engine) -> None:
    assert engine.find_class("io.murano.metadata.forms.Position").usage == "Meta"
    with pytest.raises(dsl_exceptions.NoPackageForClassFound):
        engine.find_class("io.murano.metadata.Position")
