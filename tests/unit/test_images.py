# SPDX-License-Identifier: Apache-2.0

"""The image of a package: its id, its properties, and what counts as a release."""

import io
import uuid
from typing import Any

import pytest

from glare_murano import images, wire
from glare_murano.package import Archive, read_contents
from tests import packages

NAME = "org.test.db"
SHA256 = "0" * 64


def image(**values: Any) -> dict[str, Any]:
    data = packages.package(NAME, "1.2.0", Require={"org.test.log": ">=1,<2"})
    with Archive.open(io.BytesIO(data)) as archive:
        properties = images.properties(read_contents(archive), SHA256)
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

    assert uuid.UUID(found).version == 5
    assert found == images.image_id("demo", NAME, "1.0.0")
    others = {
        images.image_id("demo", NAME, "1.0.1"),
        images.image_id("other", NAME, "1.0.0"),
        images.image_id("demo", "org.test", "1.0.0"),
        images.image_id("demo,org", "test.db", "1.0.0"),
    }
    assert len(others - {found}) == 4


def test_every_property_has_the_protected_prefix_and_is_a_string() -> None:
    found = {name: value for name, value in image().items() if name.startswith("murano")}

    assert all(name.startswith(images.PREFIX) for name in found)
    assert all(isinstance(value, str) for value in found.values())
    assert found["murano_type"] == "Library"
    assert found[images.CLASSES] == '["org.test.db.Thing"]'
    assert found[images.SHA256] == SHA256


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
    ],
)
def test_any_other_image_is_not_a_release(values: dict[str, Any]) -> None:
    assert images.is_release(image())
    assert not images.is_release(image(**values))


@pytest.mark.parametrize("value", ["{", "[]", '"text"', "[" * 100_000])
def test_a_malformed_property_is_refused(value: str) -> None:
    with pytest.raises(wire.Malformed):
        images.release(image(**{images.REQUIREMENTS: value}))
