# SPDX-License-Identifier: Apache-2.0

"""The real Glance with its cache of images: archives that it has kept."""

import pathlib
from collections.abc import Callable, Iterator

import pytest

from glare_murano import images as form
from tests import packages
from tests.functional.glance import service, stored
from tests.functional.glance.image_client import ImageClient


def _with_cache(etc: pathlib.Path) -> None:
    conf = etc / "glance-api.conf"
    text = conf.read_text()
    assert "flavor = keystone\n" in text
    conf.write_text(text.replace("flavor = keystone\n", "flavor = keystone+cachemanagement\n"))


@pytest.fixture(scope="module")
def glance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[service.Glance]:
    folder = tmp_path_factory.mktemp("cached")
    options = f"image_cache_dir = {folder}/cache"
    with stored.running(folder, options=options, change=_with_cache) as running:
        yield running


def test_what_is_hidden_is_not_sent_from_the_cache(
    glance: service.Glance,
    images: ImageClient,
    images_of: Callable[..., ImageClient],
    package_name: str,
) -> None:
    data = packages.package(package_name, Require={"io.murano": "*"})
    image_id = images.publish(package_name, "1.0.0", data)["id"]
    path = f"/v2/images/{image_id}"
    for _ in range(2):
        assert images.request("GET", f"{path}/file").content == data
    assert (glance.folder / "cache" / image_id).read_bytes() == data
    # Not from the store any more.
    (glance.folder / "images" / image_id).write_bytes(b"-" * len(data))
    assert images.request("GET", f"{path}/file").content == data

    assert images_of("stranger").request("GET", f"{path}/file").status_code == 404
    assert images.request("POST", f"{path}/actions/deactivate").status_code == 204
    assert images.request("GET", f"{path}/file").status_code == 403
    assert images.delete(image_id).status_code == 204
    assert images.request("GET", f"{path}/file").status_code == 404
    assert images.create(package_name).status_code == 409


def test_a_draft_is_not_kept_in_the_cache(
    glance: service.Glance, images: ImageClient, package_name: str
) -> None:
    first, second = (
        packages.package(package_name, Require={"io.murano": "*"}, Author=name) for name in "AB"
    )
    cached = glance.folder / "cache" / images.id_of(package_name, "1.0.0")
    path = f"/v2/images/{cached.name}/file"
    images.publish_draft(package_name, "1.0.0", first)
    images.wait_idle(cached.name)
    assert images.request("GET", path).content == first
    assert not cached.exists()

    assert images.delete(cached.name).status_code == 204
    images.publish(package_name, "1.0.0", second)
    assert images.request("GET", path).content == second
    assert cached.read_bytes() == second


def test_packages_are_checked_as_without_a_cache(glance: service.Glance, package_name: str) -> None:
    rows = [
        stored.package(packages.package(name, Require={"io.murano": "*", **require}), "cachers")
        for name, require in (
            (package_name, {}),
            (f"{package_name}.requiring", {package_name: "1"}),
        )
    ]
    stored.store(glance, rows)
    owner = ImageClient(glance.url, "user:cachers:member,reader")
    draft = owner.create(f"{package_name}.draft").json()["id"]

    assert owner.delete(rows[0].id).status_code == 409
    assert owner.put(draft, b"anything", "file").status_code == 403
    assert owner.imported(draft, b"anything")[form.REFUSAL].endswith("[archive-format]")
