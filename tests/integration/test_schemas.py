# SPDX-License-Identifier: Apache-2.0

"""Schemas are valid JSON Schema draft 4, and accept and refuse what contracts do.

A contract converts some values, such as the string ``"5"`` of ``$.int()``, and a schema refuses
them: a form sends the right type. So a value is in the schema if, and only if, the contract takes
it as it is. Conditions that are not translated are left out here.
"""

import dataclasses
import json
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import hypothesis
import jsonschema
import pytest
import yaml
from hypothesis import strategies as st
from murano.dsl import dsl, murano_property, yaql_expression

from loader.engine import contract_schemas
from tests import effort, prerequisites
from tests.integration import murano_pl
from tests.integration.test_murano_packages import LOADED, REFUSED_BY_GLARE

CLASS = "org.example.language.contracts.Contracts"

# The specification "MuranoPL forms" adds a type.
_META_SCHEMA = {
    **jsonschema.Draft4Validator.META_SCHEMA,
    "definitions": {
        **jsonschema.Draft4Validator.META_SCHEMA["definitions"],
        "simpleTypes": {
            "enum": [
                *jsonschema.Draft4Validator.META_SCHEMA["definitions"]["simpleTypes"]["enum"],
                "muranoObject",
            ]
        },
    },
}
Validator = jsonschema.validators.extend(
    jsonschema.validators.create(
        _META_SCHEMA,
        jsonschema.Draft4Validator.VALIDATORS,
        type_checker=jsonschema.Draft4Validator.TYPE_CHECKER.redefine(
            # Objects need a model; no value of these tests is one.
            "muranoObject",
            lambda *_: False,
        ),
    )
)

# YAML and the engine have no other strings.
_TEXT = st.text("abc12 ", max_size=4)
_SCALARS = st.none() | st.booleans() | st.integers(-20, 20) | st.sampled_from([0.5, 1.0]) | _TEXT
ANYTHING = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=5,
)

_SMALL = st.integers(-3, 12)
_NUMBER_CONDITIONS = st.one_of(
    st.builds("$ {} {}".format, st.sampled_from([">", ">=", "<", "<="]), _SMALL),
    st.builds("{} {} $".format, _SMALL, st.sampled_from([">", ">=", "<", "<="])),
    # Python takes true as 1 and false as 0 as well, and a form does not.
    st.builds(
        str.format, st.sampled_from(["$ = {}", "{} = $"]), _SMALL.filter(lambda n: n not in (0, 1))
    ),
    st.builds("$ != {}".format, _SMALL | st.sampled_from(["null", "true", "abc"])),
    st.just("$ = null"),
)
_SIZES = st.integers(-1, 4)
_LENGTH_CONDITIONS = st.one_of(
    st.builds("len($) {} {}".format, st.sampled_from([">", ">=", "<", "<=", "="]), _SIZES),
    st.builds("{} {} $.len()".format, _SIZES, st.sampled_from([">", ">=", "<", "<=", "="])),
)
_STRING_CONDITIONS = _LENGTH_CONDITIONS | st.sampled_from(
    [
        *("$ in [a, ab, abc]", "$ in list(null, ab)", "$ in set(ab, null, a)"),
        *("$.matches('^a*b?$')", "regex('^a*b?$').matches($)", "$ =~ '[12]'"),
        *("$ = ab", "$ = null", "$ != ab", "a != $", "$ != null"),
    ]
)


