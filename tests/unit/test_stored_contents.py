# SPDX-License-Identifier: Apache-2.0

"""What a service stores of a package, sent by a child process that nobody trusts."""

import base64
import copy
import io
import json
from typing import Any

import pytest

from glare_murano import fields, stored_contents
from glare_murano.package import Archive, InvalidManifest, read_contents
from glare_murano.package.archive_process import MAX_REPORTED
from glare_murano.stored_contents import StoredContents
from tests import packages

NAME = "org.example.app"
PNG = b"\x89PNG\r\n\x1a\n..."
# How a manifest refuses a value that a mutation below writes as well.
TOO_LONG = "x" * 5000


def _stored(**keys: Any) -> StoredContents:
    manifest = packages.manifest(
        NAME,
        "1.2.0-rc.1",
        Tags=["SQL"],
        Require={"org.db": ">=1,<2"},
        Supplier={"Name": "Somebody"},
        **keys,
    )
    files = {**packages.files(manifest), "logo.png": PNG, "UI/ui.yaml": packages.FORM}
    with Archive.open(io.BytesIO(packages.zipped(files))) as archive:
        return StoredContents.of(read_contents(archive))


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(_stored(Unknown=1).to_json()))
    return found


def test_contents_cross_as_json(document: dict[str, Any]) -> None:
    stored = _stored(Unknown=1)

    assert stored_contents.from_json(document) == stored
    assert (stored.fqn, str(stored.version)) == (NAME, "1.2.0-rc.1")
    assert stored.values["requirements"]["org.db"] == ">=1,<2"
    assert stored.blobs == {"logo": PNG, "ui_definition": packages.FORM}
    assert stored.class_names == [f"{NAME}.Thing"]
    assert [problem.where for problem in stored.warnings] == ["'Unknown'"]


def test_what_no_service_can_store_is_refused() -> None:
    with pytest.raises(InvalidManifest, match=r"author: 256 characters.*\[manifest-limit\]"):
        _stored(Author="x" * 256)


def test_all_lists_and_mappings_together_are_limited() -> None:
    values = dict(_stored().values)
    del values["keywords"]
    others = sum(len(value) for value in values.values() if not isinstance(value, str))
    keywords = [f"a{number}" for number in range(fields.MAX_ELEMENTS - others)]

    assert fields.find_excess({**values, "keywords": keywords}) == []
    (problem,) = fields.find_excess({**values, "keywords": [*keywords, "one more"]})
    assert problem.where == "keywords"
    assert "of the package; at most 1024 are allowed; shorten this" in problem.message


def test_all_fields_together_are_limited() -> None:
    """Each string alone is short enough. Glance stores letters outside ASCII as escapes."""
    values = dict(_stored().values)
    del values["supplier"]
    others = sum(len(fields.encode(value)) for value in values.values())
    supplier = {f"key{number}": "\xe9" * 2400 for number in range(4)}
    rest = fields.MAX_TOTAL_SIZE - others - len(fields.encode({**supplier, "rest": ""}))

    assert fields.find_excess({**values, "supplier": {**supplier, "rest": "x" * rest}}) == []
    too_large = {**values, "supplier": {**supplier, "rest": "x" * (rest + 1)}}
    (problem,) = fields.find_excess(too_large)
    assert str(problem) == (
        f"supplier: {fields.MAX_TOTAL_SIZE + 1 - others} bytes in JSON, and 61441 with all other "
        f"fields of the package; at most 61440 are allowed; shorten this field first "
        f"[manifest-limit]"
    )
    assert fields.find_excess_of_totals(too_large, too_large) == []


def test_a_package_may_have_each_allowed_requirement(document: dict[str, Any]) -> None:
    """It has two more, which no manifest names: the core library and itself."""
    changed = copy.deepcopy(document)
    more = {f"a.b{number}": "1" for number in range(256)}
    changed["values"]["requirements"] = {NAME: "1", "io.murano": "0", **more}

    assert len(stored_contents.from_json(changed).values["requirements"]) == 258


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("fqn", "../x"),
        ("fqn", None),
        ("version", "one"),
        ("version", 1),
        ("values", []),
        ("values.author", None),
        ("values.author", ["x"]),
        ("values.author", TOO_LONG),
        ("values.description", "\0"),
        ("values.tags", "SQL"),
        ("values.tags", ["a,b"]),
        ("values.tags", [1]),
        ("values.keywords", ["x"] * 5000),
        ("values.type", "Plugin"),
        ("values.format", "MuranoPL/x"),
        ("values.class_definitions", ["no name"]),
        ("values.class_definitions", {"a.B": "x"}),
        ("values.inherits", {"a.B": ["a.C"]}),
        ("values.inherits", {"": f"{NAME}.Thing"}),
        ("values.inherits", {"no name": f"{NAME}.Thing"}),
        ("values.inherits", {"a.B": ""}),
        ("values.inherits", {"a.B": f"{NAME}.Thing,a.C"}),
        ("values.class_definitions", [f"{NAME}.Thing"] * 2),
        ("values.keywords", ["x", "x"]),
        ("values.supplier", {"Name": 1}),
        ("values.requirements", {"a b": "1"}),
        ("values.requirements", {"a.b": ">>1"}),
        ("values.requirements", {f"a.b{number}": "1" for number in range(259)}),
        ("values.requirements", ["a.b"]),
        ("values.requirements", {"io.murano": "0"}),
        ("values.requirements", {NAME: "1"}),
        ("values.yanked", "x"),
        ("values.other", "x"),
        ("blobs", None),
        ("blobs.logo", "no base64"),
        ("blobs.logo", base64.b64encode(b"no image").decode()),
        ("blobs.logo", base64.b64encode(PNG + bytes(500 * 1024)).decode()),
        ("blobs.logo", None),
        ("blobs.archive", base64.b64encode(PNG).decode()),
        ("blobs.ui_definition", base64.b64encode(bytes(1024**2 + 1)).decode()),
        ("warnings", None),
        ("warnings", [["x", "", "", 0]]),
        ("warnings", [["form-field", "", "", 0]] * (MAX_REPORTED + 1)),
    ],
)
def test_what_no_package_could_have_is_refused(
    document: dict[str, Any], place: str, value: object
) -> None:
    forged = copy.deepcopy(document)
    *parents, last = place.split(".")
    part = forged
    for parent in parents:
        part = part[parent]
    part[last] = value

    with pytest.raises(ValueError):  # noqa: PT011 - of several kinds
        stored_contents.from_json(forged)


@pytest.mark.parametrize("part", ["fqn", "values", "blobs", "warnings"])
def test_what_lacks_a_part_is_refused(document: dict[str, Any], part: str) -> None:
    with pytest.raises(ValueError, match="not that of a package"):
        stored_contents.from_json({key: document[key] for key in document.keys() - {part}})


@pytest.mark.parametrize("field", ["author", "tags", "requirements"])
def test_what_lacks_a_field_is_refused(document: dict[str, Any], field: str) -> None:
    forged = copy.deepcopy(document)
    del forged["values"][field]

    with pytest.raises(ValueError, match="a field is missing"):
        stored_contents.from_json(forged)


@pytest.mark.parametrize("content", [None, [], "x", 1, {}])
def test_what_is_no_document_is_refused(content: object) -> None:
    with pytest.raises(ValueError, match="not that of a package"):
        stored_contents.from_json(content)
