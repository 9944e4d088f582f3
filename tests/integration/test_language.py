# SPDX-License-Identifier: Apache-2.0

"""The MuranoPL reference, chapter by chapter, with packages of ``language`` from Glare.

The packages are examples for authors as well. Where Murano departs from the reference,
``test_language_departures`` shows it.
"""

import copy
import logging
import pathlib
import re
from typing import Any

import pytest
from murano.dsl import dsl_exception
from murano.dsl import exceptions as dsl_exceptions
from yaql.language import exceptions as yaql_exceptions

from tests.integration import murano_pl, tasks

LANGUAGE = "org.example.language"

CONTRACTS = f"{LANGUAGE}.contracts.Contracts"
SITE = f"{LANGUAGE}.contracts.Site"
HOST = f"{LANGUAGE}.contracts.Host"
VIRTUAL_HOST = f"{LANGUAGE}.contracts.VirtualHost"

FORMS = pathlib.Path(__file__).parents[2] / "doc" / "source" / "reference" / "forms.rst"


# Contracts


def _header(class_name: str, object_id: str | None = None) -> dict[str, Any]:
    found = {"type": class_name, "classVersion": "*"}
    return {"?": found if object_id is None else {**found, "id": object_id}}


# Of each contract, values and what becomes of them.
ACCEPTED: dict[str, list[tuple[Any, Any]]] = {
    "integer": [(5, 5), ("12", 12), (None, None)],
    "mandatoryInteger": [(5, 5), ("12", 12)],
    "string": [("text", "text"), (12, "12"), (None, None)],
    "mandatoryString": [("", ""), (12, "12")],
    "bool": [(True, True), (0, False), (7, True), (-1, True), ("no", True), (None, None)],
    "mandatoryBool": [(False, False), (0, False)],
    "integers": [([1, "2", None], [1, 2, None]), ([], [])],
    "mandatoryIntegers": [([1, "2"], [1, 2]), ([], [])],
    "positiveIntegers": [([1, "2"], [1, 2])],
    "integerAndStrings": [([1, 2], [1, "2"]), (["1", "2", 3], [1, "2", "3"])],
    "twoOrMore": [([1, "2"], [1, 2]), ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6])],
    "twoToFive": [([1, 2], [1, 2]), ([1, 2, 3, 4, "5"], [1, 2, 3, 4, 5])],
    "record": [({"A": "1", "B": [2]}, {"A": 1, "B": ["2"]})],
    "numbers": [({"a": "1", 2: 3}, {"a": 1, "2": 3}), ({}, {})],
    "stringMap": [({"A": "StringMap", "b": [1]}, {"A": "StringMap", "b": [1]})],
    "anything": [(1, 1), ({"a": [None]}, {"a": [None]}), (None, None)],
    "anyArray": [([1, "a", {}], [1, "a", {}])],
    "anyDictionary": [({"a": 1, "b": [2]}, {"a": 1, "b": [2]})],
    "exactInteger": [(1, 1), (None, None)],
    "exactBool": [(False, False), (None, None)],
    "zone": [("north", "north"), ("south", "south")],
    "even": [(4, 4), (0, 0)],
}


@pytest.mark.parametrize("number", range(max(map(len, ACCEPTED.values()))))
def test_a_contract_accepts_or_transforms_a_value(engine: murano_pl.Engine, number: int) -> None:
    pairs = {name: pairs[number] for name, pairs in ACCEPTED.items() if number < len(pairs)}
    loaded = engine.dump(
        engine.load(CONTRACTS, **{name: given for name, (given, _) in pairs.items()})
    )

    expected = {name: taken for name, (_, taken) in pairs.items()}
    assert {name: loaded[name] for name in pairs} == expected
    # True equals 1.
    assert {name: type(loaded[name]) for name in pairs} == {n: type(v) for n, v in expected.items()}


@pytest.mark.parametrize(
    ("contract", "values", "reason"),
    [
        ("integer", ["many", [], {}], "violates int() contract"),
        ("mandatoryInteger", [None], "null value violates notNull() contract"),
        ("mandatoryString", [None], "null value violates notNull() contract"),
        ("mandatoryBool", [None], "null value violates notNull() contract"),
        ("mandatoryHost", [None], "null value violates notNull() contract"),
        ("host", [5, ["id"]], "cannot be represented as class"),
        ("host", [_header(SITE)], "is not compatible with requested type"),
        ("host", ["missing-id"], 'Object "missing-id" is not found'),
        ("database", [{"name": "web"}], "doesn't match predicate"),
        ("integers", [["many"]], "violates int() contract"),
        ("mandatoryIntegers", [[1, None]], "null value violates notNull() contract"),
        ("positiveIntegers", [[0], [None]], "doesn't match predicate"),
        ("integerAndStrings", [["first", "second"]], "violates int() contract"),
        ("twoOrMore", [[1], []], "must not be less than 2"),
        ("twoOrMore", [[1, "many"]], "violates int() contract"),
        ("twoToFive", [[1], [1, 2, 3, 4, 5, 6]], "is not within [2..5] range"),
        ("record", [{"A": "many"}], "violates int() contract"),
        ("record", [5, [1]], "is not of a dictionary type"),
        ("numbers", [{"a": None}], "null value violates notNull() contract"),
        ("stringMap", [{"A": "other"}, {}], "is not equal to StringMap"),
        ("anyDictionary", ["text", [1]], "is not of a dictionary type"),
        ("exactInteger", [1.5, "1", True], "doesn't match predicate"),
        ("exactBool", ["", 1, []], "doesn't match predicate"),
        ("zone", ["west", None], "doesn't match predicate"),
        ("even", [3], "an odd number"),
    ],
)
def test_a_contract_refuses_a_value(
    engine: murano_pl.Engine, contract: str, values: list[Any], reason: str
) -> None:
    for value in values:
        with pytest.raises(Exception, match=re.escape(reason)):
            engine.load(CONTRACTS, **{contract: value})


