# SPDX-License-Identifier: Apache-2.0

"""The commands on a Glare whose pipeline lacks the filter of this project."""

import pathlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from glare_murano.glare import server
from tests import packages
from tests.functional.client import Client
from tests.functional.openstack_command import OpenStack


@pytest.fixture
def openstack(application: Any, glare: Client, tmp_path: pathlib.Path) -> Iterator[OpenStack]:
    def without_filter(environ: dict[str, Any], start_response: Any) -> Any:
        if environ["PATH_INFO"].startswith("/murano"):
            start_response("404 Not Found", [("Content-Length", "0")])
            return []
        return application(environ, start_response)

    running = server.Server(without_filter, 0)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    yield OpenStack(tmp_path, running.url, glare.token)
    running.close()
    thread.join(timeout=30)


def test_the_catalogue_does_without_the_filter(
    openstack: OpenStack, glare: Client, name: str, tmp_path: pathlib.Path
) -> None:
    archive = packages.package(name, "1.0.0")
    glare.publish(name, "1.0.0", archive)
    glare.publish(f"{name}.user", "1.0.0", packages.package(f"{name}.user", Require={name: "1"}))
    assert f"└── {name} 1.0.0  [1]" in openstack.ok("package", "tree", f"{name}.user").out
    openstack.ok("package", "save", name, "--file", tmp_path / "saved.zip")
    assert (tmp_path / "saved.zip").read_bytes() == archive


def test_what_needs_the_filter_names_it(
    openstack: OpenStack, glare: Client, name: str, tmp_path: pathlib.Path
) -> None:
    path = packages.write(tmp_path / "package", packages.content(name))
    for arguments in (["publish", path], ["list"], ["show", name], ["tree", "--reverse", name]):
        result = openstack.fails("package", *arguments)
        assert "glare-paste.ini" in result.err, result.err
    assert glare.names(name=name, status="drafted") == []
