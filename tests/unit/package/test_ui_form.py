# SPDX-License-Identifier: Apache-2.0

"""Forms as the dashboard reads them: what it cannot show, and what it ignores."""

import io
import pathlib
import re
import textwrap

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from glare_murano.package import Archive, InvalidPackage, read_contents
from glare_murano.package.rules import Rule
from glare_murano.package.safe_yaml import MAX_SIZE
from glare_murano.package.ui_form import FormCheck, check_form, input_fields
from tests import effort, packages

PAGE = pathlib.Path(__file__).parents[3] / "doc/source/reference/packages.rst"

FILE = "UI/ui.yaml"
NEW = """\
Version: 2.4
Parameters:
  sizes: [[s, Small], [l, Large]]
ParametersSource: org.a.App.parameters
Templates:
  host:
    ?: {type: org.a.Host}
    name: $.hosts.name
Application:
  ?:
    type: org.a.App
  hosts: repeat($host, $.hosts.count)
Forms:
  - hosts:
      region: $.region
      fields:
        - {name: name, type: string, label: Name, maxLength: 20, minLength: "2"}
        - name: count
          type: integer
          minValue: 1
          maxValue: $sizes.len()
          initial: 1
          required: false
          anything: $.hosts.name
        - name: size
          type: choice
          choices: $sizes
        - name: color
          type: choice
          choices: {red: Red, green: Green}
          errorMessages: {required: Choose one}
        - name: db
          type: [org.a.Db, org.b.Db]
          emptyValueMessage: No database
        - name: flavor
          type: flavor
          requirements: {min_vcpus: 2, max_memory_mb: 4096.5}
        - name: network
          type: network
          murano_networks: translate
          allow_auto: false
        - name: password
          type: password
          label: Password
          confirmInput: false
          regexpValidator: /^[a-z]{5,50}$/i
        - name: domain
          type: text
          validators:
            - expr: {regexpValidator: '^[^.]+$'}
              message: No dots.
            - expr: $.len() > 3
          widgetMedia: {css: {all: [a.css]}, js: [a.js]}
      validators:
        - expr: $.hosts.count < 5 or $.hosts.name != x
          message: Too many.
"""


def wrong(text: str | bytes) -> list[str]:
    """The problems of a form."""
    data = text.encode() if isinstance(text, str) else text
    try:
        problems, _ = check_form(data, FILE)
    except InvalidPackage as error:
        problems = list(error.problems)
    return [str(problem) for problem in problems]


def ignored(text: str) -> list[str]:
    """The warnings about a form without problems."""
    problems, warnings = check_form(text.encode(), FILE)
    assert problems == []
    return [str(warning) for warning in warnings]


def page(*fields: str, more: str = "") -> str:
    """A form of one page with these fields."""
    lines = [f"    - {{{field}}}\n" for field in fields]
    return f"Application: {{'?': {{type: a.B}}}}\nForms:\n- p:\n    fields:\n{''.join(lines)}{more}"


@pytest.mark.parametrize("text", [NEW, packages.FORM.decode(), page("name: a, type: string")])
def test_a_form_with_all_that_the_dashboard_knows_has_no_problem(text: str) -> None:
    assert ignored(text) == []


@pytest.mark.parametrize("version", ["2", "2.0", "2.1", "2.2", "2.3", "2.4", '"2.2"', "2.1.7"])
def test_a_version_that_the_dashboard_knew_is_accepted(version: str) -> None:
    assert wrong(NEW.replace("Version: 2.4", f"Version: {version}")) == []


@pytest.mark.parametrize("version", ["1", "1.9", "2.5", "2.4.1", "3", "x", "", "[2]", "2" * 5000])
def test_any_other_version_is_refused(version: str) -> None:
    (problem,) = wrong(NEW.replace("Version: 2.4", f"Version: {version}"))
    assert problem.startswith(f"{FILE}, line 1: ")
    assert problem.endswith("is not a version from 2.0 to 2.4 [form-version]")


