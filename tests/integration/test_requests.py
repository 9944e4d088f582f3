# SPDX-License-Identifier: Apache-2.0

"""What a deployment requests from the real Keystone and the real Glare, seen by a proxy."""

import pathlib
import re
from collections.abc import Iterator

import pytest

from benchmarks import deploying
from tests.functional import keystone, proxy

# Seconds for a test with its fixtures: the first one starts the services.
pytestmark = [pytest.mark.services, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("requests")


@pytest.fixture(scope="module")
def published(folder: pathlib.Path) -> Iterator[tuple[keystone.Keystone, proxy.Proxy]]:
    with deploying.published(folder) as running:
        yield running


def _requests(watching: proxy.Proxy, engine: deploying.Engine) -> list[str]:
    found = deploying.requests_of(watching, engine)
    return [re.sub(r" http://127.0.0.1:\d+", " ", request) for request in found]


def test_a_deployment_with_a_warm_cache_sends_two_requests(
    folder: pathlib.Path, published: tuple[keystone.Keystone, proxy.Proxy]
) -> None:
    """Glare has validated the token before."""
    identity, watching = published
    with deploying.engine(
        folder, identity, environment=deploying.watched(watching), cells=True
    ) as engine:
        found = _requests(watching, engine)

    assert found == ["GET /v3/auth/tokens", "POST /murano/v1/dependencies"]


def test_a_token_that_is_no_longer_valid_is_renewed_by_the_trust(
    folder: pathlib.Path, published: tuple[keystone.Keystone, proxy.Proxy]
) -> None:
    identity, watching = published
    with deploying.engine(
        folder, identity, environment=deploying.watched(watching), cells=True
    ) as engine:
        engine.run("expire")
        found = _requests(watching, engine)

    assert found == [
        "GET /v3/auth/tokens",
        "POST /v3/auth/tokens",
        "POST /murano/v1/dependencies",
        # Glare validates the new token.
        "GET /v3/auth/tokens",
    ]