def test_a_contract_of_a_class_takes_an_object_its_properties_or_its_id(
    engine: murano_pl.Engine,
) -> None:
    hosts = [{**_header(HOST, "web"), "name": "web"}, _header(VIRTUAL_HOST, "virtual")]

    def load(**contracts: Any) -> Any:
        site = engine.load(SITE, hosts=hosts, contracts={**_header(CONTRACTS), **contracts})
        return engine.dump(site)["contracts"]

    assert load(host="web")["host"] == "web"
    assert load(host="virtual")["host"] == "virtual"
    for contract, class_name in (("host", HOST), ("hostOrVirtualHost", VIRTUAL_HOST)):
        made = load(**{contract: {"name": "inside"}})[contract]
        assert made["?"]["type"] == f"{class_name}/1.0.0@{LANGUAGE}.contracts"
    assert load(ownHost={"name": "inside"})["ownHost"]["name"] == "inside"
    assert load(otherHost="web")["otherHost"] == "web"
    for wrong in ({"ownHost": "web"}, {"otherHost": {"name": "inside"}}):
        with pytest.raises(dsl_exceptions.ContractViolationException, match=r"wned\(\) contract"):
            load(**wrong)


def test_a_default_must_satisfy_the_contract(engine: murano_pl.Engine) -> None:
    port = f"{LANGUAGE}.contracts.ApplicationPort"
    found = engine.act(engine.load(port, port="80", scope="cloud"), "getRepresentation")

    assert found == {"port": 80, "scope": "cloud", "protocol": "TCP"}
    # The reference's own example has a default that its contract refuses.
    with pytest.raises(dsl_exceptions.ContractViolationException, match=r"scope\] Value 'private'"):
        engine.load(port, port=80)
    for wrong in (0, 65536, None, "http"):
        with pytest.raises(dsl_exceptions.ContractViolationException, match=r"Port\.port\]"):
            engine.load(port, port=wrong, scope="cloud")


# Properties

USAGES = f"{LANGUAGE}.properties.Usages"


@pytest.fixture
def class_configs(language: None, conf: Any, tmp_path: pathlib.Path) -> None:
    """The operator's directory with the configuration of classes."""
    (tmp_path / f"{USAGES}-1.2.yaml").write_text("configured: by the operator\n")
    conf.set_override("class_configs", str(tmp_path), "engine")


def test_properties_are_read_and_written_by_their_usage(class_configs: None) -> None:
    given = {"given": "user", "constant": "user", "state": "user"}
    hidden = {"scratchWithDefault": "user", "shared": "user", "configured": "user"}

    action = tasks.action("object", "writeAll")
    answer = tasks.run({"type": USAGES}, action=action, **given, **hidden)

    assert answer["action"]["result"] == {
        "given": "user",
        "givenWithoutDefault": None,
        "constant": "user",
        "result": "written",
        "state": "written",
        "scratchWithDefault": "default",
        "shared": "written",
        "configured": "by the operator",
        "disk": [12, "ext4"],
    }
    saved = answer["model"]["Objects"]
    assert saved.keys() - {"?"} == {
        "given", "givenWithoutDefault", "constant", "result", "state", "disk",
    }  # fmt: skip
    assert (saved["given"], saved["result"], saved["state"]) == ("user", "written", "written")
    # The next deployment has what was saved, and nothing else.
    again = tasks.run_model(answer["model"], tasks.action("object", "readAll"))["action"]["result"]
    assert again == {**answer["action"]["result"], "shared": "default"}


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("writeGiven", '"given" is immutable to the caller'),
        ("writeConstant", '"constant" is immutable to the caller'),
        ("writeNumber", r"Usages\.state\] Value"),
        ("readScratch", 'Access to uninitialized property "scratch"'),
        ("readPrivate", 'Access to uninitialized property "private"'),
        ("readSecretOfBase", 'Access to uninitialized property "secret"'),
    ],
)
def test_a_property_is_refused_to_a_workflow(
    engine: murano_pl.Engine, method: str, reason: str
) -> None:
    with pytest.raises(dsl_exception.MuranoPlException, match=reason):
        engine.act(engine.load(USAGES), method)


def test_an_undeclared_property_is_private_to_its_class(engine: murano_pl.Engine) -> None:
    assert engine.act(engine.load(USAGES), "secrets") == ["own", "base"]


def test_a_default_is_for_a_property_that_is_left_out(engine: murano_pl.Engine) -> None:
    usages = [engine.load(USAGES), engine.load(USAGES, given=None, disk={"format": "xfs"})]
    left_out, null = (engine.act(loaded, "readAll") for loaded in usages)

    assert (left_out["given"], left_out["disk"]) == ("default", [12, "ext4"])
    assert (null["given"], null["disk"]) == (None, [1, "xfs"])
    assert left_out["givenWithoutDefault"] is None


