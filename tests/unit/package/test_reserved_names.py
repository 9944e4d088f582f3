# SPDX-License-Identifier: Apache-2.0

"""The operator's file of reserved names."""

import doctest
import pathlib

import pytest

from glare_murano.package import reserved_names
from glare_murano.package.reserved_names import InvalidReservedNames, ReservedNames


def _parse(text: str) -> ReservedNames:
    return ReservedNames.parse(text.encode(), "names.yaml")


@pytest.mark.parametrize("prefix", ["org.example", "org.example."])
@pytest.mark.parametrize(
    ("fqn", "is_reserved"),
    [
        ("org.example", True),
        ("org.example.db", True),
        ("org.example.db.mysql", True),
        ("org.examples", False),
        ("org", False),
        ("my.org.example", False),
        ("Org.example", False),
    ],
)
def test_a_prefix_covers_its_name_and_all_names_below(
    prefix: str, fqn: str, is_reserved: bool
) -> None:
    reserved = _parse(f"{prefix}: [ours]")
    assert (reserved.find(fqn) is not None) == is_reserved
    assert reserved.allows(fqn, "ours")
    assert reserved.allows(fqn, "another") != is_reserved
    assert reserved.allows(fqn, None) != is_reserved


def test_the_longest_prefix_counts() -> None:
    reserved = _parse("org: [first]\norg.example: [second]\norg.example.db: []")
    assert reserved.allows("org.wiki", "first")
    assert not reserved.allows("org.example.wiki", "first")
    assert reserved.allows("org.example.wiki", "second")
    assert not reserved.allows("org.example.db", "second")
    assert str(reserved.find("org.example.db.x")) == (
        "the prefix org.example.db, which is reserved for the operator"
    )


def test_ids_count_as_written() -> None:
    reserved = _parse("org.a: [1234, 0x10, 1_000, true]\norg-example-mail: ['a', \"b\"]")
    for project in ("1234", "0x10", "1_000", "true"):
        assert reserved.allows("org.a", project)
    assert not reserved.allows("org.a", "16")
    found = reserved.find("org-example-mail")
    assert found is not None
    assert found.owners == "the projects a, b"


def test_the_id_of_a_project_has_a_longest_length() -> None:
    longest = 255 * "b"

    assert _parse(f"org.a: [{longest}]").allows("org.a", longest)
    with pytest.raises(InvalidReservedNames, match="expected the id of a project, found 'bbb"):
        _parse(f"org.a: [{longest}b]")


@pytest.mark.parametrize("text", ["", "# nothing\n", "null", "{}"])
def test_an_empty_file_reserves_nothing(text: str) -> None:
    assert not _parse(text).reservations
    assert ReservedNames().allows("io.murano", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("org.a: ours", "names.yaml, line 1: org.a: expected a list of project ids, found a"),
        ("org.a:", "names.yaml, line 1: org.a: expected a list of project ids, found nothing"),
        ("org.a: [b]\norg.a.: [c]", "names.yaml, line 2: the prefix org.a is repeated"),
        ("org.a: [b]\norg.a: [c]", "names.yaml, line 2: the prefix org.a is repeated"),
        ("org.a: [null]", "names.yaml, line 1: expected the id of a project, found nothing"),
        ("org.a: [[b]]", "names.yaml, line 1: expected the id of a project, found a sequence"),
        ("org.a: ['']", "names.yaml, line 1: expected the id of a project, found a string"),
        ('org.a: ["b\\0"]', "names.yaml, line 1: expected the id of a project, found 'b\\x00'"),
        ("- org.a", "names.yaml, line 1: expected prefixes with projects, found a sequence"),
        ("org..a: []", "names.yaml, line 1: 'org..a'"),
        ("'*': [b]", "names.yaml, line 1: '*'"),
        ("'.': [b]", "names.yaml, line 1: ''"),
        ("{a: b", "names.yaml, line 2: not valid YAML"),
        ("!!python/object:os.system {}", "names.yaml, line 1: the tag"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InvalidReservedNames) as found:
        _parse(text)
    assert message in str(found.value)


def test_a_missing_file_is_named(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "missing.yaml")
    with pytest.raises(InvalidReservedNames, match=r"missing.yaml: No such file or directory"):
        ReservedNames.load(path)


def test_the_example_runs_as_written() -> None:
    found = doctest.testmod(reserved_names)
    assert found.attempted
    assert not found.failed