APPLICATION = "Application: {'?': {type: a.B}}\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ": the form is empty [form-section]"),
        ("{}", ", line 1: the form is empty [form-section]"),
        ("[]", ", line 1: the form: expected a mapping, found a sequence [form-section]"),
        ("a: [", "not valid YAML"),
        ("a: b\nc: \x01", "line 2: not valid YAML: unacceptable character #x0001"),
        ("a: !!python/object:os.system x", "[yaml-tag]"),
        ("Version: 2", ", line 1: the section 'Application' is missing [form-section]"),
        ("Application: 1", ", line 1: Application: expected a mapping, found a string"),
        ("\nApplication: {a: 1}", "line 2: Application has no header: expected '?' with the key"),
        (
            "Application: {'?': {}}",
            "the header '?' of Application has no 'type', the name of a class",
        ),
        ("Application: {'?': {type: [a]}}", "the header '?' of Application has no 'type'"),
        ("Application: $x", "Application: expected a mapping, found a string"),
        (f"{APPLICATION}version: 2", "line 2: the section 'version' breaks the form; remove it"),
        (f"{APPLICATION}a: [x, =]", "line 2: not valid YAML: '=' is not of the type value; quote"),
        (f"{APPLICATION}a: b\t\n", "line 2: not valid YAML: found character '\\t' that cannot"),
        (f"{APPLICATION}Forms: [a-b: {{}}]", "the key 'a-b' is not a string; quote it"),
        (f"{APPLICATION}Templates: []", "line 2: Templates: expected a mapping, found a sequence"),
        (f"{APPLICATION}Parameters: x", "Parameters: expected a mapping, found a string"),
        (f"{APPLICATION}Parameters: {{1: x}}", "the key '1' is not a string; quote it"),
        (f"{APPLICATION}ParametersSource: [a]", "is a sequence; expected the name of a method"),
        (f"{APPLICATION}Forms: {{a: 1}}", "line 2: Forms is a mapping; expected a list"),
        (f"{APPLICATION}Forms: [x]", "a page of Forms: expected a mapping, found a string"),
        (f"{APPLICATION}Forms: [{{}}]", "a page of Forms is empty; expected a name [form-page]"),
        (f"{APPLICATION}Forms:\n-", "line 3: a page of Forms: expected a mapping, found nothing"),
        (f"{APPLICATION}Forms: [a: 1]", "the page 'a': expected a mapping, found a string"),
        (f"{APPLICATION}Forms: [a: {{}}]", "the page 'a' has no list 'fields' [form-page]"),
        (f"{APPLICATION}Forms: [a: {{fields: }}]", "the page 'a' has no list 'fields'"),
        (page(more="    validators: x\n"), "line 5: the validators of the page 'p' are not a list"),
        (page(more="    validators: [{}]\n"), "a validator of the page 'p' has no YAQL expression"),
        (page(more="    validators: [expr: '$.a > 1']\n"), "no YAQL expression in 'expr'"),
    ],
)
def test_a_section_that_the_dashboard_cannot_read_is_refused(text: str, problem: str) -> None:
    found = wrong(text.replace("fields:\n    validators", "fields: []\n    validators"))
    assert len(found) == 1
    assert problem in found[0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{APPLICATION}a: 1\na: 2\n", ", line 3: 'a' is repeated with another value [yaml-key]"),
        (f"{APPLICATION}Version: 2\nVersion: 2.0\n", "line 3: 'Version' is repeated with another"),
        (
            page("name: a, type: string, label: b, label: c"),
            "line 5: 'label' is repeated with anoth",
        ),
        (
            f"{APPLICATION}Templates: {{a: [{{b: 1, b: 2}}]}}",
            "line 2: 'b' is repeated with another",
        ),
        (f"{APPLICATION}Templates: {{a: 1, a: '1'}}", "line 2: 'a' is repeated with another value"),
        (f"{APPLICATION}Templates: {{a: 1, a: !!str 1}}", "'a' is repeated with another value"),
        (f"{APPLICATION}Templates: {{a: {{}}, a: []}}", "'a' is repeated with another value"),
        (f"{APPLICATION}Templates: {{a: [], a: ''}}", "'a' is repeated with another value"),
        # Without quotes, the dashboard reads an expression.
        (f"{APPLICATION}Templates: {{a: $.x, a: '$.x'}}", "'a' is repeated with another value"),
        (f"{APPLICATION}Templates: {{a: [1, 2], a: [1]}}", "'a' is repeated with another value"),
        (f"{APPLICATION}Templates: {{a: {{b: 1}}, a: {{b: 2}}}}", "'a' is repeated with another"),
        (f"{APPLICATION}Templates: {{a: {{b: 1}}, a: {{c: 1}}}}", "'a' is repeated with another"),
    ],
)
def test_a_key_that_is_repeated_with_another_value_is_refused(text: str, problem: str) -> None:
    found = wrong(text)
    assert len(found) == 1
    assert problem in found[0]