def test_an_object_is_initialized_once(engine: murano_pl.Engine) -> None:
    loaded = engine.load(f"{LANGUAGE}.properties.Initialized", name="you")

    assert engine.dump(loaded)["greeting"] == "Hello, you"


# Workflow


@pytest.mark.parametrize(
    ("method", "arguments", "result"),
    [
        ("if", {"number": 3}, ["positive", 3]),
        ("if", {"number": -3}, ["negative", 3]),
        ("if", {"number": 0}, ["zero", 0]),
        ("while", {}, [0, 1, 2]),
        ("for", {"collection": ["a", "b"]}, ["a", "b", 1, 2, 3]),
        ("for", {"collection": []}, [1, 2, 3]),
        ("repeat", {"times": 3}, 23),
        ("repeat", {"times": 0}, 20),
        ("breakAndContinue", {}, [[1, 3], 5, 7]),
        ("match", {"value": "first"}, "the first case"),
        ("match", {"value": 2}, "the number"),
        ("match", {"value": "other"}, "the default"),
        ("matchWithoutDefault", {"value": "first"}, "matched"),
        ("matchWithoutDefault", {"value": "other"}, "not matched"),
        ("switch", {"number": 2}, ["even", "positive"]),
        ("switch", {"number": 3}, ["positive"]),
        ("switch", {"number": -3}, ["neither"]),
        ("parallel", {"limit": None}, [4, 4]),
        ("parallel", {"limit": 2}, [4, 8]),
        ("do", {}, [1, 2]),
        ("returnFromLoop", {}, 2),
        ("returnNothing", {}, None),
    ],
)
def test_a_block_is_executed(
    engine: murano_pl.Engine, method: str, arguments: dict[str, Any], result: Any
) -> None:
    assert engine.call(f"{LANGUAGE}.workflow.Blocks", method, **arguments) == result


@pytest.mark.parametrize(
    ("name", "blocks"),
    [
        (None, ["try", "end", "else", "finally"]),
        ("keyError", ["try", "about keyError", "finally"]),
        ("typeError", ["try", f"{LANGUAGE}.workflow.typeError", "finally"]),
    ],
)
def test_an_exception_is_caught_by_its_name(
    engine: murano_pl.Engine, name: str | None, blocks: list[str]
) -> None:
    assert engine.call(EXCEPTIONS, "blocks", name=name) == blocks


EXCEPTIONS = f"{LANGUAGE}.workflow.Exceptions"


def test_an_exception_that_nothing_catches_ends_the_method(engine: murano_pl.Engine) -> None:
    with pytest.raises(dsl_exception.MuranoPlException, match="about otherError"):
        engine.call(EXCEPTIONS, "blocks", name="otherError")
    assert engine.call(EXCEPTIONS, "nested") == ["inner finally", "from inside"]


def test_errors_of_the_engine_are_caught(engine: murano_pl.Engine) -> None:
    assert 'Unknown method "missing"' in engine.call(EXCEPTIONS, "catchAll")


def test_finally_is_executed_after_return(engine: murano_pl.Engine) -> None:
    assert engine.call(EXCEPTIONS, "returnFromTry") == "returned"
    assert engine.call(EXCEPTIONS, "getNotes") == ["finally"]


def test_expressions_and_strings_are_distinguished(engine: murano_pl.Engine) -> None:
    expressions = f"{LANGUAGE}.workflow.Expressions"

    assert engine.call(expressions, "texts") == {
        "plain": "Some text",
        "expression": "VALUE",
        "quoted": "$text.toUpper()",
        "string": "$text",
        "yaql": "text",
        "withoutDollar": 4,
        "comparison": True,
    }
    assert engine.call(expressions, "calls") == {
        "self": 20,
        "this": 20,
        "property": 30,
        "thisProperty": 30,
        "arguments": 6,
        "named": 7,
        "complex": [30, 21],
    }


def test_every_assignment_of_the_reference_works(engine: murano_pl.Engine) -> None:
    assert engine.call(f"{LANGUAGE}.workflow.Assignments", "all") == {
        "local": "value",
        "property": "value",
        "copied": "other",
        "array": [1, 2],
        "structure": {"SomeKey": {"NestedKey": 1}},
        "first": [10, 2],
        "appended": [10, 2, 3],
        "inserted": [10, 5, 2, 3],
        "deleted": [2],
        "dotted": {"key": {"subKey": "value", "kept": 2}},
        "indexed": {"key": {"subKey": "other", "kept": 2}, "new": "added"},
    }


# Methods

METHODS = f"{LANGUAGE}.methods.Methods"


def test_arguments_are_given_by_position_and_by_name(engine: murano_pl.Engine) -> None:
    assert engine.call(METHODS, "calls") == {
        "positions": ["rc", 3, [4, 5], {}],
        "keywords": ["rc", 3, [], {"a": 1, "b": 2}],
        "all": ["rc", 3, [4], {"c": 5}],
        "defaults": ["default", None],
        "nulls": [None, 1],
    }


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("tooMany", 'No method "withDefault"'),
        ("unknownKeyword", 'No method "withDefault"'),
        ("missing", r"scaleRc\(newSize\)\] null value violates notNull"),
        ("wrongRest", r"scaleRc\(rest\)\] Value 'many' violates int"),
    ],
)
def test_wrong_arguments_are_refused(engine: murano_pl.Engine, method: str, reason: str) -> None:
    with pytest.raises(dsl_exception.MuranoPlException, match=reason):
        engine.call(METHODS, method)


