# SPDX-License-Identifier: Apache-2.0

"""The function ``format`` of YAQL: the strings of ``str.format``, without Python's attributes."""

import datetime
import pathlib
import re
import string
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest
import semantic_version
from hypothesis import strategies
from murano.dsl import constants, yaql_integration
from yaql.language import utils
from yaql.standard_library import strings

from loader.engine import service, yaql_format, yaql_quota
from tests.integration import murano_pl

VERSIONS = [
    getattr(constants, f"RUNTIME_VERSION_1_{minor}", constants.RUNTIME_VERSION_1_0)
    for minor in range(5)
]

_names = strategies.sampled_from(["a", "name", "_x", "é"])
_scalars = (
    strategies.none()
    | strategies.booleans()
    | strategies.integers()
    | strategies.floats()
    | strategies.text(max_size=20)
)
_values = strategies.recursive(
    _scalars,
    lambda inner: (
        strategies.lists(inner, max_size=3)
        | strategies.lists(inner, max_size=3).map(tuple)
        | strategies.dictionaries(strategies.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
_specs = strategies.from_regex(
    r"(.?[<>=^])?[-+ ]?#?0?([0-9]{1,3})?[,_]?(\.[0-9]{1,2})?[bcdeEfFgGnosxX%]?", fullmatch=True
)
_fields = strategies.builds(
    lambda name, conversion, spec: f"{{{name}{conversion}{spec}}}",
    strategies.sampled_from(["0", "1", "2", "00", "9"]) | _names | strategies.just(""),
    strategies.sampled_from(["", "", "!s", "!r", "!a"]),
    strategies.just("") | _specs.map(lambda spec: f":{spec}"),
)
_templates = strategies.lists(
    strategies.text(max_size=5) | _fields | strategies.sampled_from(["{{", "}}", "{", "}"])
).map("".join)


# The engine of these tests has the patches.
pytestmark = pytest.mark.usefixtures("engine_conf")


def evaluate(text: str, version: Any = VERSIONS[-1], **variables: Any) -> Any:
    """Evaluate an expression in the context of a version of MuranoPL."""
    context = yaql_integration.create_context(version).create_child_context()
    for name, value in variables.items():
        context[name] = value
    return yaql_integration.choose_yaql_engine(version)(text).evaluate(context=context)


@hypothesis.given(
    _templates, strategies.lists(_values, max_size=3), strategies.dictionaries(_names, _values)
)
def test_plain_values_are_written_as_by_python(
    template: str, args: list[Any], kwargs: dict[str, Any]
) -> None:
    try:
        expected = template.format(*args, **kwargs)
    except (ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        # Python refuses a width for null and for a list; here, they are strings.
        if isinstance(error, IndexError | KeyError):
            with pytest.raises((IndexError, KeyError, ValueError)):
                yaql_format.format_text(template, args, kwargs)
        return
    # A field may not use Python's attributes and items, with which Python has no trouble.
    if any(
        "." in (f or "") or "[" in (f or "") for _, f, _, _ in string.Formatter().parse(template)
    ):
        return
    assert yaql_format.format_text(template, args, kwargs) == expected


@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("format('{0}-{1}', a, 1)", "a-1"),
        ("'{0}-{name}'.format(a, name => b)", "a-b"),
        ("'{}{}'.format(1, true)", "1True"),
        ("format('{0}', [1, 'two', null])", "(1, 'two', None)"),
        ("format('{0}', dict(a => [1]))", "{'a': (1,)}"),
        ("call(format, ['{0}', 5], {})", "5"),
        ("datetime(2015, 1, 2).format('%Y')", "2015"),
        ("format('{0:>5}|{1:.2f}|{2!r}', a, 1.5, b)", "    a|1.50|'b'"),
    ],
)
def test_every_version_of_muranopl_has_the_function(
    version: Any, expression: str, expected: str
) -> None:
    assert evaluate(expression, version) == expected


@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize(
    "template",
    [
        "{0.__class__}",
        "{0.__class__.__init__.__globals__[os].environ}",
        "{0[0]}",
        "{a.b}",
        "{a[b]}",
        "{0.}",
        "{0[}",
        "{.__class__}",
        "{0:{1}}",
        "{0:{a.__class__}}",
        "{0!r:{1}}",
        "{a-b}",
    ],
)
@pytest.mark.parametrize("call", ["format($template, {0})", "$template.format({0})"])
@pytest.mark.parametrize("argument", ["1", "$object"])
def test_a_field_reaches_no_attribute_and_no_item(
    version: Any, template: str, call: str, argument: str
) -> None:
    expression = call.format(f"{argument}, 2, a => {argument}")

    with pytest.raises(ValueError, match=r"^format: |^expected"):
        evaluate(expression, version, template=template, object=[1])


@pytest.mark.parametrize("spec", ["999999999", "1001", ".1001f", "0" * 20 + "9999", "²"])
def test_width_and_precision_are_bounded(spec: str) -> None:
    with pytest.raises(ValueError, match=r"too large; at most 1000 is allowed|not a valid format"):
        evaluate("format($template, 1)", template=f"{{0:{spec}}}")


def test_the_result_is_within_the_quota() -> None:
    assert len(evaluate("format('{0}{0}', $x)", x="x" * 200_000)) == 400_000
    for template, value in (("{0}{0}", "x" * 300_000), ("{0}", ["x" * 1000] * 600)):
        with pytest.raises(yaql_quota.QuotaExceeded, match="524,288 bytes"):
            evaluate("format($template, $x)", template=template, x=value)


def test_missing_values_are_the_errors_that_loggers_expect() -> None:
    with pytest.raises(IndexError):
        evaluate("format('{1}', 1)")
    with pytest.raises(KeyError):
        evaluate("format('{b}', a => 1)")
    with pytest.raises(ValueError, match="all or not at all"):
        evaluate("format('{0}{}', 1, 2)")
    with pytest.raises(ValueError, match="conversion !x"):
        evaluate("format('{0!x}', 1)")


class Secret:
    """An object of Python, whose ``repr`` and ``str`` must not be seen."""

    def __repr__(self) -> str:
        raise AssertionError

    def __format__(self, spec: str) -> str:
        raise AssertionError


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x], lambda x: {"a": (x,)}])
@pytest.mark.parametrize("expression", ["format('{0}', $x)", "str($x)", "[$x].join(',')"])
def test_an_object_of_python_is_refused(expression: str, wrap: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="of the type Secret cannot be written"):
        evaluate(expression, x=wrap(Secret()))


