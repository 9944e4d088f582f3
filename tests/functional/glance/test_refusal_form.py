# SPDX-License-Identifier: Apache-2.0

"""Refusals by this project of requests to Glance's own API: one form, which clients can read."""

from collections.abc import Callable

import glanceclient.exc
import pytest
import requests
from keystoneauth1 import exceptions

from glare_murano import images as form
from tests import packages
from tests.functional.glance import service, stored
from tests.functional.glance.image_client import ImageClient

NAME = "org.example.form"


@pytest.fixture
def draft(images: ImageClient) -> str:
    """A package without data."""
    return str(images.create(NAME, "1.0.0").json()["id"])


def _create_with_wrong_id(images: ImageClient, draft: str) -> requests.Response:
    return images.create(NAME, "2.0.0", id=images.id_of(NAME, "3.0.0"))


def _rename(images: ImageClient, draft: str) -> requests.Response:
    return images.set(draft, "name", "org.example.other")


def _change_format(images: ImageClient, draft: str) -> requests.Response:
    return images.set(draft, "container_format", "bare")


def _change_id(images: ImageClient, draft: str) -> requests.Response:
    return images.set(draft, "image_id", images.id_of(NAME, "3.0.0"), op="add")


def _stage_meanwhile(images: ImageClient, draft: str) -> requests.Response:
    return images.put(draft, packages.package(NAME))


@pytest.mark.parametrize(
    ("refuse", "status", "reason"),
    [
        # Below Glance's API.
        (_create_with_wrong_id, 403, "create the image with this id"),
        (_rename, 403, "the name of a package cannot be changed"),
        (_change_format, 403, "only a new image can have the container format murano"),
        # In the filter.
        (_change_id, 403, "the id of an image cannot be changed"),
        (_stage_meanwhile, 409, "another request is staging or importing the package"),
    ],
)
def test_clients_read_each_refusal(
    images: ImageClient,
    glance: service.Glance,
    draft: str,
    refuse: Callable[[ImageClient, str], requests.Response],
    status: int,
    reason: str,
) -> None:
    stored.write_property(glance, draft, "os_glance_murano_reservation", "of another request")
    # As python-glanceclient sends it.
    images._http.headers["Accept"] = "*/*"

    refused = refuse(images, draft)

    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (status, status)
    assert reason in error["message"]
    of_glanceclient = glanceclient.exc.from_response(refused, refused.content)
    assert of_glanceclient.details == error["message"]
    of_keystoneauth = exceptions.from_response(refused, "PUT", refused.url)
    assert error["message"] in of_keystoneauth.message
    assert images.show(draft)[form.OWN_VERSION] == "1.0.0"