@pytest.mark.parametrize(
    "text",
    [
        f"{APPLICATION}Version: 2\nVersion: 2\n",
        f"{APPLICATION}Templates: {{a: [1, {{b: c}}], a: [1, {{b: c}}]}}",
        f"{APPLICATION}Templates: {{b: &b {{c: 1}}, a: *b, a: *b}}",
        page("name: a, type: string, label: b, label: b"),
        page("name: a, type: string, label: 'b', label: \"b\""),
    ],
)
def test_a_key_that_is_repeated_with_the_same_value_is_a_warning(text: str) -> None:
    assert wrong(text) == []
    (warning,) = ignored(text)
    assert "is repeated with the same value [yaml-key]" in warning


@pytest.mark.parametrize(
    "values",
    ["1, a: '1'", "'1', a: 1", "[1], a: {b: 1}", "{b: 1}, a: [1]", "!!str 1, a: 1"],
)
def test_a_value_of_another_type_is_another_one(values: str) -> None:
    (found,) = wrong(f"{APPLICATION}Templates: {{a: {values}}}")
    assert "'a' is repeated" in found


@pytest.mark.parametrize(
    "application", ["{'?': {type: a.B}, !yaql '$.a': 1}", "{'?': {type: a.B, !yaql '$.a': 1}}"]
)
def test_a_key_of_the_application_may_be_an_expression(application: str) -> None:
    assert wrong(f"Application: {application}\n") == []


def test_an_unknown_flag_is_ignored() -> None:
    """As the dashboard ignores it."""
    assert wrong(page("name: a, type: string, regexpValidator: '/a/iq'")) == []


def test_a_page_behind_an_empty_one_is_checked() -> None:
    empty, wrong_page = wrong(f"{APPLICATION}Forms:\n- {{}}\n- p: {{}}\n")
    assert "a page of Forms is empty" in empty
    assert "has no list 'fields'" in wrong_page