def test_what_is_written_for_other_values() -> None:
    values = [
        (semantic_version.Version("1.2.3"), "1.2.3"),
        (datetime.timedelta(seconds=1), "0:00:01"),
        (frozenset(), "frozenset()"),
        (frozenset([1]), "frozenset({1})"),
        (utils.FrozenDict({1: [None]}), "{1: [None]}"),
        (iter([1, 2]), "(1, 2)"),
        (b"a", "b'a'"),
    ]
    for value, expected in values:
        assert evaluate("format('{0}', $x)", x=value) == expected


def test_objects_and_classes_are_written_as_their_names() -> None:
    with murano_pl.running() as engine:
        environment = engine.load("io.murano.Environment", name="one")
        text = yaql_format.format_text(
            "{0}|{1}|{2}|{3}",
            [environment, [environment], environment.type.get_reference(), environment.type],
            {},
        )

    name = "io.murano.Environment"
    assert text == f"{name}|[{name}]|{name}|{name}"


# The first string of a call of format, and its method's form.
_CALLS = re.compile(
    r"""format\(\s*(?P<quote>['"])(?P<text>.*?)(?P=quote)|"""
    r"""(?P<quote2>['"])(?P<text2>[^'"]*\{[^'"]*)(?P=quote2)\.format\(""",
    re.DOTALL,
)


def _templates_of_core_library(core_library: pathlib.Path) -> Iterator[str]:
    for path in sorted(core_library.rglob("*.yaml")):
        for match in _CALLS.finditer(path.read_text()):
            yield match["text"] or match["text2"]


def test_the_core_library_gets_the_same_strings(core_library: pathlib.Path) -> None:
    found = list(_templates_of_core_library(core_library))
    assert len(found) > 70

    plain = ["a name", 5, None, True, 1.5, (1, "two"), {"a": None}]
    for template in found:
        for offset in range(len(plain)):
            values = plain[offset:] + plain[:offset]
            assert yaql_format.format_text(template, values, {}) == template.format(*values)


def test_the_service_refuses_a_yaql_with_the_hole(
    conf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strings, "format_", str.format, raising=False)

    with pytest.raises(service.InvalidConfiguration, match=r"yaql .*CVE-2024-29156.*'yaql>=3'"):
        service.check(conf)
