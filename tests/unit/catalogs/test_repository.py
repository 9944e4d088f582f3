# SPDX-License-Identifier: Apache-2.0

"""Errors of requests to a repository."""

import pytest
import webob.exc
from keystoneauth1 import session, token_endpoint

from loader.catalogs.glare import GlareRepository
from loader.murano_api.http_statuses import reported


def test_a_publication_in_a_service_that_does_not_answer_is_reported(waits: list[float]) -> None:
    url = "http://127.0.0.1:9"
    repository = GlareRepository(session.Session(auth=token_endpoint.Token(url, "t")), endpoint=url)

    with pytest.raises(webob.exc.HTTPServiceUnavailable, match="did not answer"), reported():
        repository.publish([], "private")

    assert waits