def test_only_public_methods_are_called_from_outside(engine: murano_pl.Engine) -> None:
    loaded = engine.load(METHODS)

    assert engine.act(loaded, "forAll") == ["session", "session"]
    assert engine.act(loaded, "action") == "action"
    assert engine.act(loaded, "runtime") == "runtime"
    for method in ("forSession", "alsoForSession"):
        with pytest.raises(dsl_exceptions.MethodNotExposed):
            engine.act(loaded, method)


def test_workflow_is_another_name_of_methods(engine: murano_pl.Engine) -> None:
    assert engine.call(f"{LANGUAGE}.methods.OldStyle", "method") == "called"


# Objects and their classes

OBJECTS = f"{LANGUAGE}.objects"


def test_names_of_classes_are_resolved_by_namespaces(engine: murano_pl.Engine) -> None:
    assert engine.call(f"{OBJECTS}.Child", "names") == {
        "current": True,
        "prefix": f"{OBJECTS}.part.Base",
        "full": f"{OBJECTS}.part.Base",
        "colon": f"{OBJECTS}.Base",
        "ancestors": [
            "io.murano.Object", f"{OBJECTS}.Base", f"{OBJECTS}.Mixin", f"{OBJECTS}.part.Base",
        ],
        "inherited": True,
        "isObject": True,
    }  # fmt: skip


# The second one is the key in the reference's template.
DESIGNER_ENTRIES = {
    "_designer": {"key": "value"},
    "optional designer-related entries can be placed here": {"key": "value"},
}


@pytest.mark.usefixtures("conf", "language")
def test_an_object_is_referred_to_by_its_id_and_owned_where_it_is_defined() -> None:
    application = f"{OBJECTS}.Application"
    child = {**_header(application, "child"), "reference": "second"}
    first = {**_header(application, "first"), "reference": "second", "text": "second"}
    first["?"]["name"] = "The first"
    first["?"] |= DESIGNER_ENTRIES
    applications = [{**first, "child": child}, _header(application, "second")]
    root = {"type": f"{OBJECTS}.Root", "id": "root"}
    described = [
        tasks.run(root, action=tasks.action(found, "describe"), applications=applications)
        for found in ("first", "child")
    ]

    assert [found["action"]["result"] for found in described] == [
        {
            "id": "first", "name": "The first", "root": "root", "parent": "first",
            "reference": "second", "text": "second",
        },
        {
            "id": "child", "name": None, "root": "root", "parent": "first",
            "reference": "second", "text": None,
        },
    ]  # fmt: skip
    saved = described[0]["model"]["Objects"]["applications"][0]
    assert saved["?"].items() >= DESIGNER_ENTRIES.items()
    # The version is in the type.
    assert "classVersion" not in saved["?"]
    assert (saved["reference"], saved["child"]["?"]["id"]) == ("second", "child")


def test_attributes_are_kept_from_deployment_to_deployment(language: None, conf: Any) -> None:
    action = tasks.action("object", "remember")
    first = tasks.run({"type": f"{OBJECTS}.Application"}, action=action)
    second = tasks.run_model(first["model"], action)

    assert [answer["action"]["result"] for answer in (first, second)] == ["never", "once"]


# Static members

STATICS = f"{LANGUAGE}.statics.User"


def test_a_class_has_one_type_object(engine: murano_pl.Engine) -> None:
    assert engine.call(STATICS, "typeObjects") == [True] * 4
    assert engine.call(STATICS, "news") == [True] * 4
    assert engine.call(f"{LANGUAGE}.statics.Bar", "this") == [True, True]


def test_static_members_belong_to_the_class(engine: murano_pl.Engine) -> None:
    assert engine.call(STATICS, "methods") == [["default", "arg"]] * 4
    before, after, again = engine.call(STATICS, "properties")

    assert before == ["default"] * 3
    assert after == ["changed"] * 4
    assert again == "again"


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("instanceMethod", 'No method "instanceMethod" for receiver'),
        ("wrongValue", r"Bar.property\] Value .* violates string\(\) contract"),
    ],
)
def test_static_access_is_refused(engine: murano_pl.Engine, method: str, reason: str) -> None:
    with pytest.raises(dsl_exception.MuranoPlException, match=reason):
        engine.call(STATICS, method)


# Extension methods

EXTENSIONS = f"{LANGUAGE}.extensions"


def test_extension_methods_are_found_in_the_references_order(engine: murano_pl.Engine) -> None:
    assert engine.call(f"{EXTENSIONS}.SampleClass", "calls") == {
        "integer": 6,
        "expression": 8,
        "typeObject": 6,
        "ofNull": "nothing",
        "class": "server web",
        "instanceFirst": "method",
        "staticFirst": "static method",
    }
    assert engine.call(f"{EXTENSIONS}.Importing", "calls") == {
        "imported": "server web",
        "first": "MoreMethods",
        "own": "own",
        "integer": 12,
    }
    assert engine.call(f"{EXTENSIONS}.ImportingOne", "calls") == 30


