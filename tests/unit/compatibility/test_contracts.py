# SPDX-License-Identifier: Apache-2.0

"""Contracts: which of two accepts more, for every form in the MuranoPL reference."""

import pytest
import yaml

from glare_murano.package import safe_yaml
from loader.compatibility import contracts, expressions
from loader.compatibility.answers import Answer
from loader.compatibility.containment import fits, lost_keys

NAMESPACES = {"=": "org.a", "other": "org.b"}
BASES = {"org.a.Sub": "org.a.Base", "org.b.Sub": None}


def _is_subclass(name: str, base: str) -> bool | None:
    if base in (name, "io.murano.Object") or BASES.get(name) == base:
        return True
    return None if name.startswith("org.b.") else False


def _read(text: str) -> contracts.Contract:
    node = safe_yaml.compose(text.encode(), "test")
    assert node is not None
    return contracts.read(node, NAMESPACES)


WIDER = [
    ("$.int().notNull()", "$.int()"),
    ("$.string()", "$"),
    ("$.bool()", "$"),
    ("$.notNull()", "$"),
    ("$.int().notNull()", "$.notNull()"),
    ("$.class(Sub)", "$.class(Base)"),
    ("$.class(Sub).notNull()", "$.class(:Base)"),
    ("$.class(Base)", "$.class(io.murano.Object)"),
    ("$.class(Base)", "$.class(Base, Sub)"),
    ("$.class(Base, Base)", "$.class(Base, Sub)"),
    ("$.class(Base, versionSpec => '1')", "$.class(Base, versionSpec => '>=1,<3')"),
    ("$.class(Base, null, '1')", "$.class(Base)"),
    ("$.class(Base).owned()", "$.class(Base)"),
    ("$.class(Base).notOwned()", "$.class(Base)"),
    ("$.class(Base).check($.p = 12)", "$.class(Base)"),
    ("$.template(Sub)", "$.template(Base)"),
    ("$.template(Base)", "$.template(Base, excludeProperties => [name])"),
    ("$.int().check($ > 0)", "$.int()"),
    ("$.int().check($ > 0)", "$.int().check($ >= 0)"),
    ("$.int().check($ > 0 and $ < 65536)", "$.int().check(65536 > $)"),
    ("$.int().check($ >= -1)", "$.int().check($ >= -2)"),
    ("$.int().check($ = 3)", "$.int().check($ > 2)"),
    ("$.int().check($ in [1, 2])", "$.int().check($ < 3)"),
    ("$.string().check($ in list(a, b))", "$.string().check($ in list(c, b, a))"),
    ("$.string().check($ in list(a, b), 'one of')", "$.string().check($ in list(c, b, a))"),
    ("$.string().check(len($) <= 8)", "$.string().check(len($) <= 9)"),
    ("$.string().check($this.ok($)).notNull()", "$.string().check($this.ok($))"),
    ("$.check($ in $this.all())", "$"),
    ("$.int().check($ > 3)", "$.int()?.check($ > 3)"),
    ("[$.int().notNull()]", "[$.int()]"),
    ("[$.int()]", "[]"),
    ("[]", "$"),
    ("[$.int(), 2]", "[$.int()]"),
    ("[$.int(), 2, 5]", "[$.int(), 2]"),
    ("[$.int(), 2, 5]", "[$.int(), 1, 6]"),
    ("[$.int(), $.string()]", "[$]"),
    ("[[$.int()]]", "[[]]"),
    ("[$.int(), 0, 1]", "[$.int(), $.string()]"),
    ("{a: $.int(), b: $.notNull()}", "{a: $.int()}"),
    ("{a: $.int()}", "{}"),
    ("{a: $.int()}", "{a: $}"),
    ("{a: $.int()}", "$.notNull()"),
    ("{$.string().notNull(): $.int()}", "{}"),
    ("{$.string().notNull(): $.int().notNull()}", "{$.string(): $.int()}"),
    ("{a: $.int().notNull()}", "{$.string(): $.int()}"),
    ("{A: StringMap, $.string().notNull(): $}", "{$.string().notNull(): $}"),
    ("StringMap", "$.string()"),
    ("StringMap", "$.string().check($ in list(StringMap, b))"),
    ("5", "$.int()"),
]
EQUAL = [
    ("$.class(Base)", "$.class('org.a.Base')"),
    ("$.class(Base)", "$.class(org.a.Base)"),
    ("$.class(other:Base)", "$.class(name => 'org.b.Base')"),
    ("$.check($ in list(a, b))", "$.check(($) in ['b', 'a'])"),
    ("$.check($ in list(a, b))", "$.check($ in set(b, a))"),
    ("$.int().check($ > 0).check($ < 5)", "$.int().check(($ < 5) and (0 < $))"),
    ("$.int().notNull().check($ > 0)", "$.int().check($ > 0).notNull()"),
    ("$.check(typeinfo($).meta.where($ is Base))", "$.check(typeinfo($).meta.where($ is :Base))"),
    ("{b: $, a: $.int()}", "{a: $.int(), b: $}"),
]
DIFFERENT = [
    ("$.int()", "$.string()"),
    ("$.int()", "$.bool()"),
    ("$.class(Base).owned()", "$.class(Base).notOwned()"),
    ("$.class(Base)", "$.class(Unrelated)"),
    ("$.class(Base)", "$.template(Base)"),
    ("$.class(Base)", "$.string()"),
    ("[$.int()]", "$.int()"),
    ("[]", "{}"),
    ("[$.int(), 1, 3]", "[$.int(), 2, 4]"),
    ("$.int().check($ > 0)", "$.int().check($ < 9)"),
    ("$.check($ in list(a))", "$.check($ in list(b))"),
    ("StringMap", "Other"),
    ("1", "true"),
]
UNKNOWN = [
    ("$.check($this.a($))", "$.check($this.b($))"),
    ("$.check($this.a($))", "$.check($ > 0)"),
    ("$.check($ is Base)", "$.check($ is other:Base)"),
    ("$.upper()", "$"),
    ("$.upper()", "$.lower()"),
    ("$.class(other:Sub)", "$.class(other:Base)"),
    ("$.class($this.name)", "$.class(Base)"),
    ("$.string().check($ > 1)", "$.check($ > 1).string()"),
    ("$.int(", "$.int()"),
    ("[$.upper()]", "[$.lower()]"),
    ("{a: $.upper()}", "{a: $.lower()}"),
    ("[]", "$.check($.len() > 1)"),
]