def test_a_value_that_comes_back_is_another_one() -> None:
    assert len(wrong(f"{APPLICATION}Templates: {{a: 1, a: 2, a: 1}}")) == 2


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ("type: string", "line 5: a field has no 'name' [form-field]"),
        ("name: 1, type: string", "the name of a field is '1'; expected a string"),
        ("name: a", "line 5: a field has no 'type' [form-field]"),
        ("name: a, type: 5", "'5' is neither a type of fields nor the name of a class"),
        ("name: a, type: []", "the type of a field is an empty list [form-field]"),
        ("name: service, type: string", "a field called 'service' breaks the page; choose another"),
        ("name: a, type: string, label: TCP/UDP", "label is 'TCP/UDP', which YAQL would calculate"),
        ("name: a, type: string, hidden: [a]", "hidden is a sequence; expected true or false"),
        ("name: a, type: string, widgetMedia: {css: [a]}", "css is a sequence; expected a mapping"),
        ("name: a, type: string, widgetAttrs: $.a", "widgetAttrs is '$.a'; expected a mapping"),
        ("name: a, type: [a.B, c-d]", "'c-d' is neither a type of fields nor the name of a class"),
        ("name: a, type: string, lenght: 5", "'lenght' is unknown in a field of the type string"),
        ("name: a, type: integer, maxLength: 5", "'maxLength' is unknown in a field of the type"),
        ("name: a, type: a.B, minValue: 5", "'minValue' is unknown in a field of the type a.B"),
        ("name: a, type: string, maxLength: x", "maxLength is 'x'; expected a number"),
        ("name: a, type: integer, maxValue: '1'", "maxValue is '1'; expected a number"),
        ("name: a, type: choice, choices: x", "choices is 'x'; expected a list of pairs"),
        ("name: a, type: choice, choices: [x]", "an entry of choices is 'x'; expected a list"),
        ("name: a, type: choice, choices: [[x]]", "an entry of choices is a sequence; expected"),
        ("name: a, type: choice, choices: {1: x}", "an attribute: the key '1' is not a string"),
        ("name: a, type: string, initial: {b: {1: x}}", "an attribute: the key '1' is not a"),
        ("name: a, type: string, errorMessages: x", "errorMessages is 'x'; expected a mapping"),
        ("name: a, type: string, widgetMedia: ", "widgetMedia is nothing; expected a mapping"),
        ("name: a, type: flavor, requirements: 2", "requirements is '2'; expected a mapping"),
        ("name: a, type: flavor, requirements: {minDisk: x}", "minDisk is 'x'; expected a number"),
        ("name: a, type: network, murano_networks: all", "expected exclude or translate"),
        ("name: a, type: password", "needs the attribute 'label' [form-attribute]"),
        ("name: a, type: string, regexpValidator: 1", "'1'; expected a regular expression"),
        ("name: a, type: string, regexpValidator: '[a'", "is not a valid regular expression: unt"),
        ("name: a, type: string, regexpValidator: '/a'", "expected /pattern/ or /pattern/flags"),
        ("name: a, type: string, regexpValidator: '/a/L'", "cannot use LOCALE flag"),
        ("name: a, type: string, validators: x", "validators is 'x'; expected a list"),
        ("name: a, type: string, validators: [x]", "a validator: expected a mapping, found"),
        (
            "name: a, type: string, validators: [expr: {regexpValidator: '(a'}]",
            "regexpValidator '(a' is not a valid regular expression",
        ),
    ],
)
def test_a_field_that_the_dashboard_cannot_show_is_refused(field: str, problem: str) -> None:
    (found,) = wrong(page(field))
    assert found.startswith(f"{FILE}, line 5: ")
    assert problem in found


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (f"{APPLICATION}Template: {{}}", "line 2: the section 'Template' is unknown"),
        (page("name: a, type: String"), "'String' is not a type of fields, so it is read as"),
        (page("name: a, type: string, hidden: 'no'"), "hidden is 'no'; expected true or false"),
        (page("name: a, type: string", "name: a, type: text"), "several fields of the page 'p'"),
        (page("name: a, type: string, validators: [message: x]"), "is ignored"),
        (page("name: a, type: string, validators: [expr: '$ > 1']"), "without quotes"),
        (page("name: a, type: flavor, requirements: {cpus: 2}"), "'cpus' in requirements is"),
        (
            page("name: a, type: string", more="  validators: []\n"),
            "beside the page 'p' is",
        ),
        (
            page("name: a, type: string", more="    title: x\n"),
            "'title' in the page 'p' is",
        ),
        (page("name: a, type: string", more="- p: {fields: []}\n"), "several pages are called 'p'"),
        (
            f"{APPLICATION}Forms:\n- p: {{fields: []}}\n- q: {{fields: [], r: x}}\n",
            "'r' in the page",
        ),
    ],
)
def test_what_the_dashboard_ignores_is_a_warning(text: str, warning: str) -> None:
    (found,) = ignored(text)
    assert warning in found
    assert re.search(r"line \d", found)


_HEADER = "Application: {{'?': {{type: a.B}}, x: [{{'?': {{type: a.C, classVersion: {}}}}}]}}\n"


@pytest.mark.parametrize(
    "version",
    ["0", "1", "12", "'1.10'", '">=1,<2"', "1.2.3", "", "~", "'*'", "$.a.version", "!yaql x"],
)
def test_a_range_in_the_header_of_an_object_is_accepted(version: str) -> None:
    assert ignored(_HEADER.format(version)) == []


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("1.10", "YAML reads '1.10' without quotes as another value; write it in quotes"),
        ("010", "'010' is not a valid range"),
        ("1_0", "'1_0' is not a valid range"),
        ("yes", "'yes' is not a valid range"),
        ("newest", "'newest' is not a valid range of versions: expected a version such as 1"),
        ("'newest'", "'newest' is not a valid range"),
        ("-1", "'-1' is not a valid range"),
        ("[1]", "expected a range of versions, found a sequence"),
    ],
)
@pytest.mark.parametrize("section", ["Application", "Templates", "Parameters"])
def test_any_other_version_of_an_object_is_refused(section: str, version: str, reason: str) -> None:
    text = _HEADER.format(version)
    if section != "Application":
        text = APPLICATION + text.replace("Application", section)
    (problem,) = wrong(text)

    line = 1 if section == "Application" else 2
    assert problem.startswith(f"{FILE}, line {line}: classVersion: {reason}")
    assert problem.endswith("[form-range]")


