# SPDX-License-Identifier: Apache-2.0

"""Packages that are imported into the real Glance: what is stored, refused and tried again."""

import hashlib
import json

from glare_murano import images as form
from tests import packages
from tests.functional.glance import service
from tests.functional.glance.image_client import ImageClient

NAME = "org.example.db"


def test_a_package_is_read_and_stored(images: ImageClient, glance: service.Glance) -> None:
    data = packages.package(NAME, "1.2.0", Require={"org.example.log": ">=1,<2"}, Tags=["SQL"])

    found = images.publish_draft(NAME, "1.2.0", data)

    assert found["status"] == "active"
    assert found["murano_version"] == "1.2.0"
    assert found["murano_type"] == "Library"
    assert found["murano_format"] == "MuranoPL/1.4.0"
    assert found["murano_display_name"] == "A Thing"
    assert json.loads(found["murano_classes"]) == [f"{NAME}.Thing"]
    assert json.loads(found["murano_requirements"])["org.example.log"] == ">=1,<2"
    assert json.loads(found["murano_tags"]) == ["SQL"]
    assert found["murano_sha256"] == hashlib.sha256(data).hexdigest()
    assert images.request("GET", f"/v2/images/{found['id']}/file").content == data
    assert list(glance.staging.iterdir()) == []
    assert form.PUBLISHED not in found


def test_a_refused_import_names_the_reason_and_can_be_tried_again(
    images: ImageClient, glance: service.Glance
) -> None:
    data = packages.package(NAME, Version="one")

    refused = images.publish_draft(NAME, "1.0.0", data)

    reason = "Version, line 9: 'one' is not a valid version"
    assert refused["status"] == "queued"
    assert refused[form.REFUSAL].startswith("Version")
    assert "[manifest-version]" in refused[form.REFUSAL], reason
    assert list(glance.staging.iterdir()) == []
    tasks = images.request("GET", f"/v2/images/{refused['id']}/tasks").json()["tasks"]
    assert [task["message"] for task in tasks] == [refused[form.REFUSAL]]

    found = images.imported(refused["id"], packages.package(NAME))
    assert found["status"] == "active"
    assert form.REFUSAL not in found
    assert found[form.VERSION] == "1.0.0"
