# SPDX-License-Identifier: Apache-2.0

"""The package type ``Heat.HOT``, beside Murano's own in the real Murano engine.

No Heat can run here: a recorded ``io.murano.system.HeatStack`` stands for it.
Everything else is the engine's own.
"""

import contextlib
import copy
import dataclasses
import pathlib
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import hypothesis
import murano.tests
import pytest
import yaml
import yaql
from hypothesis import strategies
from murano.common import engine as murano_engine
from murano.dsl import dsl, helpers, schema_generator
from murano.dsl import exceptions as dsl_exceptions
from murano.dsl.contracts import contracts
from murano.engine import package_loader as murano_package_loader
from murano.engine.system import heat_stack, status_reporter
from murano.packages import exceptions as murano_exceptions
from murano.packages import hot_package, load_utils
from yaql import legacy
from yaql.language import exceptions as yaql_exceptions

from examples import demo
from glare_murano.package import Archive, InvalidPackage, Version, read_manifest
from glare_murano.package.hot.yaql_dumper import literal
from glare_murano.wire import Release
from loader.engine import adapter
from loader.engine.error_places import InvalidClass
from loader.formats.hot import HOTPackage
from loader.formats.registry import PluginPackage
from tests.integration import publish, tasks

OWN = pathlib.Path(__file__).with_name("hot")
MURANOS = pathlib.Path(murano.tests.__file__).parent / "unit" / "packages"

TYPES = OWN / "types"
CONSTRAINTS = OWN / "constraints"
FILES = OWN / "files"
# Packages that Murano's handler converts as intended.
PACKAGES = [
    MURANOS / "test_packages" / "test.hot.v1.app",
    MURANOS / "test_packages" / "test.hot.v1.app_with_files",
    TYPES,
    CONSTRAINTS,
    FILES,
]
# Packages that it does not. Murano's own has no manifest.
MENDED = OWN / "mended"
QUOTES = OWN / "quotes"
ODD = MURANOS / "hot_package" / "test.hot.1"
NO_TEMPLATE = MURANOS / "hot_package" / "test.hot.2"

MANIFEST = {
    "FullName": "org.test.hot.bare",
    "Version": "1.0.0",
    "Type": "Application",
    "Description": "A template without a manifest",
}

# Values that a template's parameters can be given all at once.
VALID: dict[str, dict[str, Any]] = {
    "types": {"key_name": "mine", "password": "secret", "private": False},
    "constraints": {
        "name_of_host": "host",
        "long": "longer",
        "short": "12345",
        "port": "8080",
        "debt": -5,
        "many": 10,
        "flavor": "it is",
        "even": 2,
    },
    "files": {"size": 7, "undecided": [1]},
}

REFUSED = object()
# Murano's class refuses many a value only because it cannot be evaluated.
REFUSALS = (dsl_exceptions.ContractViolationException, yaql_exceptions.YaqlException)


def _muranos(folder: pathlib.Path) -> Any:
    if (folder / "manifest.yaml").exists():
        return PluginPackage(load_utils.load_from_dir(str(folder)), str(folder))
    made = hot_package.HotPackage("Heat.HOT", Version("1.0.0"), str(folder), MANIFEST)
    return PluginPackage(made, str(folder))


def _ours(folder: pathlib.Path) -> Any:
    document: Mapping[str, Any] = MANIFEST
    if (folder / "manifest.yaml").exists():
        with Archive.open(folder) as archive:
            document = read_manifest(archive).document
    return HOTPackage("Heat.HOT", Version("1.0.0"), str(folder), document)


def _run(model: dict[str, Any], method: str) -> Any:
    """Run a method of the environment as one task of the engine."""
    return tasks.run_model(copy.deepcopy(model), tasks.action("environment", method))


