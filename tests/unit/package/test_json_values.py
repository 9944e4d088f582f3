# SPDX-License-Identifier: Apache-2.0

import json

import pytest

from glare_murano.package.json_values import Counts

LIMITS = Counts(lists=10, commas=20)


def _excess(data: bytes) -> str:
    return LIMITS.find_excess(data)


@pytest.mark.parametrize("empty", [b"[]", b"{}"])
def test_lists_and_mappings_are_counted(empty):
    assert _excess(b"[" + b",".join([empty] * 9) + b"]") == ""
    assert _excess(b"[" + b",".join([empty] * 10) + b"]") == "more than 10 lists and mappings"


def test_values_are_counted():
    assert _excess(json.dumps([1] * 21).encode()) == ""
    assert _excess(json.dumps([1] * 22).encode()) == "more than 20 values"
    assert _excess(json.dumps(dict.fromkeys(map(str, range(22)))).encode()) == "more than 20 values"


@pytest.mark.parametrize("text", ["[" * 99, ",{" * 99, '",' * 99, "\\[" * 99, '\\",' * 99, "\\"])
def test_strings_may_have_any_characters(text):
    document = json.dumps({"description": text, text: [text]}).encode()
    assert _excess(document) == ""
    lists = json.dumps([text, *([[]] * 10)]).encode()
    assert _excess(lists) == "more than 10 lists and mappings"


def test_an_open_string_hides_nothing():
    assert _excess(b'"' + b"," * 21) == "more than 20 values"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_a_character_with_the_byte_of_a_quotation_mark_hides_nothing(encoding):
    document = json.dumps(["\u0122", *([[]] * 10)], ensure_ascii=False).encode(encoding)
    assert json.loads(document)
    assert _excess(document) == "more than 10 lists and mappings"


def test_strings_are_kept_if_there_are_very_many():
    assert _excess(b"[" + b'"," ' * 31 + b"]") == "more than 20 values"
