# SPDX-License-Identifier: Apache-2.0

"""Routes of a service: the function for a path and a method, or the methods that there are."""

import pytest
import webob

from glare_murano.service.refusals import RefusedRequest
from glare_murano.service.routing import find_handler

ROUTES = {
    "/things": {
        "POST": lambda _: webob.Response(status=201),
        "GET": lambda _: webob.Response(status=200),
    }
}


@pytest.mark.parametrize(("method", "status"), [("GET", 200), ("POST", 201)])
def test_a_path_has_a_handler_for_each_method(method: str, status: int) -> None:
    request = webob.Request.blank("/things", method=method)

    handler = find_handler(ROUTES, request)

    assert handler is not None
    assert handler(request).status_code == status


def test_another_method_is_refused_with_those_that_the_path_has() -> None:
    with pytest.raises(RefusedRequest, match="use GET, POST") as refused:
        find_handler(ROUTES, webob.Request.blank("/things", method="DELETE"))

    assert (refused.value.status, refused.value.headers) == (405, {"Allow": "GET, POST"})


@pytest.mark.parametrize("path", ["/", "/things/", "/things/1"])
def test_another_path_has_no_handler(path: str) -> None:
    assert find_handler(ROUTES, webob.Request.blank(path)) is None