def test_a_wrong_version_in_a_template_is_reported_once() -> None:
    header = "{'?': &header {type: a.B, classVersion: 1.10}}"
    text = f"{APPLICATION}Templates: {{a: {header}, b: {{'?': *header}}}}\n"

    assert len(wrong(text)) == 1


def test_before_version_2_2_the_object_may_be_an_expression() -> None:
    assert ignored("Version: 2.1\nApplication: $template\n") == []
    assert ignored("Version: 2.1\nApplication: {'?': $.header}\n") == []
    assert wrong("Version: 2.2\nApplication: {'?': $.header}\n") != []


def test_all_problems_are_reported_and_merged_keys_count() -> None:
    text = page("name: a", "<<: {name: b, type: string}, zz: 1", "type: string")
    assert [re.findall("line [0-9]+|'[a-z]+'", each) for each in wrong(text)] == [
        ["line 5", "'type'"],
        ["line 6", "'zz'"],
        ["line 7", "'name'"],
    ]


@pytest.mark.parametrize("pattern", ["[a-z]{1,9}(a|b)" * 4000, "(" * 50_000, "a{1,9}" * 9000])
def test_patterns_are_compiled_in_bounded_time(pattern: str) -> None:
    """A longer one is not compiled."""
    field = f"name: a, type: string, regexpValidator: '{pattern}'"
    assert all("not a valid regular expression" in each for each in wrong(page(field)))


def _zipped(form: bytes) -> io.BytesIO:
    return io.BytesIO(packages.package("org.a", more={FILE: form}))


def test_a_form_is_checked_with_the_rest_of_the_package_or_not_at_all() -> None:
    with Archive.open(_zipped(b"Version: 1\n")) as archive:
        assert read_contents(archive).warnings == ()
        found = read_contents(archive, form_check=FormCheck.WARN)
        with pytest.raises(InvalidPackage) as caught:
            read_contents(archive, form_check=FormCheck.ENFORCE)
    rules = [Rule.FORM_VERSION, Rule.FORM_SECTION]
    assert [problem.rule for problem in caught.value.problems] == rules
    assert found.warnings == caught.value.problems
    assert found.ui == b"Version: 1\n"


def test_what_an_engine_refuses_is_refused_whatever_the_operator_chooses() -> None:
    form = b"Version: 1\n" + _HEADER.format("1.10").encode()
    with Archive.open(_zipped(form)) as archive:
        assert read_contents(archive).warnings == ()
        with pytest.raises(InvalidPackage) as caught:
            read_contents(archive, form_check=FormCheck.WARN)
    assert [problem.rule for problem in caught.value.problems] == [Rule.FORM_RANGE]
    assert [problem.rule for problem in caught.value.warnings] == [Rule.FORM_VERSION]


@pytest.mark.parametrize(
    ("form", "rule"),
    [
        (b"a: [", None),
        (b"a: b\t\n", None),
        (b"a: !!python/object:os.system x", Rule.YAML_TAG),
        (b"[" * 65 + b"]" * 65, Rule.YAML_DEPTH),
        (b"a: &a [*a]", Rule.YAML_ALIAS),
        (b"Version: 2\nVersion: 3", Rule.YAML_KEY),
        (b"[" + b"1," * 100_000 + b"]", Rule.YAML_SIZE),
    ],
)
def test_only_what_a_dashboard_cannot_show_is_a_warning(form: bytes, rule: Rule | None) -> None:
    with Archive.open(_zipped(form)) as archive:
        if rule is None:
            (warning,) = read_contents(archive, form_check=FormCheck.WARN).warnings
            assert warning.rule is Rule.YAML_SYNTAX
            return
        with pytest.raises(InvalidPackage) as caught:
            read_contents(archive, form_check=FormCheck.WARN)
    assert [problem.rule for problem in caught.value.problems] == [rule]