@pytest.mark.parametrize(
    ("class_name", "method", "reason"),
    [
        ("SampleClass", "onInstance", 'No method "mul" for receiver'),
        ("SampleClass", "onNull", "null value violates notNull"),
        ("SampleClass", "onString", 'No method "mul" for receiver a'),
        ("Server", "callLabel", 'Unknown method "label"'),
    ],
)
def test_an_extension_method_is_refused(
    engine: murano_pl.Engine, class_name: str, method: str, reason: str
) -> None:
    with pytest.raises(dsl_exception.MuranoPlException, match=reason):
        engine.call(f"{EXTENSIONS}.{class_name}", method)


# Reflection

SAMPLE = f"{LANGUAGE}.reflection.Sample"


def test_reflection_describes_a_class(engine: murano_pl.Engine) -> None:
    found = engine.call(SAMPLE, "types")

    assert {"sampleMethod", "staticMethod", "getAttr"} < set(found.pop("methods"))
    assert found == {
        "name": SAMPLE,
        "version": "1.2.3",
        "parts": [1, 2, 3],
        "ancestors": [f"{LANGUAGE}.reflection.Base", "io.murano.Object"],
        "package": f"{LANGUAGE}.reflection",
        "properties": ["inherited", "name", "static"],
        "new": True,
        "ofType": True,
    }


def test_reflection_reads_and_writes_properties(engine: murano_pl.Engine) -> None:
    assert engine.call(SAMPLE, "properties") == {
        "inherited": {
            "hasDefault": True, "usage": "InOut", "declaringType": f"{LANGUAGE}.reflection.Base",
            "before": "base", "after": "new_value",
        },
        "name": {
            "hasDefault": False, "usage": "Out", "declaringType": SAMPLE,
            "before": "sample", "after": "new_value",
        },
        "static": {
            "hasDefault": True, "usage": "Static", "declaringType": SAMPLE,
            "before": "default", "after": "new_value",
        },
    }  # fmt: skip
    assert engine.call(SAMPLE, "staticProperty") == ["changed", "changed"]


def test_reflection_describes_a_package(engine: murano_pl.Engine) -> None:
    assert engine.call(SAMPLE, "packages") == {
        "name": f"{LANGUAGE}.reflection",
        "version": "1.2.3",
        "types": [f"{LANGUAGE}.reflection.Base", SAMPLE],
        "core": ["io.murano", "0.0.0"],
    }


def test_reflection_describes_and_invokes_methods(engine: murano_pl.Engine) -> None:
    assert engine.call(SAMPLE, "methods") == {
        "name": "sampleMethod",
        "declaringType": SAMPLE,
        "arguments": [
            ["bar", False, "Standard"],
            ["baz", True, "Standard"],
            ["rest", False, "VarArgs"],
            ["others", False, "KwArgs"],
        ],
        "declaringMethod": "sampleMethod",
        "invoked": ["sample", "bar", "baz", [], {}],
    }
    assert engine.call(SAMPLE, "invokeStatic") == "text"
    with pytest.raises(dsl_exception.MuranoPlException, match="A class instance is required"):
        engine.call(SAMPLE, "invokeWithoutObject")


@pytest.mark.parametrize(
    ("class_name", "properties"),
    [
        (
            "io.murano.Environment",
            {
                "name": "In", "applications": "In", "agentListener": "Runtime",
                "stack": "Runtime", "instanceNotifier": "Runtime", "defaultNetworks": "In",
                "securityGroupManager": "Runtime",
            },
        ),
        (
            "io.murano.resources.Instance",
            {
                "name": "In", "flavor": "In", "image": "In", "keyname": "In", "agent": "Runtime",
                "ipAddresses": "Out", "networks": "In", "volumes": "In", "blockDevices": "In",
                "assignFloatingIp": "In", "floatingIpAddress": "Out", "securityGroupName": "In",
            },
        ),
    ],
)  # fmt: skip
def test_the_core_library_has_the_references_properties(
    engine: murano_pl.Engine, class_name: str, properties: dict[str, str]
) -> None:
    declared = engine.find_class(class_name).properties

    assert {name: declared[name].usage for name in properties} == properties


# Versions

VERSIONING = f"{LANGUAGE}.versioning"


def test_reflection_shows_the_versions_side_by_side(engine: murano_pl.Engine) -> None:
    """The specification "Murano versioning": a class has the version of its package."""
    expected = {
        "own": ("application", "Application", "0.0.0"),
        "first": ("first", "First", "1.0.0-rc.1+build.7"),
        "second": ("second", "Second", "1.1.0"),
        "thingOfFirst": ("library", "Thing", "1.0.0"),
        "thingOfSecond": ("library", "Thing", "2.0.0"),
    }

    assert engine.call(f"{VERSIONING}.application.Application", "versions") == {
        key: {
            "type": [f"{VERSIONING}.{package}.{name}", version],
            "package": [f"{VERSIONING}.{package}", version],
            "types": [[f"{VERSIONING}.{package}.{name}", version]],
            "new": version,
        }
        for key, (package, name, version) in expected.items()
    }


def test_versions_of_a_class_are_unrelated(engine: murano_pl.Engine) -> None:
    application = f"{VERSIONING}.application.Application"

    assert engine.call(application, "parts") == [1, 0, 0, ["rc", "1"], ["build", "7"]]
    assert engine.call(application, "counters") == [2, 1]
    assert engine.call(application, "accept") == "accepted"
    with pytest.raises(dsl_exception.MuranoPlException, match=r"Thing/2\.0\.0\) is not compatible"):
        engine.call(application, "refuse")


