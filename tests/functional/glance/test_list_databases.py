# SPDX-License-Identifier: Apache-2.0

"""Lists of packages in Glance over the databases that it is operated with."""

from collections.abc import Iterator

import pytest

from tests.functional import databases, exact_lists
from tests.functional.glance import long_texts, service, stored
from tests.functional.glance.image_client import ImageClient

pytestmark = pytest.mark.services


@pytest.fixture(scope="module", params=["mariadb", "postgresql"])
def glance(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[service.Glance]:
    database = getattr(databases, request.param)
    with service.running(tmp_path_factory.mktemp(request.param), database) as running:
        yield running


def test_lists_compare_and_sort_exactly(glance: service.Glance) -> None:
    prefix, project = "org.exact", "exact"
    archives = [archive for _, _, archive in exact_lists.archives(prefix)]
    stored.store(glance, [stored.package(archive, project) for archive in archives])

    exact_lists.check(ImageClient(glance.url, f"user:{project}:member,reader").read, prefix)
    stranger = ImageClient(glance.url, f"user:{project.upper()}:member,reader")
    exact_lists.check_owner(stranger.read, prefix)


def test_packages_with_long_texts_are_found(glance: service.Glance) -> None:
    prefix, project = "org.long", "long"
    long_texts.store(glance, prefix, project)

    long_texts.check(ImageClient(glance.url, f"user:{project}:member,reader"), prefix)
