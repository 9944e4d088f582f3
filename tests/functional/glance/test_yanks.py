# SPDX-License-Identifier: Apache-2.0

"""Packages in the real Glance that their owners yank."""

from collections.abc import Callable
from typing import Any

import pytest

from glare_murano import images as form
from tests import packages
from tests.functional.client import message
from tests.functional.glance import stored
from tests.functional.glance.image_client import ImageClient
from tests.functional.glance.service import Glance

REASON = "loses data; use 1.1.0"


@pytest.fixture
def release(glance: Glance, images: ImageClient, package_name: str) -> str:
    """The id of a public package of the test's project."""
    data = packages.package(package_name, Require={"io.murano": "*"})
    package = stored.package(data, images.project, "public")
    stored.store(glance, [package])
    return package.id


def _chosen(client: ImageClient, fqn: str, range_: str) -> list[str | None]:
    releases = client.resolve(requirements={fqn: range_}).json()["releases"]
    return [each.get("yanked") for each in releases if each["name"] == fqn]


def test_a_yanked_package_serves_its_exact_range(
    images: ImageClient, release: str, package_name: str
) -> None:
    for _ in range(2):
        yanked = images.yank(release, REASON)
        expected = {"id": release, "name": package_name, "version": "1.0.0", "yanked": REASON}
        assert (yanked.status_code, yanked.json()) == (200, expected)
        assert _chosen(images, package_name, "*") == []
        assert _chosen(images, package_name, "1.0.0") == [REASON]
        found = images.show(release)
        assert form.is_release(found)
        assert found[form.YANKED] == REASON

        assert images.yank(release, "").json() == {**expected, "yanked": ""}
        assert _chosen(images, package_name, "*") == [None]
        assert form.YANKED not in images.show(release)


def test_those_who_may_change_a_package_yank_it(
    images: ImageClient,
    images_of: Callable[..., ImageClient],
    image_admin: ImageClient,
    release: str,
    package_name: str,
) -> None:
    stranger = images_of("stranger").yank(release, REASON)
    assert (stranger.status_code, message(stranger)) == (
        403,
        f"{package_name} 1.0.0 belongs to another project",
    )
    reader = images_of(images.project, "reader").yank(release, REASON)
    assert (reader.status_code, message(reader)) == (
        403,
        f"{package_name} 1.0.0: the policy murano:yank forbids it",
    )
    assert images.yank("00000000-0000-0000-0000-000000000000", REASON).status_code == 404
    assert image_admin.yank(release, REASON).status_code == 200


def test_yanking_the_last_release_that_is_needed_warns(
    glance: Glance, images: ImageClient, release: str, package_name: str
) -> None:
    data = packages.package(f"{package_name}.wiki", Require={package_name: ">=1"})
    stored.store(glance, [stored.package(data, images.project)])

    warning = images.yank(release, REASON).headers["Warning"]

    assert f"{package_name}.wiki 1.0.0 ({package_name} >=1)" in warning
    for reason in ("another reason", ""):
        assert "Warning" not in images.yank(release, reason).headers


@pytest.mark.parametrize("reason", ["x" * 256, "a\nb", "a\u2028b", ["a"], None])
def test_a_reason_is_one_short_line(images: ImageClient, release: str, reason: Any) -> None:
    assert images.yank(release, reason).status_code == 400
    assert images.yank(release, "ä" * 255).status_code == 200


def test_only_an_imported_package_is_yanked(images: ImageClient, package_name: str) -> None:
    empty = images.create(package_name).json()["id"]

    refused = images.yank(empty, REASON)

    assert (refused.status_code, message(refused)) == (
        409,
        f"{package_name} ({empty}) has no archive yet; upload it first",
    )


def test_other_changes_keep_publication_and_yank(image_manager: ImageClient, release: str) -> None:
    assert image_manager.yank(release, REASON).ok

    assert image_manager.set(release, "note", "changed", "add").status_code == 200

    found = image_manager.show(release)
    assert (found[form.YANKED], found[form.PUBLISHED]) == (REASON, stored.PUBLISHED_AT)