@dataclasses.dataclass
class Heat:
    """The recorded calls of stacks, and their outputs.

    :param calls: name of the stack, method, arguments.
    :param reports: levels of the reports to the user; of errors the text.
    """

    calls: list[tuple[Any, ...]] = dataclasses.field(default_factory=list)
    reports: list[str] = dataclasses.field(default_factory=list)
    outputs: dict[str, Any] = dataclasses.field(default_factory=dict)
    failure: str | None = None

    def take(self) -> list[tuple[Any, ...]]:
        taken, self.calls = self.calls, []
        return taken


@dsl.name("io.murano.system.HeatStack")
class RecordedStack:
    """The stand-in for the engine's own class of this name."""

    _heat: Heat

    def __init__(self, name: Any, description: Any = None, region_name: Any = None) -> None:
        self._name = name
        # An environment has stacks of its own, one for each region.
        self._recorded = region_name is None
        self._record("new")

    def set_template(self, template: Any) -> None:
        self._record("setTemplate", template)

    def set_parameters(self, parameters: Any) -> None:
        self._record("setParameters", parameters)

    def set_files(self, files: Any) -> None:
        self._record("setFiles", files)

    def set_hot_environment(self, hot_environment: Any) -> None:
        self._record("setHotEnvironment", hot_environment)

    def push(self, is_async: bool = False) -> None:
        self._record("push", is_async)
        if self._recorded and self._heat.failure:
            raise heat_stack.HeatStackError(self._heat.failure)

    def output(self) -> Any:
        self._record("output")
        return self._heat.outputs

    def delete(self) -> None:
        self._record("delete")

    def _record(self, method: str, *arguments: Any) -> None:
        if self._recorded:
            self._heat.calls.append((self._name, method, *map(_plain, arguments)))


def _plain(value: Any) -> Any:
    """A value of the engine as dicts and lists."""
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


@pytest.fixture
def heat(conf: Any, monkeypatch: pytest.MonkeyPatch) -> Heat:
    recorded = Heat()
    # A cell would use the real class.
    conf.set_override("task_cells", False, "engine")

    def report(self: Any, instance: Any, msg: str, details: Any = None, level: str = "") -> None:
        recorded.reports.append(f"error: {msg}" if level == "error" else "report")

    monkeypatch.setattr(RecordedStack, "_heat", recorded, raising=False)
    monkeypatch.setattr(heat_stack, "HeatStack", RecordedStack)
    monkeypatch.setattr(status_reporter.StatusReporter, "_report", report)
    return recorded


class Host:
    """An engine with one package, made by one of the sides."""

    def __init__(self, package: Any) -> None:
        self.package = package
        self.name = package.full_name

    @contextlib.contextmanager
    def loader(self, session: Any = None) -> Any:
        with adapter.EnginePackageLoader.for_task(session or tasks.session()) as loader:
            version = Version(str(self.package.version))
            release = Release(self.name, version, {}, frozenset())
            loader.register_package(adapter.EnginePackage(loader, self.package, release))
            yield loader

    @contextlib.contextmanager
    def murano_class(self) -> Any:
        with self.loader() as loader:
            package = loader.load_package(self.name, helpers.parse_version_spec("*"))
            yield package.find_class(self.name)

    def described(self) -> dict[str, Any]:
        """The engine's description of the class."""
        with self.murano_class() as found:
            return {
                "name": found.name,
                "version": str(found.version),
                "parents": [parent.name for parent in found.parents],
                "properties": {
                    name: (prop.usage, prop.has_default, prop.default, _plain(prop.contract.spec))
                    for name, prop in found.properties.items()
                },
                "methods": {
                    name: (method.usage, method.scope, dict(method.arguments_scheme))
                    for name, method in found.methods.items()
                },
            }

    def schema(self) -> Any:
        with self.loader() as loader:
            return schema_generator.generate_schema(
                loader,
                murano_engine.ContextManager(),
                self.name,
                package_name=self.name,
                class_version="*",
            )

    def taken(self, parameter: str, *values: Any) -> list[Any]:
        """Values as the contract of a parameter takes them, or ``REFUSED``."""
        taken = []
        with self.murano_class() as found:
            spec = found.properties["templateParameters"].contract.spec
            contract = contracts.Contract(spec[parameter], found)
            context = murano_engine.ContextManager().create_root_context(Version("1.0.0"))
            for value in values:
                try:
                    taken.append(contract.transform(value, context, None, None, None, None))
                except REFUSALS:
                    taken.append(REFUSED)
        return taken

    def run(self, monkeypatch: pytest.MonkeyPatch, model: dict[str, Any], method: str) -> Any:
        """Run a method of the environment as one task of the engine."""
        monkeypatch.setattr(murano_package_loader, "CombinedPackageLoader", self.loader)
        return _run(model, method)

    def model(self, **properties: Any) -> dict[str, Any]:
        """An environment with the package's application."""
        header = {
            "id": "application",
            "type": self.name,
            "package": self.name,
            "classVersion": str(self.package.version),
        }
        return {
            "Objects": {
                "?": {"id": "environment", "type": "io.murano.Environment"},
                "name": "test",
                "applications": [{"?": header, "name": "application", **properties}],
            },
            "SystemData": {},
            "project_id": demo.PROJECT,
            "user_id": "alice",
        }


