# SPDX-License-Identifier: Apache-2.0

"""The image of a package: its id, its properties, and what counts as a release."""

import io
import json
import uuid
from typing import Any

import pytest

from glare_murano import images, wire
from glare_murano.package import Archive, read_contents
from glare_murano.stored_contents import StoredContents
from tests import packages

NAME = "org.test.db"
SHA256 = "0" * 64


def image(**values: Any) -> dict[str, Any]:
    data = packages.package(NAME, "1.2.0", Require={"org.test.log": ">=1,<2"})
    with Archive.open(io.BytesIO(data)) as archive:
        properties = images.properties(StoredContents.of(read_contents(archive)), SHA256)
    found = {
        "id": images.image_id("demo", NAME, "1.2.0"),
        "name": NAME,
        "owner": "demo",
        "status": "active",
        "visibility": "private",
        "container_format": "murano",
        "size": len(data),
        images.PUBLISHED: "2026-01-01T00:00:00Z",
        **properties,
        **values,
    }
    return {name: value for name, value in found.items() if value is not None}


def test_the_id_follows_from_project_name_and_version() -> None:
    found = images.image_id("demo", NAME, "1.0.0")

    assert (uuid.UUID(found).version, uuid.UUID(found).variant) == (8, uuid.RFC_4122)
    assert found == images.image_id("demo", NAME, "1.0.0")
    others = {
        images.image_id("demo", NAME, "1.0.1"),
        images.image_id("other", NAME, "1.0.0"),
        images.image_id("demo", "org.test", "1.0.0"),
        images.image_id("demo,org", "test.db", "1.0.0"),
    }
    assert len(others - {found}) == 4


def test_the_ids_of_packages_do_not_change() -> None:
    found = images.image_id("demo", NAME, "1.0.0")

    assert found == "229df3d2-f3e0-80da-986e-d00577e36a20"


@pytest.mark.parametrize("spelling", ["{}", "{{{}}}", "urn:uuid:{}", "{}\n", " {}"])
def test_the_id_of_a_package_is_known_in_any_spelling(spelling: str) -> None:
    id_ = images.image_id("demo", NAME, "1.0.0")

    for text in (id_, id_.upper(), id_.replace("-", "")):
        assert images.is_package_id(spelling.format(text))


@pytest.mark.parametrize("text", [str(uuid.UUID(int=0)), str(uuid.NAMESPACE_DNS), "8", "a text"])
def test_any_other_id_is_not_that_of_a_package(text: str) -> None:
    assert not images.is_package_id(text)


def test_every_property_has_the_protected_prefix_and_is_a_string() -> None:
    found = {name: value for name, value in image().items() if name.startswith("murano")}

    assert all(name.startswith(images.PREFIX) for name in found)
    assert all(isinstance(value, str) for value in found.values())
    assert found["murano_type"] == "Library"
    assert found[images.CLASSES] == '["org.test.db.Thing"]'
    assert found[images.SHA256] == SHA256


def test_the_owner_sets_another_property_for_a_field_that_may_change() -> None:
    assert images.property_names("categories") == ["murano_categories", "package_categories"]
    assert images.property_names("type") == ["murano_type"]


def test_lists_and_mappings_are_read_from_their_properties() -> None:
    values = {"keywords": ["db"], "tags": ["SQL"], "supplier": {"Name": "x"}, "author": "A"}
    image = {
        images.property_name(name): value if isinstance(value, str) else json.dumps(value)
        for name, value in values.items()
    }

    assert images.fields_of(image, values) == values


def test_a_release_is_read_from_its_image() -> None:
    found = images.release(image(murano_yanked="broken"))

    assert (found.fqn, str(found.version), found.owner) == (NAME, "1.2.0", "demo")
    assert found.requirements["org.test.log"].text == ">=1,<2"
    assert "io.murano" in found.requirements
    assert found.classes == {f"{NAME}.Thing"}
    assert (found.digest, found.yanked) == (SHA256, "broken")


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"status": "deactivated"}, id="deactivated"),
        pytest.param({"container_format": "bare"}, id="another format"),
        pytest.param({images.PUBLISHED: None}, id="not published"),
        pytest.param({images.VERSION: None}, id="not imported"),
        pytest.param({"name": "org.test.other"}, id="renamed"),
        pytest.param({"owner": "other"}, id="another owner"),
        pytest.param({"id": str(uuid.UUID(int=1))}, id="another id"),
        *(
            pytest.param(
                {"owner": None, "id": images.image_id(project, NAME, "1.2.0")},
                id=f"no owner, with the id of {project!r}",
            )
            for project in ("", "None")
        ),
    ],
)
def test_any_other_image_is_not_a_release(values: dict[str, Any]) -> None:
    assert images.is_release(image())
    assert not images.is_release(image(**values))


@pytest.mark.parametrize("value", ["{", "[]", '"text"', "[" * 100_000])
def test_a_malformed_property_is_refused(value: str) -> None:
    with pytest.raises(wire.Malformed):
        images.release(image(**{images.REQUIREMENTS: value}))