# Metadata

METADATA = f"{LANGUAGE}.metadata"


def test_metadata_is_attached_to_every_entity(engine: murano_pl.Engine) -> None:
    bar = f"{METADATA}.Bar"

    assert engine.call(bar, "description") == "Just an empty application class with some metadata"
    assert engine.call(bar, "all") == {
        "package": ["Just a package with some metadata"],
        "type": [["Just an empty application class with some metadata", 1]],
        "property": [1, 2, 3],
        "method": [0, 5],
        "argument": [["An argument", 0]],
    }
    everything = ["Argument", "Method", "Package", "Property", "Type"]
    assert engine.call(bar, "classes") == [
        ["Meta", "One", False, everything],
        ["Meta", "Many", True, ["Method", "Property", "Type"]],
        "Class",
    ]


def test_only_inherited_metadata_is_kept_in_a_subclass(engine: murano_pl.Engine) -> None:
    assert engine.call(f"{METADATA}.Child", "inherited") == {
        "one": 0,
        "many": [4, 10],
        "inherited": ["of Bar"],
        "property": [2, 3],
        "method": [5],
    }


def test_of_metadata_with_cardinality_one_a_subclass_overrides_what_it_inherits(
    engine: murano_pl.Engine,
) -> None:
    assert engine.call(f"{METADATA}.ExplicitChild", "read") == ["of ExplicitChild"]
    with pytest.raises(dsl_exception.MuranoPlException, match="Found more than one instance"):
        engine.call(f"{METADATA}.TwoParents", "read")


def test_a_contract_checks_metadata(engine: murano_pl.Engine) -> None:
    assert engine.call(f"{METADATA}.BlogApp", "accept") == "accepted"
    with pytest.raises(dsl_exception.MuranoPlException, match="doesn't match predicate"):
        engine.call(f"{METADATA}.BlogApp", "refuse")


# Actions

ACTIONS = f"{LANGUAGE}.actions"


@pytest.fixture(scope="module")
def deployed(language: None) -> Any:
    """The model of an environment with one application, after its deployment."""
    application = {**_header(f"{ACTIONS}.Application", "application"), "name": "app"}
    return tasks.run(
        {"type": "io.murano.Environment"},
        action=tasks.action("object", "deploy"),
        name="environment",
        applications=[application],
    )["model"]


def test_a_deployed_object_lists_its_actions(deployed: Any) -> None:
    (application,) = deployed["Objects"]["applications"]

    assert application["replicas"] == 2
    assert application["?"]["_actions"] == {
        "application_scale": {
            "enabled": True,
            "name": "scale",
            "title": "Scale",
            "description": "Change the number of replicas",
        },
        "application_exportConfig": {
            "enabled": True,
            "name": "exportConfig",
            "title": "exportConfig",
        },
        "application_oldAction": {"enabled": True, "name": "oldAction", "title": "oldAction"},
    }


def test_an_action_is_executed_on_the_deployed_object(deployed: Any) -> None:
    model = copy.deepcopy(deployed)
    disabled = {"application_scale": {"name": "scale", "enabled": False}}
    model["Objects"]["applications"][0]["?"]["_actions"] = disabled

    scaled = tasks.run_model(model, tasks.action("application", "scale", by="3"))

    assert scaled["action"]["result"] == 5
    (application,) = scaled["model"]["Objects"]["applications"]
    assert application["replicas"] == 5
    enabled = {found["name"]: found["enabled"] for found in application["?"]["_actions"].values()}
    assert enabled == {"scale": False, "exportConfig": True, "oldAction": True}


def test_an_action_returns_an_object(deployed: Any) -> None:
    answer = tasks.run_model(copy.deepcopy(deployed), tasks.action("application", "exportConfig"))

    exported = answer["action"]["result"]
    assert exported["filename"] == "application.tar.gz"
    assert exported["base64Content"].strip() == "ZXhwb3J0ZWQ="


def test_an_action_is_refused(engine: murano_pl.Engine) -> None:
    application = engine.load(f"{ACTIONS}.Application")

    assert engine.act(application, "oldAction") == 1
    with pytest.raises(dsl_exceptions.MethodNotExposed, match="scaleTo is not an action"):
        engine.act(application, "scaleTo", replicas=1)
    with pytest.raises(dsl_exceptions.ContractViolationException, match="null value violates"):
        engine.act(application, "scale")


def test_a_static_action_needs_no_object(language: None, conf: Any) -> None:
    bar = f"{ACTIONS}.Bar"

    assert tasks.call_static(bar, "staticAction", myName="John") == "Hello, John"
    with pytest.raises(dsl_exceptions.MethodNotExposed):
        tasks.call_static(bar, "notPublic")
    # murano-api makes it 400.
    with pytest.raises(dsl_exceptions.ContractViolationException, match=r"notStatic .* is not sta"):
        tasks.call_static(bar, "notStatic")
    with pytest.raises(dsl_exceptions.ContractViolationException, match="myName"):
        tasks.call_static(bar, "staticAction")
    with pytest.raises(yaql_exceptions.NoMatchingMethodException):
        tasks.call_static(bar, "staticAction", myName="John", other=1)


# Logger

MESSAGES = f"{LANGUAGE}.logging.Messages"


