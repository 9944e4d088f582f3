# SPDX-License-Identifier: Apache-2.0

"""Bodies of requests to murano-api that the server of the functional tests changes first."""

import io

import pytest
import webob
from webob import exc

from loader.murano_api.request_bodies import _Deserializer


def test_a_body_without_a_length_is_refused() -> None:
    """Eventlet's server passes such a body on, however long it is."""
    request = webob.Request.blank("/v1/catalog/packages", method="POST")
    request.environ.update(
        {
            "CONTENT_TYPE": "application/json",
            "HTTP_TRANSFER_ENCODING": "chunked",
            "wsgi.input": io.BytesIO(b"{}"),
            "wsgi.input_terminated": True,
        }
    )
    with pytest.raises(exc.HTTPLengthRequired, match="Content-Length"):
        _Deserializer().deserialize_body(request, "upload")
