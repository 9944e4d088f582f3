# SPDX-License-Identifier: Apache-2.0

"""The real Glance answers, and takes images of the container format of packages."""

from glare_murano import images as form
from tests.functional.glance.image_client import ImageClient


def test_an_image_of_a_package_can_be_created(images: ImageClient) -> None:
    created = images.create("org.example.db")

    assert created.status_code == 201, created.text
    found = images.show(created.json()["id"])
    assert (found["container_format"], found["status"]) == (form.CONTAINER_FORMAT, "queued")
    assert found["owner"] == images.project
    assert found["os_hidden"] is True


def test_a_token_that_names_nobody_is_refused(images: ImageClient) -> None:
    nobody = ImageClient(images.url, "nobody", "none")

    assert nobody.request("GET", "/v2/images").status_code == 401