def test_messages_are_logged_in_every_level(
    engine: murano_pl.Engine, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(5, f"applications.{MESSAGES}"):
        formatted = engine.call(MESSAGES, "levels")
        engine.call(MESSAGES, "exception")
        engine.call(MESSAGES, "unformatted")

    assert formatted == "print my info message value"
    logged = [
        (record.levelno, record.getMessage())
        for record in caplog.records
        if record.name == f"applications.{MESSAGES}"
    ]
    assert logged[:6] == [
        (5, "a trace"),
        (logging.DEBUG, "debug value"),
        (logging.INFO, "print my info message value"),
        (logging.WARNING, "1 and 2"),
        (logging.ERROR, "an error"),
        (logging.CRITICAL, "critical"),
    ]
    level, text = logged[6]
    assert (level, text.splitlines()[0]) == (
        logging.ERROR, 'something bad happen "exception message"',
    )  # fmt: skip
    assert "in method exception of type" in text
    assert (logging.INFO, "without {value}") in logged


# Schemas


APPLICATION = f"{LANGUAGE}.schemas.Application"


def _without_hints(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "title"}


# Property -> its schema without the title. What is not translated is left out.
TRANSLATED: dict[str, dict[str, Any]] = {
    "between": {
        "type": "integer",
        "minimum": 0, "exclusiveMinimum": True, "maximum": 100, "exclusiveMaximum": True,
        "not": {"enum": [50]},
    },
    "percent": {
        "type": "integer",
        "minimum": 0, "exclusiveMinimum": False, "maximum": 100, "exclusiveMaximum": True,
    },
    "three": {
        "type": "integer",
        "minimum": 0, "exclusiveMinimum": True, "maximum": 10, "exclusiveMaximum": False,
        "enum": [1, 2, 20],
    },
    "twice": {
        "type": "integer",
        "minimum": 1, "exclusiveMinimum": False,
        "allOf": [{"minimum": 5, "exclusiveMinimum": False}],
    },
    "number": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
    "name": {"type": "string", "minLength": 3, "maxLength": 8},
    "exact": {"type": "string", "minLength": 4, "maxLength": 4},
    "measured": {
        "type": ["string", "array", "object"], "minLength": 3, "minItems": 3, "minProperties": 3,
    },
    "kind": {"type": "string", "enum": ["small", "large"]},
    "code": {"type": "string", "pattern": "^[a-z]+$"},
    "otherCheck": {"type": ["string", "null"]},
    "list": {"type": "array", "items": {"type": ["integer", "null"]}},
    "twoToFive": {
        "type": "array", "items": {"type": ["integer", "null"]}, "minItems": 2, "maxItems": 5,
    },
    "twoOrMore": {
        "type": "array",
        "items": [{"type": ["integer", "null"]}, {"type": ["string", "null"]}],
        "additionalItems": {"type": ["string", "null"]},
        "minItems": 2,
    },
    "record": {
        "type": "object",
        "properties": {"A": {"type": ["integer", "null"]}},
        "additionalProperties": {"type": ["boolean", "null"]},
    },
    "mandatoryRecord": {
        "type": "object",
        "properties": {
            "A": {"type": "integer"},
            "B": {"type": "array", "items": {"type": ["string", "null"]}},
        },
        "additionalProperties": False,
        "required": ["A"],
    },
    "namedValues": {
        "type": "object",
        "properties": {},
        "patternProperties": {"^[a-z]+$": {"type": ["integer", "null"]}},
        "additionalProperties": False,
    },
    "stringMap": {
        "type": "object",
        "properties": {"A": {"enum": ["StringMap"]}},
        "additionalProperties": False,
        "required": ["A"],
    },
    "anyDictionary": {"type": "object"},
    "part": {
        "type": "muranoObject", "muranoType": f"{LANGUAGE}.schemas.Part",
        "version": "==1", "owned": True,
    },
    "host": {
        "type": ["muranoObject", "null"], "muranoType": HOST, "version": ">=1,<2", "owned": False,
    },
    "template": {
        "type": ["muranoObject", "null"], "muranoType": HOST, "version": ">=1,<2", "owned": True,
    },
    "ranged": {"type": ["muranoObject", "null"], "muranoType": HOST, "version": ">=1.1"},
    "bigHost": {
        "type": "muranoObject",
        "muranoType": HOST,
        "version": ">=1,<2",
        "context": {
            "properties": {
                "ram": {"type": "number", "minimum": 2, "exclusiveMinimum": False},
                "place": {
                    "not": {"type": "null"},
                    "properties": {"zone": {"enum": ["north", "south"]}},
                },
            },
        },
    },
    "copied": {"type": ["integer", "null"]},
    "nullByDefault": {"type": "string", "default": None},
    "constant": {"type": "string"},
}  # fmt: skip


@pytest.fixture(scope="module")
def schema(engine: murano_pl.Engine) -> dict[str, Any]:
    return dict(engine.schemas(APPLICATION)[""])


@pytest.mark.parametrize("name", TRANSLATED)
def test_a_contract_is_translated(schema: dict[str, Any], name: str) -> None:
    assert _without_hints(schema["properties"][name]) == TRANSLATED[name]


def test_a_schema_has_titles_and_hints(schema: dict[str, Any]) -> None:
    """The specification "MuranoPL forms", section "UI hints"."""
    properties = schema["properties"]

    assert schema["title"] == "The application"
    assert properties["port"].items() >= {
        "title": "Port", "description": "Where the application listens",
        "helpText": "Not below 1024", "formSection": "general", "default": 80,
    }.items()  # fmt: skip
    assert properties["withoutTitle"]["title"] == "withoutTitle"
    assert properties["hidden"]["visible"] is False
    assert schema["formSections"] == {"general": {"title": "General", "index": 0}}
    assert "output" not in properties


def test_a_subclass_inherits_hints_and_replaces_sections(engine: murano_pl.Engine) -> None:
    """The specification "MuranoPL forms", section "UI hints"."""
    # A disabled model builder has no schema.
    schemas = engine.schemas(f"{LANGUAGE}.schemas.Cluster")
    assert schemas.keys() == {""}
    properties = schemas[""]["properties"]
    indexes = {name: each["formIndex"] for name, each in properties.items() if "formIndex" in each}
    sections = {name: each.get("formSection") for name, each in properties.items()}

    assert schemas[""]["title"] == "A database"
    assert properties["size"]["helpText"] == "In GiB"
    # The title of a section is its name by default.
    assert schemas[""]["formSections"] == {
        "nodes": {"title": "nodes", "index": 0},
        "general": {"title": "Of the cluster", "index": 1},
    }
    # Of two properties with one index, the inherited one comes first.
    assert sorted(indexes, key=indexes.__getitem__) == ["first", "size", "alias", "last"]
    assert len(set(indexes.values())) == len(indexes)
    assert sections == {
        "size": "general", "first": "nodes", "alias": "general", "last": None, "unordered": None,
    }  # fmt: skip


def test_each_metadata_class_of_the_chapter_on_forms_exists(engine: murano_pl.Engine) -> None:
    names = set(re.findall(r"``(io\.murano\.metadata\.[\w.]+)``", FORMS.read_text()))

    assert len(names) == 7
    for name in names:
        assert engine.find_class(name).usage == "Meta"


def test_a_schema_names_the_required_properties(schema: dict[str, Any]) -> None:
    required = {"between", "bigHost", "code", "constant", "exact", "kind", "mandatoryRecord"}
    required |= {"measured", "name", "nullByDefault", "number", "part", "percent", "stringMap"}

    assert set(schema["required"]) == required | {"three", "twice", "twoOrMore", "twoToFive"}


def test_a_model_builder_has_no_model_in_its_schema(engine: murano_pl.Engine) -> None:
    schemas = engine.schemas(APPLICATION)

    assert schemas.keys() == {"", "build"}
    assert schemas["build"]["title"] == "Build"
    assert schemas["build"]["properties"] == {
        "port": {"type": ["integer", "null"], "title": "port"}
    }


def test_actions_have_schemas_on_request(engine: murano_pl.Engine) -> None:
    schemas = engine.schemas(APPLICATION, ["", "action", "restart", "ownBuild"])

    assert schemas.keys() == {"", "action", "restart", "ownBuild"}
    assert schemas["action"]["properties"].keys() == {"argument"}
    assert schemas["restart"]["properties"].keys() == {"seconds", "force"}
    assert schemas["restart"]["required"] == ["seconds"]
    assert schemas["restart"]["title"] == "Restart"
    assert schemas["ownBuild"]["properties"].keys() == {"port"}
    assert engine.schemas(APPLICATION, "").keys() == {""}
    for method in ("missing", "internal"):
        with pytest.raises(dsl_exceptions.NoMethodFound, match=method):
            engine.schemas(APPLICATION, [method])


# What is refused in a class


@pytest.mark.parametrize(
    ("class_name", "reason"),
    [
        ("ActionForSession", 'Both "Usage: Action" and "Scope: Session"'),
        ("ArgumentOrder", "Invalid argument order in method method"),
        ("ArgumentUsage", "Unknown usage Optional"),
        ("MetaApplies", 'Invalid MetaClass target(s) "Manifest"'),
        ("MetaCardinality", 'Invalid MetaClass Cardinality "Several"'),
        ("MetaInherited", "Invalid Inherited value"),
        ("MetaNotApplicable", "is not applicable here"),
        ("MetaOfAClass", "Only Meta classes can be attached"),
        ("MetaTwice", "Cannot attach several Meta instances with cardinality One"),
        ("MethodUsage", "Unknown method usage Sometimes"),
        ("PropertyUsage", "Unknown usage Sometimes"),
        ("UnknownBlock", "no block has these keys, or the block is incomplete: Until, Do"),
        ("UnknownParent", f'Class "{LANGUAGE}.refused.Missing" is not found'),
    ],
)
def test_a_class_with_a_mistake_is_refused(
    engine: murano_pl.Engine, class_name: str, reason: str
) -> None:
    with pytest.raises(Exception, match=re.escape(reason)):
        engine.find_class(f"{LANGUAGE}.refused.{class_name}")


@pytest.mark.parametrize(
    ("class_name", "method", "reason"),
    [
        ("BreakOutsideOfLoop", "method", "Break cannot be used on method level"),
        ("ContinueOutsideOfLoop", "method", "Continue cannot be used on method level"),
        ("TwoExpressionKeys", "call", "cannot have more than one expression key"),
    ],
)
def test_a_method_with_a_mistake_is_refused(
    engine: murano_pl.Engine, class_name: str, method: str, reason: str
) -> None:
    with pytest.raises(Exception, match=re.escape(reason)):
        engine.call(f"{LANGUAGE}.refused.{class_name}", method)
