# SPDX-License-Identifier: Apache-2.0

"""Operators are notified of publications and yanks, as of Glance's own changes."""

import json
import re
from typing import Any

import pytest

from glare_murano import images as form
from tests import packages
from tests.functional.glance import stored
from tests.functional.glance.image_client import ImageClient
from tests.functional.glance.service import Glance

pytestmark = pytest.mark.usefixtures("core_library")


def _payloads(glance: Glance, image_id: str) -> list[dict[str, Any]]:
    """Return what was sent of the updates of an image."""
    lines = re.findall(r"oslo\.messaging\.notification\.image\.update .*?(\{.*)", glance.log())
    sent = [json.loads(line)["payload"] for line in lines]
    return [payload for payload in sent if payload["id"] == image_id]


def test_a_publication_and_a_yank_are_notified_once_they_are_made(
    glance: Glance, images: ImageClient, image_admin: ImageClient, package_name: str
) -> None:
    draft = stored.package(
        packages.package(package_name), images.project, properties={form.PUBLISHED: ""}
    )
    stored.store(glance, [draft])
    lone = stored.package(
        packages.package(f"{package_name}.lone", Require={f"{package_name}.missing": "1"}),
        images.project,
        properties={form.PUBLISHED: ""},
    )
    stored.store(glance, [lone])

    assert images.publications(draft.id, dry_run=True).status_code == 200
    assert images.publications(draft.id, lone.id).status_code == 409
    assert _payloads(glance, draft.id) == []

    assert image_admin.publications(draft.id, visibility="public").status_code == 200
    (published,) = _payloads(glance, draft.id)
    assert (published["name"], published["visibility"]) == (package_name, "public")
    assert published["properties"][form.PUBLISHED]
    # Nothing is left to do.
    assert image_admin.publications(draft.id, visibility="public").status_code == 200
    assert len(_payloads(glance, draft.id)) == 1

    assert images.yank(draft.id, "loses data").status_code == 200
    assert images.yank(draft.id, "").status_code == 200
    yanks = [each["properties"].get(form.YANKED) for each in _payloads(glance, draft.id)]
    assert yanks == [None, "loses data", None]
