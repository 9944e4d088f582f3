# SPDX-License-Identifier: Apache-2.0

"""What earlier versions of the artifact type stored, read by this one.

``data/version-1.0`` holds the rows of Glare's tables (SQLite) and the blobs that
version 1.0 stored: a public package, a private one with everything in it, a
draft with an archive and one without. It is never made anew: a change of the
fields that cannot read it must bring a conversion.
"""

import hashlib
import json
import pathlib
import shutil

import pytest
from glare.db.sqlalchemy import api as database

from glare_murano.glare.artifact import MuranoPackageArtifact
from tests.functional.client import Client

_STORED = pathlib.Path(__file__).parent / "data" / "version-1.0"
_PROJECT = "first"


@pytest.fixture(scope="module")
def stored(glare_url: str, state_dir: pathlib.Path) -> None:
    """Artifacts of version 1.0, in the server that runs."""
    for blob in (_STORED / "blobs").iterdir():
        shutil.copy(blob, state_dir / "blobs")
    rows = (_STORED / "rows.sql").read_text().replace("{state}", str(state_dir))
    connection = database.get_engine().raw_connection()
    try:
        connection.executescript(rows)
        connection.commit()
    finally:
        connection.close()


@pytest.fixture
def reader(stored: None, glare_url: str) -> Client:
    return Client(glare_url, f"user:{_PROJECT}:member")


def test_artifacts_of_the_first_version_say_the_same(reader: Client) -> None:
    (wiki,) = reader.request("GET", "", params={"name": "org.first.wiki"}).json()["artifacts"]

    expected = {
        "version": "1.2.0-rc.1+build.5",
        "status": "active",
        "visibility": "private",
        "type": "Application",
        "display_name": "A Wiki",
        "description": "Keeps pages.",
        "author": "Alice",
        "supplier": {"Name": "Example"},
        "keywords": ["a", "wiki", "pages"],
        "categories": [],
        "format": "MuranoPL/1.4.0",
        "class_definitions": ["org.first.wiki.Thing"],
        "inherits": {"org.first.core.Thing": "org.first.wiki.Thing"},
        "requirements": {"org.first.core": ">=0.1,<1", "io.murano": "0", "org.first.wiki": "1"},
        "supplier_logo": None,
        "yanked": "",
    }
    assert {field: wiki[field] for field in expected} == expected
    assert sorted(wiki["tags"]) == ["pages", "wiki"]
    for blob in ("archive", "logo", "ui_definition"):
        data = reader.request("GET", f"/{wiki['id']}/{blob}").content
        assert hashlib.sha256(data).hexdigest() == wiki[blob]["sha256"]


def test_artifacts_of_the_first_version_are_found(reader: Client) -> None:
    wiki = [("org.first.wiki", "1.2.0-rc.1+build.5")]

    assert reader.names(class_definitions="org.first.wiki.Thing") == wiki
    assert reader.names(inherits="org.first.core.Thing") == wiki
    assert reader.names(name="org.first.wiki", version="lt:1.2.0") == wiki
    assert reader.names(author="Alice") == wiki


def test_artifacts_of_the_first_version_are_planned_with(reader: Client) -> None:
    answer = reader.resolve(requirements={"org.first.wiki": "*"}).json()

    found = [(release["name"], release["version"]) for release in answer["releases"]]
    assert ("org.first.core", "0.1.0") in found
    assert ("org.first.wiki", "1.2.0-rc.1+build.5") in found


def test_drafts_of_the_first_version_go_on(reader: Client) -> None:
    drafts = reader.request("GET", "", params={"status": "drafted"}).json()["artifacts"]
    ids = {artifact["name"]: artifact["id"] for artifact in drafts}

    answer = reader.set(ids["org.first.draft"], "status", "active")
    assert answer.status_code == 200, answer.text
    answer = reader.delete(ids["org.first.empty"])
    assert answer.status_code == 204, answer.text


def test_a_change_of_the_fields_takes_a_new_version() -> None:
    """Where this fails, raise VERSION, and describe the conversion in "Upgrades"."""
    declared = {
        name: {key: value for key, value in schema.items() if key != "description"}
        for name, schema in MuranoPackageArtifact.gen_schemas()["properties"].items()
    }
    text = json.dumps(declared, sort_keys=True, default=str)

    digest = hashlib.sha256(text.encode()).hexdigest()[:16]

    assert (MuranoPackageArtifact.VERSION, digest) == ("1.3", "8319f3bf2204be6f")