def test_the_documentation_lists_every_type_with_its_attributes() -> None:
    _, _, section = PAGE.read_text().partition("\nForms\n=====\n")
    section, _, _ = section.partition("\nArchives\n")
    example, table = section.partition(".. list-table::")[::2]
    rows = [row.split("\n     -") for row in table.split("   * - ")[2:]]
    shown = {
        kind: set(re.findall("``([a-zA-Z0-9]+)``", cells[-1]))
        for cells in rows
        for kind in re.findall("``([a-z]+)``", cells[0])
    }
    assert set(shown) == set(input_fields._TYPES)
    shared = {"choices", *input_fields._TYPES["string"]}
    for kind, attributes in input_fields._TYPES.items():
        own = set(attributes) if kind in ("string", "choice") else set(attributes) - shared
        assert {*map(_camel, own)} <= shown[kind] or kind == "domain", kind

    form = re.search(r"code-block:: yaml\n\n((?:    .*\n|\n)+)", example)
    assert form
    assert check_form(textwrap.dedent(form[1]).encode(), FILE) == ([], [])


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


_SCALARS = st.none() | st.booleans() | st.integers() | st.text("a$.:?-{[/(\n ", max_size=6)
_KEYS = st.sampled_from(
    ["Application", "Forms", "Version", "Templates", "?", "<<", "type", "name", "fields", "expr"]
) | st.sampled_from(
    ["validators", "regexpValidator", "choices", "requirements", "label", "string", "hidden"]
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(_KEYS | _SCALARS, inner, max_size=3)
    ),
    max_leaves=8,
)


def _paths(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """All places in a document."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)  # type: ignore[arg-type]
    if not isinstance(value, dict | list):
        return [path]
    return [path, *(found for key, each in pairs for found in _paths(each, (*path, key)))]


class TestAnyForm:
    """A mutated form is classified: it has problems, or only warnings, and no check fails."""

    @settings(max_examples=effort.FILES, deadline=None)
    @given(st.data())
    def test_with_another_value_somewhere(self, data: st.DataObject) -> None:
        document = yaml.load(NEW, yaml.BaseLoader)
        *path, last = data.draw(st.sampled_from([each for each in _paths(document) if each]))
        place = document
        for key in path:
            place = place[key]
        if data.draw(st.booleans()):
            place[last] = data.draw(_VALUES)
        else:
            del place[last]
        self._check(yaml.safe_dump(document).encode())

    @settings(max_examples=effort.FILES, deadline=None)
    @given(
        st.integers(0, len(NEW)), st.integers(0, 20), st.text("-:{}[]'\"$?*&<!| \na1/", max_size=4)
    )
    def test_with_other_characters_somewhere(self, start: int, length: int, text: str) -> None:
        self._check((NEW[:start] + text + NEW[start + length :]).encode())

    @settings(max_examples=effort.FILES, deadline=None)
    @given(_VALUES)
    def test_of_anything(self, value: object) -> None:
        self._check(yaml.safe_dump(value).encode())

    @settings(max_examples=effort.FILES, deadline=None)
    @given(st.binary(max_size=60))
    def test_of_any_bytes(self, data: bytes) -> None:
        self._check(data)

    def _check(self, data: bytes) -> None:
        try:
            problems, warnings = check_form(data, FILE)
        except InvalidPackage as error:
            problems, warnings = list(error.problems), []
        for each in (*problems, *warnings):
            assert each.where == FILE
            assert str(each.rule).startswith(("form-", "yaml-"))
            assert str(each).endswith("]")


def test_long_numbers_are_not_made() -> None:
    """A number to the base of 60 takes time by the square of its length."""
    assert ignored(page(f"name: a, type: string, initial: 1{':59' * 200_000}")) == []


def test_a_form_is_limited_like_any_yaml() -> None:
    assert wrong(b"#" * (MAX_SIZE + 1))[0].endswith("[yaml-size]")
    assert wrong("[" * 65 + "]" * 65)[0].endswith("[yaml-depth]")
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 10)}]\n" for i in range(5)
    )
    assert wrong(bomb)[0].endswith("[yaml-alias]")
    long = f"a: &a {'x' * 64_000}\nb: [{', '.join(['*a'] * 101)}]\n"
    assert wrong(long)[0].endswith("[yaml-alias]")