@pytest.mark.parametrize(("narrow", "wide"), WIDER)
def test_a_wider_contract_accepts_all_and_the_narrower_one_does_not(narrow: str, wide: str) -> None:
    assert fits(_read(narrow), _read(wide), _is_subclass) is Answer.YES
    assert fits(_read(wide), _read(narrow), _is_subclass) is not Answer.YES


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal_contracts_are_equal_in_every_form(one: str, other: str) -> None:
    assert fits(_read(one), _read(other), _is_subclass) is Answer.YES
    assert fits(_read(other), _read(one), _is_subclass) is Answer.YES


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_neither_of_two_different_contracts_accepts_all(one: str, other: str) -> None:
    assert fits(_read(one), _read(other), _is_subclass) is Answer.NO
    assert fits(_read(other), _read(one), _is_subclass) is Answer.NO


@pytest.mark.parametrize(("one", "other"), UNKNOWN)
def test_what_cannot_be_judged_is_unknown(one: str, other: str) -> None:
    if other == "$":
        one, other = other, one
    assert fits(_read(one), _read(other), _is_subclass) is Answer.UNKNOWN


@pytest.mark.parametrize("text", sorted({text for pair in [*WIDER, *EQUAL] for text in pair}))
def test_a_contract_accepts_itself(text: str) -> None:
    assert fits(_read(text), _read(text), _is_subclass) is Answer.YES
    assert list(lost_keys(_read(text), _read(text))) == []


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("{a: $, b: $}", "{b: $}", ["a"]),
        ("{a: {b: $, c: $}}", "{a: {c: $}}", ["a.b"]),
        ("[{a: $}]", "[{b: $}]", ["0.a"]),
        ("{}", "{a: $}", ["*"]),
        ("{a: $}", "{$.string(): $}", []),
        ("{$.string(): {a: $}}", "{$.string(): {b: $}}", ["*.a"]),
    ],
)
def test_keys_that_a_new_contract_drops_are_found(old: str, new: str, lost: list[str]) -> None:
    assert list(lost_keys(_read(old), _read(new))) == lost


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("$.int()", True),
        ("$.int().notNull()", False),
        ("$.int()?.notNull()", True),
        ("$.class(Base).owned()", True),
        ("$.int().check($ > 0)", False),
        ("$.int()?.check($ > 0)", True),
        ("$.int().check($ < 0)", True),
        ("$.string().check($ in list(a, null))", True),
        ("$.string().check($ in list(a, b))", False),
        ("$.check($this.ok($))", None),
        ("$.upper()", None),
        ("$.int() or 5672", True),
        ("($.int().notNull()) or 5672", False),
        ("[$.notNull()]", True),
        ("[$.notNull(), 1]", False),
        ("{a: $}", True),
        ("{a: $.notNull()}", False),
        ("{a: $.upper()}", None),
        ("{$.notNull(): $.notNull()}", True),
        ("StringMap", False),
        ("null", True),
    ],
)
def test_whether_a_value_may_be_omitted(text: str, accepted: bool | None) -> None:
    assert contracts.accepts_missing(_read(text)) is accepted


@pytest.mark.parametrize(
    ("text", "is_invalid"),
    [
        ("$.int(", True),
        ("[$.int(]", True),
        ("!yaql 'int('", True),
        ("'$.int('", False),
        ("http://example.org", False),
        ("$" + ".notNull()" * 500, True),
        ("$.check(" + "not " * 900 + "$)", True),
    ],
)
def test_an_expression_that_is_not_valid_yaql_is_found(text: str, is_invalid: bool) -> None:
    node = yaml.compose(f"[{text}]" if text.startswith("!") else text, Loader=yaml.CSafeLoader)
    contract = contracts.read(node, NAMESPACES)
    assert (contracts.invalid_part(contract) is not None) is is_invalid


def test_a_quoted_expression_is_a_constant() -> None:
    assert _read("'$.int()'") == contracts.read_constant("$.int()")
    assert _read("$.int()") == _read("!yaql '$.int()'")


def test_words_are_the_same_with_and_without_quotes_within_an_expression() -> None:
    assert expressions.write(expressions.parse("list(a)"), {}) == expressions.write(
        expressions.parse("list('a')"), {}
    )
    assert expressions.write(expressions.parse("list(1)"), {}) != expressions.write(
        expressions.parse("list('1')"), {}
    )