def _checked(conditions: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Write up to three conditions, in one ``check()`` or in several."""
    joined = st.lists(conditions, max_size=3)
    return joined.flatmap(
        lambda found: st.sampled_from(
            [
                f".check({' and '.join(found)})" if found else "",
                f".check(({') and ('.join(found)}))" if found else "",
                "".join(f".check({condition})" for condition in found),
            ]
        )
    )


EXPRESSIONS = st.builds(
    "${}{}{}".format,
    st.sampled_from(["", ".notNull()"]),
    st.one_of(
        st.just(""),
        st.builds(".int(){}".format, _checked(_NUMBER_CONDITIONS | st.just("$ in [1, 5]"))),
        st.builds(".string(){}".format, _checked(_STRING_CONDITIONS)),
        st.builds(".bool(){}".format, _checked(st.just("$ in [true]"))),
        _checked(_NUMBER_CONDITIONS),
        _checked(_LENGTH_CONDITIONS),
        st.builds("{}.int()".format, _checked(_NUMBER_CONDITIONS)),
        st.builds(".int()?.check({})".format, _NUMBER_CONDITIONS | st.just("$ in [1, 5]")),
        st.builds(".string()?.check({})".format, _STRING_CONDITIONS),
    ),
    st.sampled_from(["", ".notNull()"]),
)
_KEYS = st.sampled_from(["a", "b", "c"])
_OTHER_KEYS = st.sampled_from(
    [
        "$.string()",
        "$.int()",
        *(
            f"$.string().check({condition})"
            for condition in ("$.matches('^[a1]+$')", "$ in [a, b]", "len($) > 1 and $ =~ b")
        ),
    ]
)
_MATCHED_KEYS = ["a", "b", "c", "1", "-12", "aa", "ab", "ba1", "a1"]
_BOUNDS = st.sampled_from([[], [0], [2], [1, 3], [0, 0], [-1], [1, -1]])
CONTRACTS = st.recursive(
    EXPRESSIONS | st.sampled_from(["abc", {}, []]),
    lambda inner: st.one_of(
        st.builds(lambda items, bounds: items + bounds, st.lists(inner, min_size=1), _BOUNDS),
        st.dictionaries(_KEYS, inner, min_size=1, max_size=3),
        st.builds(
            lambda named, key, value: {**named, key: value},
            st.dictionaries(_KEYS, inner, max_size=2),
            _OTHER_KEYS,
            inner,
        ),
    ),
    max_leaves=4,
)


def _parsed(contract: Any, version: Any) -> Any:
    """Parse the expressions of a contract, as Murano's YAML loader does."""
    if isinstance(contract, Mapping):
        return {_parsed(k, version): _parsed(v, version) for k, v in contract.items()}
    if isinstance(contract, list):
        return [_parsed(item, version) for item in contract]
    is_expression = isinstance(contract, str) and contract.startswith("$")
    return yaql_expression.YaqlExpression(contract, version) if is_expression else contract


def values_of(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Make values that a schema accepts; none for objects, which need a model."""
    if "enum" in schema:
        found = st.sampled_from(schema["enum"])
    else:
        types = schema.get("type", ["null", "boolean", "integer", "number", "string"])
        kinds = [types] if isinstance(types, str) else types
        found = st.one_of(
            *(_VALUES[kind](schema) for kind in kinds if kind != "muranoObject"), st.nothing()
        )
    return found.filter(Validator(schema).is_valid)


def _numbers(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    low = schema.get("minimum", min(-20, schema.get("maximum", 0) - 1))
    high = schema.get("maximum", max(low, 20))
    return st.integers(low, high) if low <= high else st.nothing()


def _strings(schema: Mapping[str, Any]) -> st.SearchStrategy[str]:
    if "pattern" in schema:
        return st.from_regex(schema["pattern"], fullmatch=True, alphabet="abc12 /")
    least, most = _lengths(schema, "Length")
    return st.text("ab1", min_size=least, max_size=most) if least <= most else st.nothing()


def _lengths(schema: Mapping[str, Any], suffix: str) -> tuple[int, int]:
    least = schema.get(f"min{suffix}", 0)
    return least, schema.get(f"max{suffix}", least + 2)


def _sizes(least: int, most: int) -> st.SearchStrategy[int]:
    return st.sampled_from(range(least, most + 1)) if least <= most else st.nothing()


def _arrays(schema: Mapping[str, Any]) -> st.SearchStrategy[list[Any]]:
    least, most = _lengths(schema, "Items")
    items = schema.get("items", {})
    if isinstance(items, dict):
        items, rest = [], items
    else:
        rest = schema["additionalItems"]
    parts = [*items, *[rest] * most][:most]
    return _sizes(least, most).flatmap(
        lambda size: st.tuples(*map(values_of, parts[:size])).map(list)
    )


def _objects(schema: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    properties = {name: values_of(each) for name, each in schema.get("properties", {}).items()}
    required = schema.get("required", ())
    extra: st.SearchStrategy[dict[str, Any]] = st.just({})
    for pattern, each in schema.get("patternProperties", {}).items():
        keys = [key for key in _MATCHED_KEYS if re.search(pattern, key)]
        if keys:
            extra = st.dictionaries(st.sampled_from(keys), values_of(each), max_size=2)
    if schema.get("additionalProperties", {}) is not False:
        inner = values_of(schema.get("additionalProperties", {}))
        least, most = _lengths(schema, "Properties")
        extra = _sizes(least, most).flatmap(
            lambda size: st.dictionaries(_TEXT, inner, min_size=size, max_size=size)
        )
    named = st.fixed_dictionaries(
        {name: each for name, each in properties.items() if name in required},
        optional={name: each for name, each in properties.items() if name not in required},
    )
    return st.builds(lambda *found: {**found[0], **found[1]}, extra, named)


_VALUES: Mapping[str, Any] = {
    "null": lambda _: st.none(),
    "boolean": lambda _: st.booleans(),
    "integer": _numbers,
    "number": _numbers,
    "string": _strings,
    "array": _arrays,
    "object": _objects,
}


def _is_same(left: Any, right: Any) -> bool:
    """Return whether two values are the same JSON: 1 is neither true nor 1.0."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_is_same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_is_same, left, right))
    return type(left) is type(right) and bool(left == right)


@dataclasses.dataclass(frozen=True)
class Input:
    """An input of a form: a property or an argument, with its schema.

    :param declared: Murano's declaration of it.
    :param is_required: whether it is required.
    """

    name: str
    declared: Any
    schema: Any
    is_required: bool = False

    def check(self, engine: murano_pl.Engine, value: Any) -> None:
        """Check that the contract takes a value as it is, if the schema accepts the value."""
        is_accepted = Validator(self.schema).is_valid(value)
        taken, error = self._take(engine, value)

        assert error is None or not is_accepted, f"{self.name} refuses {value!r}: {error!r}"
        # Keys that are left out get null, or an empty value.
        assert is_accepted or error or not _is_same(taken, value), f"{self.name} takes {value!r}"

    def check_missing(self, engine: murano_pl.Engine) -> None:
        """Check that it is required only if the contract refuses the default."""
        default = self.declared.default
        if self.declared.has_default and not contract_schemas.is_json(default):
            return
        _, error = self._take(engine, dsl.NO_VALUE)

        assert self.is_required == (error is not None), f"{self.name} is left out: {error!r}"

    def is_taken(self, engine: murano_pl.Engine, value: Any) -> bool:
        """Return whether the contract takes a value, as it is or converted."""
        return self._take(engine, value)[1] is None

    def _take(self, engine: murano_pl.Engine, value: Any) -> tuple[Any, Exception | None]:
        """Return what becomes of a value, or the error with which the contract refuses it."""
        try:
            return engine.take(self.declared, value), None
        except Exception as error:
            return None, error


# Only one function for each example: the engine is the same for all of them.
_settings = hypothesis.settings(
    max_examples=effort.CONTRACTS,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)


def _declare(engine: murano_pl.Engine, written: Any) -> Input:
    """Declare a property with a contract, and check that its schema is valid."""
    declaring_class = engine.find_class(CLASS)
    contract = _parsed(written, declaring_class.package.runtime_version)
    declared = murano_property.MuranoProperty(declaring_class, "tried", {"Contract": contract})
    schema = engine.translate(declared)
    Validator.check_schema(schema)
    sent = json.loads(json.dumps(schema, allow_nan=False))
    return Input(f"{written!r} ({sent})", declared, sent)


@pytest.mark.timeout(effort.FULL_SECONDS or 120)
@_settings
@hypothesis.given(written=CONTRACTS, data=st.data())
def test_a_schema_accepts_what_its_contract_takes(
    engine: murano_pl.Engine, written: Any, data: st.DataObject
) -> None:
    checked = _declare(engine, written)

    checked.check(engine, data.draw(ANYTHING | values_of(checked.schema)))


@pytest.mark.parametrize(
    ("written", "taken", "refused"),
    [
        ("$.int().check(($ > 0) and (($) < 5))", [1, 4], [0, 5]),
        # A constant on the left keeps its strictness.
        ("$.int().check(0 < $ and 5 > $)", [1, 4], [0, 5]),
        ("$.int().check(0 <= $ and 5 >= $)", [0, 5], [-1, 6]),
        ("$.check(len($) < 0)", [], ["", [], {}]),
        ("$.string().check(len($) = -1)", [], ["", "a"]),
        ("$.string().check(-1 < len($))", ["", "a"], [None]),
        ("$.check($ in [1, 1.0, 2.5])", [1, 2.5], [2]),
        ("$.check($ in [[1, a], {b => [2]}])", [[1, "a"], {"b": [2]}], [[1], {"b": 2}]),
        ({"$.int()": "$"}, [{}, {"1": 1, "-5": 2}], [{"a": 1}]),
        ({"$.string().check($ in ['.', b])": "$"}, [{".": 1, "b": 1}], [{"a": 1}]),
        ({"$.string().check(len($) > 1)": "$"}, [{"ab": 1}, {"a\n": 1}], [{"a": 1}]),
        (
            {"$.string().check($ =~ a and $ =~ '^b' and len($) < 4)": "$"},
            [{"ba": 1, "bca": 2}],
            [{"ab": 1}, {"b": 1}, {"bcda": 1}],
        ),
        (
            {"a.": "$.int()", "b": "$.int()", "$.string().check($ =~ a)": "$.string()"},
            [{"a.": 1, "b": 2, "ab": "c"}],
            [{"a.": "a"}, {"b": "b"}, {"ab": 2}],
        ),
        ({"a": "$.check($ in [2, null]).check($ in [1, 2])"}, [{"a": 2}], [{"a": None}, {}]),
        ({1: "$.int()", "a": "$.int()"}, [{"a": 1}], [{"1": 1}]),
        ({1: "$.int()", "$.string()": "$"}, [{"1": "a"}], ["a"]),
        (["$.int()", 0, -1], [[], [1, 2]], [["a"]]),
        ("$.string().check($ in set(b, a))", ["a", "b"], ["c", None]),
        ("$.check($ in [b, a, b].toSet())", ["a", "b"], ["c", None]),
        ("$.string().check(regex('^a').matches($))", ["a", "ab"], ["ba", None]),
        ("$.string().check(regex('^a').matches(($)))", ["a"], ["b"]),
        ("$.check($ = null)", [None], ["a", 0]),
        ("$.int().check(null = $)", [None], [1]),
        ("$.check($ != null)", ["a", 0], [None]),
        ("$.string().check($ != null)", ["a"], [None]),
        ("$.string().check($ != 'a')", ["b", None], ["a"]),
        ("$.check($ != 1)", [2, "1", None], [1, True]),
        # In YAQL, true equals 1.
        ("$.int().check($ != true)", [0, 2, None], [1]),
        ("$.int().check($ = true)", [1], [0, 2]),
        ("$.bool().check($ in [1, 5])", [True], [False]),
        ("$.check($ != a).string()", ["b", None], ["a"]),
        ("$.check($ != a).notNull()", ["b", 1], ["a", None]),
        ("$.notNull().check($ != a and $ != b)", ["c"], ["a", "b", None]),
        ("$.check($ != 5).check($ > 3)", [4, 6], [5, 3, None]),
        ("$.string()?.check($ != a)", ["b", None], ["a"]),
        ("$.string().notNull()?.check($ != null)", ["b"], [None]),
        # Not a number, which JSON does not have.
        ("$.int().check($ != float(nan) and $ in [2] and $ < float(inf))", [2], [3]),
    ],
)
def test_a_schema_is_exact_at_the_edges_of_its_contract(
    engine: murano_pl.Engine, written: Any, taken: Sequence[Any], refused: Sequence[Any]
) -> None:
    checked = _declare(engine, written)
    is_valid = Validator(checked.schema).is_valid

    for value in (*taken, *refused):
        checked.check(engine, value)
    assert [*map(is_valid, taken)] == [True] * len(taken)
    assert [*map(is_valid, refused)] == [False] * len(refused)


# Of an object's model, as a client checks it: the class's own schema has the other properties.
ModelValidator = jsonschema.validators.extend(
    Validator,
    {"context": lambda validator, schema, model, _: validator.descend(model, schema)},
    type_checker=Validator.TYPE_CHECKER.redefine(
        "muranoObject", lambda _, value: isinstance(value, dict) and "?" in value
    ),
)


def _model(name: str, /, **properties: Any) -> dict[str, Any]:
    return {"?": {"type": f"org.example.language.contracts.{name}"}, **properties}


@pytest.mark.parametrize(
    ("condition", "properties", "is_taken"),
    [
        ("$.integer > 2", {"integer": 3}, True),
        ("$.integer > 2", {"integer": 2}, False),
        ("$.integer > 2", {"integer": None}, False),
        ("$.integer < 2", {"integer": None}, True),
        ("$.mandatoryInteger = 1", {}, True),
        ("$.host.name in [a, b]", {"host": _model("Host", name="a")}, True),
        ("$.host.name in [a, b]", {"host": _model("Host", name="c")}, False),
        ("$.host.name in [a, null]", {"host": None}, False),
        ("$.host.name in [a, null]", {"host": _model("Host")}, True),
        ("len($.string) > 1 and ($.integer) > 2", {"string": "ab", "integer": 3}, True),
        ("len($.string) > 1 and ($.integer) > 2", {"string": "a", "integer": 3}, False),
        ("len($.string) > 1 and ($.integer) > 2", {"string": None, "integer": 3}, False),
        ("$.string =~ '^a' and $.string in [ab, null]", {"string": "ab"}, True),
        ("$.string =~ '^a' and $.string in [ab, null]", {"string": None}, False),
        ("$.string != a and $.string != b", {"string": None}, True),
        ("$.string != a and $.string != b", {"string": "b"}, False),
        ("$.host.name != null", {"host": _model("Host", name="a")}, True),
        ("$.host.name != null", {"host": _model("Host", name=None)}, False),
        ("$.string = null", {"string": None}, True),
        ("$.string = null", {"string": "a"}, False),
    ],
)
@pytest.mark.parametrize("kind", ["class", "template"])
def test_a_context_accepts_the_objects_that_a_condition_takes(
    engine: murano_pl.Engine,
    kind: str,
    condition: str,
    properties: dict[str, Any],
    is_taken: bool,
) -> None:
    checked = _declare(engine, f"$.{kind}(Contracts).check({condition})")
    is_valid = ModelValidator(checked.schema).is_valid
    optional = ModelValidator(
        _declare(engine, f"$.{kind}(Contracts)?.check({condition})").schema
    ).is_valid
    model = _model("Contracts", **properties)

    assert checked.is_taken(engine, model) == is_valid(model) == is_taken
    assert not checked.is_taken(engine, None)
    assert not is_valid(None)
    assert optional(None)


@pytest.mark.parametrize(
    "condition",
    [
        # These are not in the specification.
        "$ = a or $ = b",
        "not $ = a",
        "$.startsWith(a)",
        "len($) in [1, 2]",
        "len($) != 2",
        "$ in set($)",
        "$ = $this.missing()",
        "regex(a, ignoreCase => true).matches($)",
        "regex(a).matches($, a)",
        "$ =~ $",
        # JavaScript reads these patterns in another way, and nobody reads the last.
        "$ =~ '(?i)a'",
        "$ =~ '\\\\Aa'",
        "$ =~ 'a{,2}'",
        "$ =~ '('",
    ],
)
def test_a_condition_that_is_not_translated_is_left_out(
    engine: murano_pl.Engine, condition: str
) -> None:
    checked = _declare(engine, f"$.string().check({condition})")

    assert checked.schema == {"type": ["string", "null"]}


# Real packages


@dataclasses.dataclass(frozen=True)
class Schemas:
    """The schemas of the real packages.

    :param entities: the class and the method -> the schema.
    """

    engine: murano_pl.Engine
    entities: Mapping[str, Any]
    inputs: list[Input]


@pytest.fixture(scope="module")
def real(engine_conf: Any, core_library: pathlib.Path) -> Iterator[Schemas]:
    folders = [prerequisites.MURANO / folder for folder in (*REFUSED_BY_GLARE, *LOADED.values())]
    # Two of them are one package.
    named = {
        yaml.safe_load((folder / "manifest.yaml").read_text())["FullName"]: str(folder)
        for folder in folders
    }
    directories = [str(core_library), *named.values()]
    engine_conf.set_override("load_packages_from", directories, "engine")
    with murano_pl.running() as running:
        engine_conf.clear_override("load_packages_from", "engine")
        yield _describe(running, named)


def _describe(engine: murano_pl.Engine, names: Iterable[str]) -> Schemas:
    """Generate the schemas of all classes of these packages, and of their actions."""
    found: dict[str, Any] = {}
    inputs: list[Input] = []
    for package, name, cls in [(p, *found) for p in names for found in engine.classes(p)]:
        actions = sorted(n for n, method in cls.methods.items() if method.is_action)
        for method, schema in engine.schemas(name, ["", *actions], package).items():
            found[f"{name}::{method}"] = schema
            arguments = cls.methods[method].arguments_scheme if method else {}
            for key, translated in schema["properties"].items():
                declared = arguments[key] if method else cls.find_single_property(key)
                title = f"{name}::{method} {key}"
                is_required = key in schema.get("required", ())
                inputs.append(Input(title, declared, translated, is_required))
    return Schemas(engine, found, inputs)


def test_every_schema_of_a_real_package_is_valid(real: Schemas) -> None:
    for name, schema in real.entities.items():
        Validator.check_schema(schema)
        assert json.dumps(schema), name


def test_an_input_of_a_real_package_is_required_if_its_contract_refuses_null(
    real: Schemas,
) -> None:
    for each in real.inputs:
        each.check_missing(real.engine)


@pytest.mark.timeout(effort.FULL_SECONDS or 120)
@_settings
@hypothesis.given(data=st.data())
def test_a_schema_of_a_real_package_accepts_what_its_contracts_take(
    real: Schemas, data: st.DataObject
) -> None:
    checked = data.draw(st.sampled_from(real.inputs))

    checked.check(real.engine, data.draw(ANYTHING | values_of(checked.schema)))