@pytest.fixture
def sides(conf: Any, tmp_path: pathlib.Path) -> Callable[[pathlib.Path], tuple[Host, Host]]:
    """Murano's package and ours, each of a copy of one directory."""

    def make(folder: pathlib.Path) -> tuple[Host, Host]:
        # Murano's own writes the template into the package.
        copies = [
            shutil.copytree(folder, tmp_path / side / folder.name) for side in ("murano", "ours")
        ]
        return Host(_muranos(copies[0])), Host(_ours(copies[1]))

    return make


NUMBERS = strategies.integers(-(2**63), 2**63) | strategies.floats(-(2.0**63), 2.0**63)
Sides = Callable[[pathlib.Path], tuple[Host, Host]]
each_package = pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)


@each_package
def test_the_class_is_the_same(sides: Sides, folder: pathlib.Path) -> None:
    muranos, ours = (side.described() for side in sides(folder))

    # Murano's refuses an output that is not a string, see below.
    for described in (muranos, ours):
        usage, has_default, default, spec = described["properties"]["templateOutputs"]
        described["properties"]["templateOutputs"] = (usage, has_default, default, sorted(spec))
    assert ours == muranos


@each_package
def test_the_schema_is_the_same(sides: Sides, folder: pathlib.Path) -> None:
    muranos, ours = (side.schema() for side in sides(folder))

    assert ours == muranos


@pytest.mark.parametrize(
    ("parameter", "accepted", "refused"),
    [
        ("name_of_host", ["abc", "abcdefgh", 12345], ["ab", "abcdefghi", None, ["a", "b", "c"]]),
        ("long", ["abcd"], ["abc"]),
        ("short", ["", "abcde"], ["abcdef"]),
        ("port", [1024, "65535"], [1023, 65536, "http", None]),
        ("debt", [-5], [-4]),
        ("many", [10], [9]),
        ("flavor", ["small", "it is"], ["medium", "smaller", None]),
        ("even", [-4, "2"], [1, 3, None]),
    ],
)
def test_values_are_accepted_or_refused_alike(
    sides: Sides, parameter: str, accepted: list[Any], refused: list[Any]
) -> None:
    muranos, ours = (side.taken(parameter, *accepted, *refused) for side in sides(CONSTRAINTS))

    assert ours == muranos
    assert [taken is REFUSED for taken in ours] == _verdicts(accepted, refused)


def test_values_of_a_type_are_taken_alike(sides: Sides) -> None:
    muranos, ours = sides(TYPES)

    for parameter, values in {
        "size": [3, "3", 1.5, "many", None],
        "key_name": ["mine", 5, {"a": 1}, None],
        "password": [""],
        "public": [True, "false", None],
        "private": [0],
        "addresses": ["10.0.0.1", ["10.0.0.1"]],
        "labels": ['{"a": 1}', {"a": 1}],
        "since": ["now"],
        "nothing": [None],
    }.items():
        assert ours.taken(parameter, *values) == muranos.taken(parameter, *values), parameter


