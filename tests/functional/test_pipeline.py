# SPDX-License-Identifier: Apache-2.0

"""Glare with a pipeline other than that of the installation guide."""

import pathlib
from typing import Any

import pytest
import webob
from glare.common import config

from glare_murano.glare import server
from tests import packages
from tests.functional.client import ARCHIVES, ARTIFACTS, DEPENDENCIES, SUBCLASSES, Client

# The pipeline of the guide, with other authentication, and pipelines with its mistakes.
COMPLETE = "faultwrapper murano-validation versionnegotiation\n    trustedauth murano "
MISTAKES = {
    "no filter of ours": "faultwrapper proxy versionnegotiation trustedauth ",
    "no validation": "faultwrapper proxy versionnegotiation trustedauth murano ",
    "validation only": "faultwrapper murano-validation proxy versionnegotiation trustedauth ",
    "before authentication": "faultwrapper murano-validation murano trustedauth ",
}
REQUESTS = [
    ("GET", ARTIFACTS),
    ("POST", ARTIFACTS),
    ("GET", ARTIFACTS + "/{id}"),
    ("PATCH", ARTIFACTS + "/{id}"),
    ("DELETE", ARTIFACTS + "/{id}"),
    ("GET", ARTIFACTS + "/{id}/archive"),
    ("PUT", ARTIFACTS + "/{id}/archive"),
]
OUR_REQUESTS = [("POST", DEPENDENCIES), ("POST", ARCHIVES), ("GET", f"{SUBCLASSES}?class=a.B")]
BODIES = {
    "POST": ("application/json", b'{"name": "org.b", "version": "1.0.0", "requirements": {}}'),
    "PATCH": (
        "application/json-patch+json",
        b'[{"op": "replace", "path": "/display_name", "value": "B"}]',
    ),
    "PUT": ("application/octet-stream", packages.package("org.test")),
}


def _application(pipeline: str, folder: pathlib.Path) -> Any:
    paste = server.trusting_paste()
    assert COMPLETE in paste
    file = folder / "glare-paste.ini"
    file.write_text(paste.replace(COMPLETE, pipeline))
    return config.load_paste_app("glare-api", conf_file=str(file))


def _send(application: Any, method: str, path: str) -> webob.Response:
    request = webob.Request.blank(path, headers={"X-Auth-Token": server.TOKEN}, method=method)
    if method in BODIES:
        request.content_type, request.body = BODIES[method]
    return request.get_response(application)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_nothing_is_served_without_both_filters(
    glare: Client, name: str, tmp_path: pathlib.Path, state_dir: pathlib.Path, mistake: str
) -> None:
    artifact = glare.publish(name, "1.0.0", packages.package(name))
    application = _application(MISTAKES[mistake], tmp_path)
    log = state_dir / "glare.log"
    requests = REQUESTS + (OUR_REQUESTS if " murano " in MISTAKES[mistake] else [])

    for method, path in requests:
        logged = log.stat().st_size
        answer = _send(application, method, path.format(id=artifact["id"]))

        assert answer.status_code == 500, (method, path, answer.text)
        assert "lacks the filter murano-validation" in answer.json["error"]["message"]
        assert "set [paste_deploy] config_file to a copy" in log.read_text()[logged:]
    assert glare.show(artifact["id"]) == artifact


@pytest.mark.usefixtures("glare_url")
def test_other_types_and_pages_are_served_without_the_filters(tmp_path: pathlib.Path) -> None:
    application = _application(MISTAKES["no filter of ours"], tmp_path)

    assert _send(application, "GET", "/schemas").status_code == 200
    assert _send(application, "GET", "/healthcheck").status_code == 200


def test_the_documented_paste_file_has_no_pipeline_that_trusts_a_token() -> None:
    paste = server.ETC / "glare-paste.ini"

    assert "trustedauth" not in paste.read_text()
    with pytest.raises(RuntimeError, match="Unable to load glare-api "):
        config.load_paste_app("glare-api", conf_file=str(paste))
