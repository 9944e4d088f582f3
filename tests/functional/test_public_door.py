# SPDX-License-Identifier: Apache-2.0

"""A loader for a cloud of ``clouds.yaml``, as the author of an engine uses it."""

import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest
import yaml

import loader
from loader import PackageLoader
from tests import packages
from tests.functional import connections
from tests.functional.client import Client

HOT = b"heat_template_version: 2013-05-23\nresources: {}\n"
# A process without openstacksdk.
WITHOUT_SDK = """
import sys
from loader import LoaderError, PackageLoader
sys.modules["openstack"] = None
try:
    PackageLoader.from_cloud("prod")
except LoaderError as error:
    print(error)
"""


class Clouds:
    """A ``clouds.yaml`` with one cloud, ``prod``."""

    def __init__(self, file: pathlib.Path, url: str, token: str, project: str) -> None:
        self._file = file
        self._cloud = {
            "auth_type": "admin_token",
            "auth": {"endpoint": url, "token": token},
            "artifact_endpoint_override": url,
            "artifact_project_id": project,
        }
        self.set()

    def set(self, **keys: Any) -> None:
        """Write the file with further keys of the cloud; None removes a key."""
        cloud = {key: value for key, value in {**self._cloud, **keys}.items() if value is not None}
        self._file.write_text(yaml.safe_dump({"clouds": {"prod": cloud}}))


@pytest.fixture
def clouds(
    glare: Client, project: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Clouds:
    """The cloud of a member of the test's project."""
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    for variable in ("OS_CLOUD", "OS_MURANO_CATALOG"):
        monkeypatch.delenv(variable, raising=False)
    return Clouds(tmp_path / "clouds.yaml", glare.url, glare.token, project)


@pytest.mark.usefixtures("clouds")
def test_the_loader_of_a_cloud_loads_what_a_package_requires(glare: Client, name: str) -> None:
    library, unneeded = f"{name}.b", f"{name}.c"
    glare.publish(library, "1.2.0", packages.package(library, "1.2.0"))
    glare.publish(library, "2.0.0", packages.package(library, "2.0.0"))
    glare.publish(unneeded, "1.0.0", packages.package(unneeded))
    archive = packages.package(name, Require={library: ">=1,<2"}, Classes={f"{name}.A": "A.yaml"})
    glare.publish(name, "1.0.0", archive)
    loaded = []

    with PackageLoader.from_cloud("prod") as packages_:
        app = packages_.load(name, "1")
        for requirement in app.requirements:
            loaded.append(packages_.load_requirement(app, requirement))
        code, path = app.read_class(f"{name}.A")

    assert [str(package) for package in loaded] == [f"<MuranoPLPackage {library} 1.2.0>"]
    assert yaml.safe_load(code)["Name"] == f"{name}.A"
    assert path == "Classes/A.yaml"


@pytest.mark.usefixtures("clouds")
def test_the_class_of_a_heat_template_is_read(glare: Client, name: str) -> None:
    manifest = packages.manifest(name, Format="Heat.HOT/1.0", Type="Application", Classes=None)
    content = {**packages.files(manifest), "template.yaml": HOT}
    glare.publish(name, "1.0.0", packages.zipped(content))

    with PackageLoader.from_cloud("prod") as packages_:
        code, path = packages_.load(name).read_class(name)

    assert b'"Extends": "io.murano.Application"' in code
    assert path == name


@pytest.mark.usefixtures("clouds")
def test_the_connections_to_a_cloud_are_closed(glare: Client, name: str) -> None:
    glare.publish(name, "1.0.0", packages.package(name))
    before = connections.ports(glare.url)

    with PackageLoader.from_cloud("prod") as packages_:
        packages_.load(name)
        # The connection of a list is kept for the next request.
        packages_.subclasses(f"{name}.Thing")
        assert connections.ports(glare.url) - before

    assert not connections.ports(glare.url) - before
    with pytest.raises(loader.LoaderError, match="closed"):
        packages_.load(name)


def test_a_loader_that_cannot_be_made_leaves_no_connection(
    clouds: Clouds, glare: Client, tmp_path: pathlib.Path
) -> None:
    before = connections.ports(glare.url)
    (tmp_path / "file").touch()
    # To choose the service, Glance's discovery document is requested.
    clouds.set(image_endpoint_override=f"{glare.url}/glance")

    with pytest.raises(loader.CacheError):
        PackageLoader.from_cloud("prod", tmp_path / "file")

    assert not connections.ports(glare.url) - before


@pytest.mark.usefixtures("clouds")
def test_cache_and_pins_are_as_in_the_constructor(
    glare: Client, name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("1.0.0", "1.1.0"):
        glare.publish(name, version, packages.package(name, version))
    monkeypatch.setenv("OS_CLOUD", "prod")

    with PackageLoader.from_cloud(cache=tmp_path / "cache", pins={name: ["1.0.0"]}) as packages_:
        assert str(packages_.load(name).version) == "1.0.0"

    assert any((tmp_path / "cache" / "archives").iterdir())


@pytest.mark.parametrize(
    ("keys", "variable", "source"),
    [
        ({}, None, "Glare at URL"),
        ({"murano_catalog": "glance", "image_endpoint_override": "URL"}, None, "Glance at URL"),
        ({"murano_catalog": "glare"}, "glance", "Glance"),
        ({"region_name": "north", "artifact_endpoint_override": None}, None, "Glare of the region"),
    ],
)
def test_the_service_is_found_as_the_command_finds_it(
    clouds: Clouds,
    glare: Client,
    monkeypatch: pytest.MonkeyPatch,
    keys: dict[str, Any],
    variable: str | None,
    source: str,
) -> None:
    clouds.set(**{key: glare.url if value == "URL" else value for key, value in keys.items()})
    if variable:
        monkeypatch.setenv("OS_MURANO_CATALOG", variable)

    with PackageLoader.from_cloud("prod") as packages_:
        assert packages_.source.startswith(source.replace("URL", glare.url))


def test_a_wrong_cloud_is_an_error_of_the_loader(clouds: Clouds) -> None:
    with pytest.raises(loader.InvalidCloud, match=r"the cloud nowhere cannot be .*not found"):
        PackageLoader.from_cloud("nowhere")
    clouds.set(murano_catalog="swift")
    with pytest.raises(loader.LoaderError, match="expected glare or glance"):
        PackageLoader.from_cloud("prod")
    clouds.set(api_timeout="long")
    with pytest.raises(loader.InvalidCloud, match="the cloud prod cannot be used as configured"):
        PackageLoader.from_cloud("prod")
    clouds.set(auth_type="unknown")
    with pytest.raises(loader.InvalidCloud, match="the cloud prod cannot be used as configured"):
        PackageLoader.from_cloud("prod")


def test_without_openstacksdk_the_extra_is_named(tmp_path: pathlib.Path) -> None:
    code = [sys.executable, "-W", "ignore", "-c", WITHOUT_SDK]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    done = subprocess.run(code, env=environment, cwd=tmp_path, capture_output=True, text=True)

    assert done.stderr == ""
    assert done.stdout.startswith("clouds.yaml is read by openstacksdk, which is missing (")
    assert done.stdout.endswith("run pip install -c constraints.txt '.[cli]'\n")
