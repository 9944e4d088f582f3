# SPDX-License-Identifier: Apache-2.0

"""Operators are notified of publications and yanks, as of Glance's own changes."""

import json
import re
from collections.abc import Callable
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


def _changes(glance: Glance, image_id: str) -> list[tuple[str, str]]:
    """Return what was sent of the changes of a package: the verb, and the user."""
    lines = re.findall(r"oslo\.messaging\.notification\.package\.(\w+) .*?(\{.*)", glance.log())
    sent = [(verb, json.loads(line)["payload"]) for verb, line in lines]
    return [
        (verb, payload["initiator"]["user_id"])
        for verb, payload in sent
        if image_id in (payload.get("id"), *payload.get("packages", ()))
    ]


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


def test_changes_and_refusals_are_notified_with_the_user(
    glance: Glance, images_of: Callable[..., ImageClient], package_name: str
) -> None:
    project = images_of("audited").project
    member, reader = (
        ImageClient(glance.url, f"{roles[0]}:{project}:{','.join(roles)}")
        for roles in (["member", "reader"], ["reader"])
    )
    draft = stored.package(packages.package(package_name), project, properties={form.PUBLISHED: ""})
    stored.store(glance, [draft])

    assert reader.publications(draft.id).status_code == 403
    assert member.publications(draft.id).status_code == 200
    # Nothing is sent, since the package is not public.
    assert member.set(draft.id, "visibility", "shared").status_code == 200
    assert reader.yank(draft.id, "loses data").status_code == 403
    assert member.yank(draft.id, "loses data").status_code == 200
    # Nothing has changed.
    assert member.yank(draft.id, "loses data").status_code == 200
    assert member.yank(draft.id, "").status_code == 200
    assert reader.delete(draft.id).status_code == 403
    assert member.delete(draft.id).status_code == 204
    assert _changes(glance, draft.id) == [
        ("refuse", "reader"),
        ("activate", "member"),
        ("refuse", "reader"),
        ("yank", "member"),
        ("unyank", "member"),
        ("refuse", "reader"),
        ("delete", "member"),
    ]


def test_a_deactivation_is_notified_and_other_methods_get_glances_answer(
    glance: Glance, images: ImageClient, image_admin: ImageClient, package_name: str
) -> None:
    release = stored.package(packages.package(package_name), images.project)
    stored.store(glance, [release])
    path = f"/v2/images/{release.id}"
    patch = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
    change = [{"op": "replace", "path": "/image_id", "value": "1"}]

    assert image_admin.request("POST", f"{path}/actions/deactivate").status_code == 204
    assert image_admin.request("POST", f"{path}/actions/reactivate").status_code == 204
    assert image_admin.request("POST", path).status_code == 405
    for method in ("PATCH", "DELETE"):
        answer = image_admin.request(method, f"{path}/actions/deactivate", json=[], headers=patch)
        assert answer.status_code == 405
    assert image_admin.request("PUT", path, json=change, headers=patch).status_code == 405
    assert image_admin.request("PATCH", path, json=change).status_code == 415
    assert image_admin.request("PATCH", path, json=change, headers=patch).status_code == 403
    verbs = [verb for verb, _ in _changes(glance, release.id)]
    assert verbs == ["deactivate", "reactivate", "refuse"]
