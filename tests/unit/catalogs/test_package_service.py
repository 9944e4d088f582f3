# SPDX-License-Identifier: Apache-2.0

"""The service that keeps the packages of a cloud: named, or found."""

from typing import Any

import pytest
from keystoneauth1 import noauth, session
from openstack.config import cloud_region

from loader import errors
from loader.catalogs import package_service
from loader.catalogs.package_service import GLANCE, GLARE, PackageService, UnknownService
from tests import web

GLARE_URL, GLANCE_URL = "http://127.0.0.1:9/glare", "http://127.0.0.1:9/glance"


class _Catalogue(noauth.NoAuth):
    """Credentials, and the endpoints in Keystone's catalogue."""

    def __init__(self, **endpoints: str) -> None:
        super().__init__()
        self._endpoints = endpoints

    def get_endpoint(self, session: Any, **place: Any) -> str | None:
        return self._endpoints.get(place["service_type"])


def _cloud(endpoints: dict[str, str], **config: str) -> cloud_region.CloudRegion:
    made = session.Session(_Catalogue(**endpoints))
    return cloud_region.CloudRegion(name="test", session=made, config={**config, "auth": {}})


@pytest.mark.parametrize(
    ("endpoints", "config", "expected"),
    [
        ({"artifact": GLARE_URL}, {}, GLARE),
        ({"image": GLANCE_URL}, {}, GLANCE),
        # The error about the missing endpoint names Glare.
        ({}, {}, GLARE),
        ({}, {"image_endpoint_override": GLANCE_URL}, GLANCE),
        ({"image": GLANCE_URL}, {"artifact_endpoint_override": GLARE_URL}, GLARE),
        # Credentials without Keystone have one URL for all services.
        ({"image": GLARE_URL, "artifact": GLARE_URL}, {}, GLARE),
        ({"image": GLANCE_URL, "artifact": GLARE_URL}, {"murano_catalog": "glance"}, GLANCE),
        ({"image": GLANCE_URL}, {"murano_catalog": "glare"}, GLARE),
    ],
)
def test_the_service_of_a_cloud_is_found(
    endpoints: dict[str, str], config: dict[str, str], expected: PackageService
) -> None:
    assert package_service.of_cloud(_cloud(endpoints, **config)) is expected


@pytest.mark.parametrize(
    ("status", "body"),
    [(300, b'{"versions": []}'), (404, b"{}"), (200, b"[]"), (401, b"{}")],
)
def test_where_both_are_glare_is_used_if_glance_has_no_packages(status: int, body: bytes) -> None:
    with web.serving(body, status, "application/json") as url:
        cloud = _cloud({"image": url, "artifact": GLARE_URL})
        assert package_service.of_cloud(cloud) is GLARE


def test_where_both_have_packages_the_user_chooses() -> None:
    with web.serving(b'{"versions": [{"id": "v1"}]}', content_type="application/json") as url:
        cloud = _cloud({"image": url, "artifact": GLARE_URL})
        with pytest.raises(UnknownService, match=r"^the cloud test has .* --to-catalog$"):
            package_service.of_cloud(cloud)
        assert package_service.of_cloud(cloud, "glance") is GLANCE


def test_a_service_that_is_not_known_is_refused() -> None:
    with pytest.raises(UnknownService, match="'swift': expected glare or glance"):
        package_service.of_cloud(_cloud({}, murano_catalog="swift"))
    assert issubclass(UnknownService, errors.LoaderError)
