# SPDX-License-Identifier: Apache-2.0

"""Two releases of Murano's core library in one environment of the real engine."""

import pathlib
import shutil
from typing import Any

import pytest
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint

from glare_murano.package import Version
from loader.authoring import local_packages
from loader.publishing import publication
from loader.repository.glare_packages import GlareRepository
from tests import packages
from tests.integration import tasks

# Its packages are private, so that other tests do not get these core libraries.
PROJECT = "two-core-libraries"
OWNER = {"token": f"alice:{PROJECT}:member", "project_id": PROJECT, "user_id": "alice"}

# Of the newer core library only.
ADDED = """
  added:
    Body:
      Return: from the newer core library
"""

CODE = """\
Namespaces:
  =: {name}
  std: io.murano
  sys: io.murano.system
Name: App
Extends: std:Application
Properties:
  added:
    Usage: Out
    Contract: $.string()
  caught:
    Usage: Out
    Contract: $.string()
  found:
    Usage: Out
    Contract: $.bool()
Methods:
  deploy:
    Body:
      - $.found: $.find(std:Environment) != null
      - Try:
        - $.added: $.added()
        Catch:
          With: 'yaql.language.exceptions.NoMethodRegisteredException'
          Do: {{$.added: null}}
      - Try:
        - Throw: Failure
          Message: {name}
        Catch:
          As: e
          Do: {{$.caught: $e.message}}
  used:
    Scope: Public
    Body:
      - $ancestors: typeinfo($).ancestors.where($.name = 'io.murano.Application')
      - Return:
          own: str(typeinfo(std:Application).version)
          inherited: str($ancestors.single().version)
          resource: new(sys:Resources).string('text')
"""


def _run(model: dict[str, Any], object_id: str, method: str) -> Any:
    answer = tasks.run_model(model, tasks.action(object_id, method), OWNER)
    assert not answer["action"]["isException"], answer["action"]["result"]["details"]
    return answer


@pytest.fixture
def applications(
    conf: Any, glare_url: str, core_library: pathlib.Path, tmp_path: pathlib.Path
) -> dict[str, str]:
    """Publish two core libraries, and an application for each: its name -> the version."""
    newer = shutil.copytree(core_library / "io.murano", tmp_path / "io.murano")
    with (newer / "Classes/Application.yaml").open("a") as file:
        file.write(ADDED)
    libraries = {"0.15.0": core_library / "io.murano", "0.16.0": newer}
    read = [
        package
        for version, folder in libraries.items()
        for package in local_packages.read_all([folder], tmp_path, Version(version))
    ]
    names = {"org.test.core.old": "0.15", "org.test.core.new": "0.16"}
    for name, required in names.items():
        classes = {f"{name}.App": "App.yaml"}
        content = packages.files(
            packages.manifest(name, Require={"io.murano": required}, Classes=classes)
        )
        content["Classes/App.yaml"] = CODE.format(name=name).encode()
        content["Resources/text"] = name.encode()
        folder = packages.write(tmp_path / name, content)
        read += local_packages.read_all([folder], tmp_path)
    auth = token_endpoint.Token(glare_url, OWNER["token"])
    repository = GlareRepository(ksa_session.Session(auth), endpoint=glare_url)
    steps = publication.plan(repository, read, "private")
    publication.publish(repository, publication.upload(repository, steps), "private")
    return {name: f"{required}.0" for name, required in names.items()}


def test_applications_of_two_core_libraries_deploy_side_by_side(
    applications: dict[str, str],
) -> None:
    model: dict[str, Any] = {
        "Objects": {
            "?": {"id": "environment", "type": "io.murano.Environment"},
            "name": "two",
            "applications": [{"?": {"id": name, "type": f"{name}.App"}} for name in applications],
        },
        "SystemData": {},
        "project_id": PROJECT,
        "user_id": "alice",
    }

    model = _run(model, "environment", "deploy")["model"]

    assert model["SystemData"]["Packages"] == {
        "io.murano": ["0.15.0", "0.16.0"],
        **{name: ["1.0.0"] for name in applications},
    }
    old, new = model["Objects"]["applications"]
    assert (old["added"], new["added"]) == (None, "from the newer core library")
    assert [app["caught"] for app in (old, new)] == list(applications)
    # The environment itself is of the newer core library.
    assert (old["found"], new["found"]) == (False, True)
    for name, version in applications.items():
        assert _run(model, name, "used")["action"]["result"] == {
            "own": version,
            "inherited": version,
            "resource": name,
        }