def test_an_object_with_a_value_that_breaks_a_constraint_is_refused(
    sides: Sides, heat: Heat, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = []

    for side in sides(CONSTRAINTS):
        parameters = {**VALID["constraints"], "port": 80}
        answer = side.run(monkeypatch, side.model(templateParameters=parameters), "deploy")
        messages.append(answer["action"]["result"]["message"])

    assert messages[0] == messages[1]
    assert "80" in messages[1]
    assert heat.calls == []


@pytest.mark.parametrize(
    ("parameter", "accepted", "refused", "muranos_is_right"),
    [
        # Only its form and its schema go wrong here.
        ("code", ["a1", "b22"], ["a", "ab1", None], True),
        ("device", ["/dev/vdb", "/dev/vdb/1"], ["vdb"], True),
        ("free", [1, 2, None], ["many"], True),
        # It compares a text with numbers and a date, a truth value with
        # words, a number with texts.
        ("release", ["7", "7.5", "2016-10-14", 7], ["8", None], False),
        ("answer", [True], [False, None], False),
        ("texts", [1, "2"], [3, None], False),
        # It compares a whole list with one item, and counts characters.
        ("zones", ["one", "one, three", "", None], ["four", "one,four", "one,two,three"], False),
        ("map", ["{}", '{"a": 1}', None], [{"a": 1}], False),
        # It checks a value that is left out.
        ("optional", ["", "abc", None], ["abcd"], False),
        ("optional-number", [1, "2", None], [0, 3], False),
        # It drops the fraction of a bound.
        ("ratio", [1, 2], [0, None], False),
        # It checks what Heat has no such constraint for.
        ("measured", [1, 1000, None], ["many"], False),
    ],
)
def test_errors_of_muranos_class_are_mended(
    sides: Sides, parameter: str, accepted: list[Any], refused: list[Any], muranos_is_right: bool
) -> None:
    muranos, ours = (
        [taken is REFUSED for taken in side.taken(parameter, *accepted, *refused)]
        for side in sides(MENDED)
    )

    assert ours == _verdicts(accepted, refused)
    assert (muranos == ours) is muranos_is_right


def test_quotes_and_backslashes_are_text(sides: Sides) -> None:
    muranos, ours = sides(QUOTES)
    values = ["it's", "back\\slash", "\\n"]

    assert ours.taken("quoted", *values) == values
    assert ours.taken("quoted", "its", "backslash", "\n") == [REFUSED] * 3
    assert ours.taken("pattern", "a'1\\b", "a'1b") == ["a'1\\b", REFUSED]
    # Murano's class is not valid MuranoPL then.
    with pytest.raises(InvalidClass, match="is not a valid YAQL expression"):
        muranos.described()


def test_a_pattern_is_in_the_schema(sides: Sides) -> None:
    _, ours = sides(MENDED)

    parameters = ours.schema()[""]["properties"]["templateParameters"]["properties"]

    assert parameters["device"] == {"type": "string", "pattern": "/dev/[a-z]+"}
    assert parameters["optional-number"] == {
        "type": ["integer", "null"],
        "minimum": 1,
        "exclusiveMinimum": False,
        "enum": [1, 2, None],
    }


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_a_deployment_makes_the_same_calls_of_heat(
    sides: Sides, heat: Heat, monkeypatch: pytest.MonkeyPatch, folder: pathlib.Path
) -> None:
    heat.outputs = {"address": "10.0.0.9", "count": 3, "reachable": True, "more": "x"}
    deployed = []

    for side in sides(folder):
        parameters = VALID.get(folder.name, {})
        model = side.model(templateParameters=parameters)
        answer = side.run(monkeypatch, model, "deploy")
        assert not answer["action"]["isException"], answer["action"]["result"]
        [application] = answer["model"]["Objects"]["applications"]
        deployed.append((_unnamed(heat.take()), application["templateOutputs"]))

    assert deployed[0] == deployed[1]
    calls, outputs = deployed[1]
    assert [call[1] for call in calls] == [
        "new", "setTemplate", "setParameters", "setFiles", "push", "output"
    ]  # fmt: skip
    assert calls[1][2] == yaml.safe_load(_without_dates(folder / "template.yaml"))
    if folder.name == "types":
        assert outputs == {"address": "10.0.0.9", "count": "3", "reachable": "True"}
    if folder.name == "files":
        assert set(calls[3][2]) == {"start.sh", "nested/server.yaml"}


def test_a_package_is_published_and_deployed_from_glare(
    conf: Any, glare: Any, heat: Heat, sides: Sides
) -> None:
    (artifact,) = publish.publish(glare, [FILES], public=True)
    _, ours = sides(FILES)
    model = ours.model(hotEnvironment="large.yaml", templateParameters={"undecided": "x"})

    answer = _run(model, "deploy")

    assert not answer["action"]["isException"], answer["action"]["result"]
    assert answer["model"]["SystemData"]["Packages"]["org.test.hot.files"] == ["1.2.3"]
    assert artifact["class_definitions"] == ["org.test.hot.files"]
    calls = {call[1]: call[2:] for call in heat.calls}
    assert calls["setFiles"][0]["start.sh"] == "#!/bin/sh\necho up\n"
    assert calls["setHotEnvironment"] == ("parameters:\n  size: 3\n",)


@pytest.mark.parametrize("environment", ["large.yaml", "", "missing.yaml", "../../template.yaml"])
def test_a_heat_environment_is_passed_on_alike(
    sides: Sides, heat: Heat, monkeypatch: pytest.MonkeyPatch, environment: str
) -> None:
    deployed = []

    for side in sides(FILES):
        model = side.model(hotEnvironment=environment, templateParameters={"undecided": "x"})
        answer = side.run(monkeypatch, model, "deploy")
        deployed.append((answer["action"]["isException"], _unnamed(heat.take())))

    assert deployed[0] == deployed[1]
    failed, calls = deployed[1]
    assert failed is (environment not in ("large.yaml", ""))
    passed = [call[2] for call in calls if call[1] == "setHotEnvironment"]
    assert passed == (["parameters:\n  size: 3\n"] if environment == "large.yaml" else [])


def test_a_failure_of_heat_is_reported_and_raised_alike(
    sides: Sides, heat: Heat, monkeypatch: pytest.MonkeyPatch
) -> None:
    heat.failure = "no valid host was found"
    seen = []

    for side in sides(TYPES):
        heat.reports.clear()
        answer = side.run(monkeypatch, side.model(), "deploy")
        message = answer["action"]["result"]["message"]
        errors = [report for report in heat.reports if report.startswith("error")]
        # Without the place: the generated classes have different lines.
        found = [text.replace(message.partition("[")[0], "") for text in (message, *errors)]
        seen.append((found[0], found[1:], _unnamed(heat.take())))

    assert seen[0] == seen[1]
    message, errors, calls = seen[1]
    assert heat.failure in message
    # Once by the class, once by the engine.
    assert [heat.failure in error for error in errors] == [True, True]
    assert calls[-1][1] == "push"


@pytest.mark.parametrize("order", ["murano first", "ours first"])
def test_an_environment_may_change_from_one_to_the_other(
    sides: Sides, heat: Heat, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    first, second = sides(TYPES)
    if order == "ours first":
        first, second = second, first

    deployed = first.run(monkeypatch, first.model(), "deploy")["model"]
    [stack] = {call[0] for call in heat.take()}
    again = second.run(monkeypatch, deployed, "deploy")["model"]
    assert {call[0] for call in heat.take()} == {stack}
    again["Objects"]["applications"] = []
    second.run(monkeypatch, again, "deploy")

    assert stack.endswith("_environment")
    assert heat.take() == [(stack, "new"), (stack, "delete")]


def test_an_application_that_was_never_deployed_has_no_stack_to_delete(
    sides: Sides, heat: Heat, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    for side in sides(TYPES):
        model = side.model()
        model["ObjectsCopy"] = copy.deepcopy(model["Objects"])
        model["Objects"]["applications"] = []
        side.run(monkeypatch, model, "deploy")
        seen.append(heat.take())

    # Murano's own deletes a stack without a name.
    assert seen == [[(None, "new"), (None, "delete")], []]


def test_an_output_need_not_be_a_string(
    sides: Sides, heat: Heat, monkeypatch: pytest.MonkeyPatch
) -> None:
    heat.outputs = {"list": ["10.0.0.1", "10.0.0.2"], "ratio": 0.5}
    parameters = {
        "code": "a1", "device": "/dev/vdb", "release": "7", "answer": True, "ratio": 1, "texts": 1,
    }  # fmt: skip
    _, ours = sides(MENDED)

    answer = ours.run(monkeypatch, ours.model(templateParameters=parameters), "deploy")

    assert not answer["action"]["isException"], answer["action"]["result"]
    [application] = answer["model"]["Objects"]["applications"]
    assert application["templateOutputs"] == heat.outputs


@each_package
def test_the_form_is_the_same(sides: Sides, folder: pathlib.Path) -> None:
    muranos, ours = (_form(side.package) for side in sides(folder))

    # The one sentence in it is our own.
    for form in (muranos, ours):
        assert form["Forms"][0]["group0"]["fields"][1].pop("description")
    assert ours == muranos


def test_the_form_of_muranos_odd_template(sides: Sides) -> None:
    muranos, ours = (_form(side.package) for side in sides(ODD))

    assert ours["Application"] == muranos["Application"]
    theirs, fields = ({field["name"]: field for field in _fields(form)} for form in (muranos, ours))
    # The dashboard has no lengths for the fields of foo and bar.
    left_to_heat = {
        "foo": {"minLength", "maxLength"},
        "bar": {"minLength", "validators"},
        "baz": {"validators"},
    }
    for name, keys in left_to_heat.items():
        expected = {key: value for key, value in theirs[name].items() if key not in keys}
        if name == "foo":
            assert expected["validators"].pop()["expr"] == {"regexpValidator": "[A-Za-z0-9]"}
        assert fields[name] == expected


def test_errors_of_muranos_form_are_mended(sides: Sides) -> None:
    muranos, ours = sides(MENDED)

    fields = {field["name"]: field for field in _fields(_form(ours.package))}
    validators = {
        name: [validator["expr"] for validator in field["validators"]]
        for name, field in fields.items()
        if "validators" in field
    }

    # It reads parameter_groups that are null, a range without bounds.
    with pytest.raises(TypeError):
        _form(muranos.package)
    # The dashboard takes what follows a first slash for /expression/flags.
    assert validators["device"] == [{"regexpValidator": "\\/dev/[a-z]+"}]
    assert validators["release"] == [Expression("$ in list('7', '7.5', '2016-10-14')")]
    assert validators["answer"] == [Expression("$ in list(true)")]
    assert validators["texts"] == [Expression("$ in list(1, 2.0)")]
    # A field counts characters, not items, and shows neither list nor mapping.
    assert validators["zones"] == [
        Expression("$ = '' or $.split(',').all($.trim() in list('one', 'two', 'three'))"),
        Expression("len($.split(',')) <= 2"),
    ]
    assert not {"minLength", "maxLength"} & {*fields["zones"], *fields["map"], *fields["measured"]}
    assert fields["zones"]["initial"] == "one,two"
    assert fields["map"]["initial"] == '{"tier": "web"}'
    # A checkbox takes any text for true.
    assert fields["answers"]["initial"] is False


def test_the_dashboard_can_evaluate_the_form(sides: Sides) -> None:
    """The form's expressions, evaluated as Murano's dashboard evaluates them."""
    _, ours = sides(MENDED)
    form = _form(ours.package)
    fields = {field["name"]: field for field in _fields(form)}
    values = {
        "code": "a1", "device": "/dev/vdb", "release": "7.5", "answer": True, "answers": False,
        "ratio": 1, "texts": 2, "zones": "one, two", "map": "{}", "optional": "abc",
        "optional-number": 2, "measured": 100, "free": 5,
    }  # fmt: skip

    for name, value in values.items():
        for validator in fields[name].get("validators", ()):
            if isinstance(validator["expr"], Expression):
                assert validator["expr"].evaluate(value), (name, validator)
    application = _evaluated(form["Application"], {"group0": {"name": "app"}, "group1": values})

    assert application == {
        "?": {
            "type": "org.test.hot.mended",
            "package": "org.test.hot.mended",
            "classVersion": "1.2.3",
        },
        "name": "app",
        "templateParameters": values,
    }


def test_the_package_is_left_as_it_was(sides: Sides) -> None:
    _, ours = sides(TYPES)
    folder = pathlib.Path(ours.package.source_directory)
    before = sorted(folder.rglob("*"))

    ours.described()

    assert ours.package.ui
    assert sorted(folder.rglob("*")) == before


def test_muranos_odd_template_is_loaded(sides: Sides) -> None:
    muranos, ours = sides(ODD)

    assert ours.taken("foo", 0, 4, 5, None) == [0, 4, REFUSED, None]
    assert ours.taken("bar", True, False, None) == [True, False, None]
    assert ours.taken("baz", "abcde", "abcdef") == ["abcde", REFUSED]
    # It has constraints that Heat has not for the type; Murano's refuses every value.
    for parameter, value in {"foo": 1, "bar": True, "baz": "abc"}.items():
        assert muranos.taken(parameter, value) == [REFUSED]


@hypothesis.given(strategies.text() | strategies.booleans() | NUMBERS)
def test_yaql_reads_a_literal_as_the_value_written(value: Any) -> None:
    assert Expression(literal(value)).evaluate(None) == value


def test_an_invalid_template_is_refused_alike(tmp_path: pathlib.Path) -> None:
    folder = shutil.copytree(NO_TEMPLATE, tmp_path / "package")

    with pytest.raises(murano_exceptions.PackageFormatError):
        _muranos(folder).get_class(MANIFEST["FullName"])
    with pytest.raises(InvalidPackage, match="template-resources"):
        _ours(folder)


DASHBOARDS_YAQL = yaql.YaqlFactory().create()
DASHBOARDS_CONTEXT = legacy.create_context()


@dataclasses.dataclass(frozen=True)
class Expression:
    """A YAQL expression in a form."""

    text: str

    def evaluate(self, data: Any) -> Any:
        """Evaluate it as Murano's dashboard does."""
        context = DASHBOARDS_CONTEXT.create_child_context()
        context["$"] = data
        return DASHBOARDS_YAQL(self.text).evaluate(context=context)


class _FormLoader(yaml.SafeLoader):
    pass


_FormLoader.add_constructor("!yaql", lambda loader, node: Expression(loader.construct_scalar(node)))


def _form(package: Any) -> Any:
    return yaml.load(package.ui, _FormLoader)


def _fields(form: Any) -> list[dict[str, Any]]:
    return [field for page in form["Forms"] for part in page.values() for field in part["fields"]]


def _evaluated(template: Any, data: Any) -> Any:
    if isinstance(template, Expression):
        return template.evaluate(data)
    if isinstance(template, dict):
        return {key: _evaluated(value, data) for key, value in template.items()}
    return template


def _verdicts(accepted: list[Any], refused: list[Any]) -> list[bool]:
    """Return the list of expected refusals."""
    return [False] * len(accepted) + [True] * len(refused)


def _unnamed(calls: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The calls without the part of the stack's name that is random."""
    return [(name and name.partition("_")[2], *rest) for name, *rest in calls]


def _without_dates(path: pathlib.Path) -> str:
    """The text of a template whose dates are quoted, as the engine reads them."""
    return path.read_text().replace("version: 2016-10-14", "version: '2016-10-14'")
