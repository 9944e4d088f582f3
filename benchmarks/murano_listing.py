# SPDX-License-Identifier: Apache-2.0

"""The list of packages in murano-api, by the filter of this project over Glare."""

from collections.abc import Iterator

import requests
from muranoclient.v1.client import Client as MuranoClient

from benchmarks import catalogue, server
from benchmarks.measure import Figure, ratio, scratch, wall
from glare_murano import fields
from tests.functional import murano_api
from tests.functional.client import ARTIFACTS

_PACKAGES = 1_000
# A project sees about 70 of 100 packages.
_STORED = 1_450 * len(catalogue.VERSIONS)
# The largest page of murano-api, by default.
_PAGE = 100


def murano_listing() -> Iterator[Figure]:
    """Compare a list of one row for each package with Glare's own, in pages of one size."""
    with server.running(fields.TYPE_NAME) as glare:
        catalogue.load(glare.database, catalogue.artifacts(_STORED))
        token = f"user:{catalogue.owner(1)}:member"
        with murano_api.running(scratch(), "--glare", glare.url) as url:
            murano = MuranoClient(url, token=token, timeout=600)

            def list_in_murano() -> None:
                assert sum(1 for _ in murano.packages.filter(limit=_PAGE)) >= _PACKAGES

            value = ratio(
                list_in_murano, lambda: _list_in_glare(glare.url, token), rounds=3, clock=wall
            )
    yield Figure(f"murano-api's list of {_PACKAGES:,} packages / Glare's", value, "times", 0.2)


def _list_in_glare(url: str, token: str) -> None:
    path = f"{ARTIFACTS}?status=active&yanked=&version=latest&sort=name:asc&limit={_PAGE}"
    count = 0
    with requests.Session() as session:
        session.headers["X-Auth-Token"] = token
        while path:
            answer = session.get(f"{url}{path}", timeout=600).json()
            count += len(answer["artifacts"])
            path = answer.get("next")
    assert count >= _PACKAGES


BENCHMARKS = (murano_listing,)
