# SPDX-License-Identifier: Apache-2.0

"""Murano over its REST API, with packages in Glare alone.

Every service is the real one: Keystone, RabbitMQ, MariaDB, Glare, ``murano-api`` and two
``murano-glare-engine``, which share a package cache.
"""

import contextlib
import io
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
import yaml
from keystoneauth1 import adapter
from muranoclient.common import exceptions
from muranoclient.v1.client import Client as MuranoClient

from loader import CatalogError, NoSuchPackage
from loader.catalogs.glare import GlareCatalog
from loader.environments.environment_pins import EnvironmentPins
from loader.transport.adapter import ServiceAdapter
from tests import packages, processes
from tests.functional.openstack_command import OpenStack
from tests.integration import cloud, publish
from tests.integration.services import delete_queue

# Seconds for a test with its fixtures: the first one starts all services.
pytestmark = [pytest.mark.services, pytest.mark.timeout(300)]

DATABASE = "org.example.db"
WIKI = "org.example.wiki"
SHOP = "org.example.shop"

_ENVIRONMENTS = 20

_LIBRARY = """\
Name: {0}.Library
Methods:
  version:
    Usage: Static
    Scope: Public
    Body:
      Return: str(typeinfo($).version)
"""

_APPLICATION = """\
Namespaces:
  lib: {1}
  std: io.murano
Name: {0}.Application
Extends: std:Application
Properties:
  name:
    Contract: $.string().notNull()
  library:
    Contract: $.class(lib:Library)
    Usage: Out
Methods:
  deploy:
    Body:
      - If: $.library = null
        Then:
          - $.library: new(lib:Library, $this)
  status:
    Scope: Public
    Body:
      Return: $.library.version()
"""

_SLOW = """\
Namespaces:
  std: io.murano
Name: {0}.Application
Extends: std:Application
Properties:
  name:
    Contract: $.string().notNull()
  stage:
    Contract: $.string()
    Usage: Out
Methods:
  deploy:
    Body:
      - If: $.stage = null
        Then:
          - $.stage: begun
          - $.find(std:Environment).reporter.report($this, 'It begins')
          - sleep(600)
  stage:
    Scope: Public
    Body:
      Return: $.stage
  .destroy:
    Body:
      - $.find(std:Environment).reporter.report($this, 'It begins')
      - sleep(600)
"""

_HOST = """\
Namespaces:
  meta: io.murano.metadata
  forms: io.murano.metadata.forms
Name: {0}.Host
Meta:
  - forms:Section: {{name: network, title: Network settings, index: 7}}
  - forms:Section: {{name: general, index: 2}}
Properties:
  address:
    Contract: $.string().notNull()
    Meta:
      - meta:Title: {{text: Address}}
      - meta:Description: {{text: Where clients connect}}
      - meta:HelpText: {{text: A host name or an IP address}}
      - forms:Position: {{section: network, index: 1}}
"""

_SITE = """\
Namespaces:
  =: {0}
  meta: io.murano.metadata
  forms: io.murano.metadata.forms
Name: Site
Extends: Host
Meta:
  - meta:Title: {{text: Web site}}
  - forms:Section: {{name: general, title: General settings, index: 2}}
Properties:
  port:
    Contract: $.int().notNull().check($ > 0).check($ < 65536)
    Default: 80
    Meta:
      - forms:Position: {{section: network, index: 1}}
  kind:
    Contract: $.string().notNull().check($ in [static, dynamic])
    Meta:
      - forms:Position: {{section: general}}
  aliases:
    Contract: [$.string().notNull()]
  secret:
    Contract: $.string()
    Meta:
      - forms:Hidden:
  parent:
    Contract: $.class(Site)
  result:
    Contract: $.string()
    Usage: Out
Methods:
  mirror:
    Usage: Static
    Scope: Public
    Meta:
      - meta:ModelBuilder:
      - meta:Title: {{text: A mirror of a site}}
      - forms:Section: {{name: origin, title: Origin}}
    Arguments:
      - model:
          Contract: {{}}
      - origin:
          Contract: $.string().notNull()
          Meta:
            - meta:Title: {{text: Mirrored site}}
            - forms:Position: {{section: origin, index: 0}}
    Body:
      Return: $model.set(address => $origin)
  version:
    Usage: Static
    Scope: Public
    Body:
      Return: 1
"""

_CLASS_D = """\
Name: packageZ.classD
Methods:
  version:
    Usage: Static
    Scope: Public
    Body:
      Return: str(typeinfo($).version)
"""

_SUBCLASS = """\
Name: {0}.{1}
Extends: packageZ.classD
Methods:
  {1}:
    Body:
      Return: {1}
"""

_CLASS_A = """\
Namespaces:
  std: io.murano
Name: packageA.classA
Extends: [std:Application, packageX.classB, packageY.classC]
Properties:
  name:
    Contract: $.string().notNull()
Methods:
  deploy:
    Body: []
  inherited:
    Scope: Public
    Body:
      Return: [$.classB(), $.classC()]
  ambiguous:
    Scope: Public
    Body:
      Return: $.version()
"""

_names = itertools.count()


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cloud.Cloud]:
    with cloud.running(tmp_path_factory.mktemp("cloud")) as running:
        yield running


@pytest.fixture(scope="module")
def deployed(services: cloud.Cloud) -> cloud.Environment:
    """An environment with a wiki and a shop."""
    environment = cloud.Environment(services.project)
    return environment.deploy(
        application(f"{WIKI}.Wiki", "1", name="wiki"), application(f"{SHOP}.Shop", "1", name="shop")
    )


@pytest.fixture
def name() -> str:
    """The name of a package that no other test uses."""
    return f"org.test.package{next(_names)}"


def application(class_name: str, version: str | None = None, **properties: Any) -> dict[str, Any]:
    """Return an object as a client of murano-api sends it."""
    header = {"id": uuid.uuid4().hex, "type": class_name}
    if version is not None:
        header["classVersion"] = version
    return {"?": header, **properties}


def publish_library(services: cloud.Cloud, name: str, version: str) -> str:
    return services.publish(name, version, {f"{name}.Library": _LIBRARY.format(name)})


def publish_application(services: cloud.Cloud, name: str, library: str, versions: str) -> str:
    """Publish an application that requires a range of versions of a library."""
    code = _APPLICATION.format(name, library)
    return services.publish(
        name, "1.0.0", {f"{name}.Application": code}, Require={library: versions}
    )


def call_static(project: cloud.Project, class_name: str, method: str, **body: Any) -> Any:
    """Return the answer to a static action."""
    action = {"className": class_name, "methodName": method, **body}
    return project.murano.post("/v1/actions", json=action, raise_exc=False)


def test_an_environment_gets_the_newest_releases_in_range(deployed: cloud.Environment) -> None:
    assert deployed.versions() == {
        f"{WIKI}.Wiki/1.1.0@{WIKI}",
        f"{DATABASE}.Database/1.3.0@{DATABASE}",
        f"{SHOP}.Shop/1.0.0@{SHOP}",
        f"{DATABASE}.Database/2.0.0@{DATABASE}",
    }


def test_the_api_has_the_reports_of_a_deployment(services: cloud.Cloud) -> None:
    environment = cloud.Environment(services.project)
    environment.deploy(application(f"{WIKI}.Wiki", "1", name="wiki"))

    assert {"The wiki is ready", "Deployment finished"} <= set(environment.reports())


def test_an_action_changes_the_deployed_object(deployed: cloud.Environment) -> None:
    assert deployed.act("wiki", "status")["uses"] == {DATABASE: "1.3.0"}
    assert deployed.act("shop", "status")["uses"] == {DATABASE: "2.0.0"}
    assert deployed.act("wiki", "addPage", title="News") == "News"
    assert deployed.act("wiki", "titles") == ["Front page", "News"]


_FAILING = """\
Name: {0}.Application
Extends: io.murano.Application
Properties:
  name:
    Contract: $.string().notNull()
Methods:
  deploy:
    Body: []
  fail:
    Scope: Public
    Body:
      - Throw: Full
        Message: no room left
"""

_INVALID = """\
Name: {0}.Application
Extends: io.murano.Application
Methods:
  deploy:
    Body:
      - $size: 1
        $color: red
"""


def test_the_report_of_an_error_in_a_package_names_the_line(
    services: cloud.Cloud, name: str
) -> None:
    file = f"{name}.Application.yaml"
    for version, code in (("1.0.0", _FAILING), ("2.0.0", _INVALID)):
        services.publish(name, version, {f"{name}.Application": code.format(name)})
    environment = cloud.Environment(services.project)
    environment.deploy(application(f"{name}.Application", "1", name="app"))

    outcome = environment.run("app", "fail")

    assert outcome["isException"]
    message = f"{name} 1.0.0: Classes/{file}:12: [Full]: no room left"
    assert outcome["result"]["message"] == message
    assert message in environment.reports()
    environment.start(application(f"{name}.Application", "2", name="invalid"))
    assert environment.wait() == "deploy failure"
    start = f"{name} 2.0.0: Classes/{file}:6: Methods.deploy: a statement assigns one value"
    assert any(report.startswith(start) for report in environment.reports())


@pytest.mark.parametrize(
    ("body", "version"),
    [
        ({}, "2.0.0"),
        ({"classVersion": "1"}, "1.3.0"),
        ({"classVersion": ">=1,<1.3"}, "1.2.0"),
        ({"classVersion": "1.0.0", "packageName": DATABASE}, "1.0.0"),
        ({"packageName": DATABASE}, "2.0.0"),
    ],
)
def test_a_static_action_runs_in_the_requested_version_or_the_newest(
    services: cloud.Cloud, body: dict[str, str], version: str
) -> None:
    answer = call_static(services.project, f"{DATABASE}.Database", "version", **body)

    assert answer.json() == version


@pytest.mark.parametrize(
    ("class_name", "method", "body", "reason"),
    [
        ("Missing", "version", {}, f"class {DATABASE}.Missing"),
        ("Database", "version", {"classVersion": "7"}, f"{DATABASE} 2.0.0, {DATABASE} 1.3.0"),
        ("Database", "version", {"packageName": "org.test.missing"}, "package org.test.missing"),
        ("Database", "put", {"parameters": {"record": "x"}}, "is not found"),
    ],
)
def test_a_static_action_that_is_missing_or_private_is_not_found(
    services: cloud.Cloud, class_name: str, method: str, body: dict[str, Any], reason: str
) -> None:
    answer = call_static(services.project, f"{DATABASE}.{class_name}", method, **body)

    assert answer.status_code == 404
    assert reason in answer.text


@pytest.fixture
def site(services: cloud.Cloud, name: str) -> str:
    """A class whose properties and methods have metadata for a form."""
    code = {f"{name}.Host": _HOST.format(name), f"{name}.Site": _SITE.format(name)}
    services.publish(name, "1.0.0", code)
    services.publish(name, "2.0.0", {f"{name}.Site": f"Name: {name}.Site"})
    return f"{name}.Site"


def get_schemas(services: cloud.Cloud, path: str, **query: str) -> Any:
    answer = services.project.murano.get(f"/v1/schemas/{path}", params=query, raise_exc=False)
    return answer.json() if answer.ok else answer.text


def test_a_schema_has_what_the_metadata_of_a_class_says(services: cloud.Cloud, site: str) -> None:
    schema = get_schemas(services, site, classVersion="1")[""]

    assert schema["title"] == "Web site"
    # The section of the class in the place of the inherited one, in the order of the indexes.
    assert schema["formSections"] == {
        "general": {"title": "General settings", "index": 0},
        "network": {"title": "Network settings", "index": 1},
    }
    assert schema["properties"] == {
        "address": {
            "type": "string",
            "title": "Address",
            "description": "Where clients connect",
            "helpText": "A host name or an IP address",
            "formSection": "network",
            "formIndex": 5,
        },
        "port": {
            "type": "integer",
            "default": 80,
            "minimum": 0,
            "exclusiveMinimum": True,
            "maximum": 65536,
            "exclusiveMaximum": True,
            "title": "port",
            "formSection": "network",
            # Behind the inherited property of the same index.
            "formIndex": 6,
        },
        "kind": {
            "type": "string",
            "enum": ["static", "dynamic"],
            "title": "kind",
            "formSection": "general",
        },
        "aliases": {"type": "array", "items": {"type": "string"}, "title": "aliases"},
        "secret": {"type": ["string", "null"], "title": "secret", "visible": False},
        "parent": {
            "type": ["muranoObject", "null"],
            "muranoType": site,
            "version": "==1",
            "title": "parent",
        },
    }
    assert schema["required"] == ["address", "kind"]


def test_a_model_builder_has_a_schema_and_can_be_called(services: cloud.Cloud, site: str) -> None:
    schemas = get_schemas(services, site, classVersion="1")
    model = application(site, "1", address="example.org")
    parameters = {"model": model, "origin": "example.com"}
    built = call_static(services.project, site, "mirror", classVersion="1", parameters=parameters)

    assert schemas["mirror"]["title"] == "A mirror of a site"
    assert schemas["mirror"]["formSections"] == {"origin": {"title": "Origin"}}
    # Without the model.
    assert schemas["mirror"]["properties"] == {
        "origin": {
            "type": "string",
            "title": "Mirrored site",
            "formSection": "origin",
            "formIndex": 3,
        },
    }
    assert built.json() == {**model, "address": "example.com"}


@pytest.mark.parametrize(
    ("path", "query", "status", "reason"),
    [
        ("{}.Missing", {}, 404, "Missing"),
        ("{}.Site", {"classVersion": "7"}, 404, "2.0.0"),
        ("{}.Site", {"packageName": "org.test.missing"}, 404, "org.test.missing"),
        ("{}.Missing", {"packageName": "{}"}, 404, "Missing"),
        ("{}.Site/missing", {"classVersion": "1"}, 404, "missing"),
        ("{}.Site/mirror,missing", {"classVersion": "1"}, 404, "missing"),
        ("{}..Site", {}, 400, "not a valid name"),
        ("{}.Site", {"packageName": "../x"}, 400, "not a valid name"),
        ("{}.Site", {"classVersion": "newest"}, 400, "not a valid range"),
    ],
)
def test_a_schema_that_is_missing_is_404_and_an_invalid_request_is_400(
    services: cloud.Cloud, site: str, path: str, query: dict[str, str], status: int, reason: str
) -> None:
    package = site.removesuffix(".Site")
    params = {key: value.format(package) for key, value in query.items()}
    answer = services.project.murano.get(
        f"/v1/schemas/{path.format(package)}", params=params, raise_exc=False
    )

    assert answer.status_code == status, answer.text
    assert reason in answer.text
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"className": "a..b"}, "not a valid name"),
        ({"className": ["a"]}, "not a valid name"),
        ({"packageName": "../x"}, "not a valid name"),
        ({"classVersion": "newest"}, "not a valid range"),
        ({"classVersion": 1.10}, "1.10 without quotes is the number 1.1"),
        ({"methodName": 5}, "wrong type"),
        (
            {"className": "io.murano.Object", "methodName": "setAttr"},
            "setAttr of class io.murano.Ob",
        ),
        ({"parameters": "x"}, "wrong type"),
    ],
)
def test_an_invalid_static_action_is_a_bad_request(
    services: cloud.Cloud, body: dict[str, Any], reason: str
) -> None:
    request = {"className": f"{DATABASE}.Database", "methodName": "version", **body}
    answer = services.project.murano.post("/v1/actions", json=request, raise_exc=False)

    assert answer.status_code == 400, answer.text
    assert reason in answer.text


def test_schemas_are_of_the_requested_methods_package_and_version(
    services: cloud.Cloud, site: str, name: str
) -> None:
    one = {"classVersion": "1", "packageName": name}

    # Without a version, of the newest release, which has no model builder.
    assert get_schemas(services, site).keys() == {""}
    assert get_schemas(services, site, **one).keys() == {"", "mirror"}
    assert get_schemas(services, f"{site}/mirror", **one).keys() == {"mirror"}
    # An empty list of methods stands for the class.
    assert get_schemas(services, f"{site}/", **one).keys() == {""}
    # An action, with an empty name for the class.
    assert get_schemas(services, f"{site}/,version", **one).keys() == {"", "version"}
    assert f"{name} 2.0.0, {name} 1.0.0" in get_schemas(services, site, classVersion="7")
    assert "package org.test.missing" in get_schemas(services, site, packageName="org.test.missing")


def test_the_schema_of_an_object_lists_subclasses_on_request(
    services: cloud.Cloud, site: str, name: str
) -> None:
    code = f"Name: {name}.sub.Shop\nExtends: {site}"
    services.publish(f"{name}.sub", "1.0.0", {f"{name}.sub.Shop": code}, Require={name: "1"})
    # Of another major version, which has no object of version 1 as its base.
    code = f"Name: {name}.new.Shop\nExtends: {site}"
    services.publish(f"{name}.new", "1.0.0", {f"{name}.new.Shop": code}, Require={name: "2"})

    without = get_schemas(services, site, classVersion="1")
    schemas = get_schemas(services, site, classVersion="1", subclasses="true")
    listed = schemas[""]["properties"]["parent"]

    assert listed.pop("subclasses") == [
        {
            "class": f"{name}.sub.Shop",
            "extends": [site],
            "packages": {f"{name}.sub": ["1.0.0"]},
        }
    ]
    assert listed.pop("subclassesTruncated") is False
    assert schemas == without
    assert get_schemas(services, site, classVersion="1", subclasses="false") == without
    mirror = get_schemas(services, f"{site}/mirror", classVersion="1", subclasses="true")
    assert mirror == {"mirror": without["mirror"]}
    for path, value, status in ((site, "maybe", 400), (f"{name}.Missing", "true", 404)):
        answer = services.project.murano.get(
            f"/v1/schemas/{path}", params={"subclasses": value}, raise_exc=False
        )
        assert answer.status_code == status, answer.text


def test_schemas_are_printed_by_the_command(
    services: cloud.Cloud, openstack: OpenStack, site: str, name: str
) -> None:
    def printed(*arguments: str) -> Any:
        return openstack.ok("class", "schema", *arguments).json()

    assert printed(site) == get_schemas(services, site)
    assert printed(f"{site}@1") == get_schemas(services, site, classVersion="1")
    mirror = printed(f"{site}@1", "--method", "mirror", "--package", name)
    assert mirror == get_schemas(services, f"{site}/mirror", classVersion="1")
    listed = printed(f"{site}@<2", "--subclasses")[""]["properties"]["parent"]
    assert listed["subclasses"] == []
    assert "is not a valid range" in openstack.run("class", "schema", f"{site}@newest").err
    missing = openstack.fails("class", "schema", f"{site}@7", code=3)
    assert f"class {site} in the range 7 was not found by Murano" in missing.err


def test_a_deployed_environment_keeps_its_versions_and_a_new_one_gets_the_newest(
    services: cloud.Cloud, name: str
) -> None:
    library = f"{name}.library"
    publish_library(services, library, "1.0.0")
    publish_application(services, name, library, "1")
    old = cloud.Environment(services.project)
    old.deploy(application(f"{name}.Application", "1", name="first"))

    publish_library(services, library, "1.1.0")
    old.deploy(application(f"{name}.Application", "1", name="second"))
    new = cloud.Environment(services.project).deploy(
        application(f"{name}.Application", "1", name="first")
    )

    assert [old.act(app, "status") for app in ("first", "second")] == ["1.0.0", "1.0.0"]
    assert new.act("first", "status") == "1.1.0"


def test_a_yanked_release_stays_where_it_is_deployed_and_gets_nowhere_else(
    services: cloud.Cloud, name: str
) -> None:
    library = f"{name}.library"
    publish_library(services, library, "1.0.0")
    newest = publish_library(services, library, "1.1.0")
    publish_application(services, name, library, "1")
    old, new = (cloud.Environment(services.project) for _ in range(2))
    old.deploy(application(f"{name}.Application", name="first"))

    services.yank(newest, "loses data")
    old.deploy(application(f"{name}.Application", name="second"))
    new.deploy(application(f"{name}.Application", name="first"))

    assert [old.act(app, "status") for app in ("first", "second")] == ["1.1.0", "1.1.0"]
    assert new.act("first", "status") == "1.0.0"


@pytest.fixture(scope="module")
def class_a(services: cloud.Cloud) -> str:
    """The specification's example.

    "classA inherits classB from packageX and classC from packageY. Both classB and classC
    inherit from classD from packageZ, however packageX depends on the version 1.2.0 of packageZ,
    while packageY depends on the version 1.3.0." Version 2.0.0 of packageA uses a packageY whose
    "dependency would be just "1"".
    """
    for version in ("1.2.0", "1.3.0"):
        services.publish("packageZ", version, {"packageZ.classD": _CLASS_D})
    for package, class_name, version, required in (
        ("packageX", "classB", "1.0.0", "1.2.0"),
        ("packageY", "classC", "1.0.0", "1.3.0"),
        ("packageY", "classC", "2.0.0", "1"),
    ):
        code = {f"{package}.{class_name}": _SUBCLASS.format(package, class_name)}
        services.publish(package, version, code, Require={"packageZ": required})
    for major in ("1", "2"):
        required = {"packageX": "1", "packageY": major}
        services.publish(
            "packageA", f"{major}.0.0", {"packageA.classA": _CLASS_A}, Require=required
        )
    return "packageA.classA"


def test_a_class_that_inherits_two_versions_fails_where_a_member_is_ambiguous(
    services: cloud.Cloud, class_a: str
) -> None:
    environment = cloud.Environment(services.project).deploy(application(class_a, "1", name="a"))

    outcome = environment.run("a", "ambiguous")

    assert outcome["isException"]
    assert (
        'Found more than one method "version" in packageA.classA: packageZ.classD of packageZ '
        "1.2.0, required by packageX 1.0.0; packageZ.classD of packageZ 1.3.0, required by "
        "packageY 1.0.0"
    ) in outcome["result"]["message"]
    # "All remained different versions of the same class are treated as unrelated."
    assert environment.act("a", "inherited") == ["classB", "classC"]


def test_a_class_inherits_the_version_that_satisfies_both_inheritance_chains(
    services: cloud.Cloud, class_a: str, name: str
) -> None:
    # An application in the environment uses 1.3.0, which satisfies one of the two.
    code = _APPLICATION.format(name, "packageZ").replace("Library", "classD")
    services.publish(name, "1.0.0", {f"{name}.Application": code}, Require={"packageZ": "1.3.0"})
    environment = cloud.Environment(services.project).deploy(
        application(f"{name}.Application", name="app"), application(class_a, "2", name="a")
    )

    assert environment.act("a", "ambiguous") == "1.2.0"
    assert environment.act("app", "status") == "1.3.0"


def test_a_private_package_is_found_in_its_own_project_only(
    services: cloud.Cloud, name: str
) -> None:
    code = {f"{name}.Library": _LIBRARY.format(name)}
    services.publish(name, "1.0.0", code, services.project)

    own = call_static(services.project, f"{name}.Library", "version")
    # The archive is in the cache of the engines now.
    other = call_static(services.other_project, f"{name}.Library", "version")

    assert own.json() == "1.0.0"
    assert other.status_code == 404


def test_an_environment_is_deleted(services: cloud.Cloud) -> None:
    environment = cloud.Environment(services.project)
    environment.deploy(application(f"{WIKI}.Wiki", name="wiki"))

    assert environment.delete() == "deleted", environment.reports()


def test_twenty_environments_at_once_fetch_each_archive_once(
    services: cloud.Cloud, name: str
) -> None:
    versions = {"old": "1.0.0", "new": "2.0.0"}
    for app, version in versions.items():
        publish_library(services, name, version)
        publish_application(services, f"{name}.{app}", name, version)
    # So that the core library is in the cache.
    cloud.Environment(services.project).deploy()
    downloads, tasks = services.downloads(), services.tasks()
    environments = [cloud.Environment(services.project) for _ in range(_ENVIRONMENTS)]

    for environment in environments:
        environment.start(*(application(f"{name}.{app}.Application", name=app) for app in versions))

    assert {environment.wait() for environment in environments} == {"ready"}
    expected = {f"{name}.Library/{version}@{name}" for version in versions.values()}
    expected |= {f"{name}.{app}.Application/1.0.0@{name}.{app}" for app in versions}
    assert all(environment.versions() == expected for environment in environments)
    assert sum(services.downloads()) - sum(downloads) == 2 * len(versions)
    assert all(after > before for before, after in zip(tasks, services.tasks(), strict=True))
    assert environments[-1].act("old", "status") == "1.0.0"
    assert environments[-1].act("new", "status") == "2.0.0"


def test_a_deployment_whose_package_is_missing_can_be_repeated_once_it_is_published(
    services: cloud.Cloud, name: str
) -> None:
    publish_library(services, f"{name}.library", "1.0.0")
    environment = cloud.Environment(services.project)
    environment.start(application(f"{name}.Application", "1", name="app"))

    assert environment.wait() == "deploy failure"
    message = f"class {name}.Application of a package in the range <2.0.0,>=1.0.0 was not found"
    assert any(message in report for report in environment.reports())

    publish_application(services, name, f"{name}.library", "1")
    environment.deploy()

    assert environment.act("app", "status") == "1.0.0"


@contextlib.contextmanager
def unusable(folder: pathlib.Path) -> Iterator[None]:
    """Put a file in the place of a directory."""
    aside = folder.rename(folder.with_suffix(".aside"))
    folder.touch()
    try:
        yield
    finally:
        folder.unlink()
        aside.rename(folder)


def test_a_deployment_with_an_unusable_cache_fails_and_loses_no_objects_and_pins(
    services: cloud.Cloud, name: str
) -> None:
    library = f"{name}.library"
    publish_library(services, library, "1.0.0")
    publish_application(services, name, library, "1")
    environment = cloud.Environment(services.project)
    environment.deploy(application(f"{name}.Application", "1", name="first"))
    publish_library(services, library, "1.1.0")

    with unusable(services.packages_cache):
        environment.start(application(f"{name}.Application", "1", name="second"))
        assert environment.wait() == "deploy failure"
    assert any(str(services.packages_cache) in report for report in environment.reports())

    environment.deploy()
    assert [environment.act(app, "status") for app in ("first", "second")] == ["1.0.0", "1.0.0"]


def pins_of(murano: adapter.Adapter, environment_id: str) -> EnvironmentPins:
    """Return the pins of an environment, with the credentials of a client."""
    client = ServiceAdapter(murano.session, "Murano's API", service_type=murano.service_type)
    return EnvironmentPins(client, environment_id)


class Pinned:
    """An environment of an application, pinned to 1.1.0 of a library that has other versions."""

    def __init__(self, services: cloud.Cloud, name: str) -> None:
        self.name, self.library = name, f"{name}.library"
        self.releases = {
            version: publish_library(services, self.library, version)
            for version in ("1.0.0", "1.1.0")
        }
        self.application = publish_application(services, name, self.library, "1")
        self.environment = cloud.Environment(services.project)
        self.environment.deploy(application(f"{name}.Application", name="app"))
        for version in ("1.2.0", "2.0.0"):
            self.releases[version] = publish_library(services, self.library, version)
        self.pins = pins_of(services.project.murano, self.environment.id)
        self.catalogs = [GlareCatalog(services.project.glare.session)]

    def preview(self, table: Any) -> list[str]:
        changes = self.pins.preview(self.catalogs, table)
        return [f"{c.fqn} {c.before[0]} -> {c.after[0]}" for c in changes]

    def move(self, versions: Any) -> str:
        """Move the pin of the library, and return the status of the environment."""
        return self.environment.deploy_session(self.pins.move({self.library: versions}))

    def version(self) -> str:
        """Return the pinned version of the library, which the application uses as well."""
        (pin,) = self.pins.read().dump()[self.library]
        assert self.environment.act("app", "status") == pin
        assert f"{self.library}.Library/{pin}@{self.library}" in self.environment.versions()
        return pin


@pytest.fixture
def pinned(services: cloud.Cloud, name: str) -> Pinned:
    return Pinned(services, name)


def test_a_pin_is_moved_with_the_objects_of_the_package(
    services: cloud.Cloud, pinned: Pinned
) -> None:
    expected = {"io.murano": ["0.16.0"], pinned.library: ["1.1.0"], pinned.name: ["1.0.0"]}
    assert pinned.environment.model()["?"]["_pins"] == expected

    assert pinned.preview({pinned.library: "1.0.0"}) == [f"{pinned.library} 1.1.0 -> 1.0.0"]
    assert pinned.move("1.0.0") == "ready"
    assert pinned.version() == "1.0.0"
    # An action is a task as well.
    assert pinned.environment.model()["?"]["_pins"] == {**expected, pinned.library: ["1.0.0"]}

    # Without a deployment of its session.
    pinned.pins.move({pinned.library: None})
    pinned.environment.wait_for_next_second()
    pinned.environment.deploy()
    assert pinned.version() == "1.0.0"

    assert pinned.preview({pinned.library: None}) == [f"{pinned.library} 1.0.0 -> 1.2.0"]
    operators = pins_of(services.operator, pinned.environment.id)
    operators.deploy(operators.move({pinned.library: None}))
    assert pinned.environment.wait() == "ready"
    pinned.environment.wait_for_next_second()
    assert pinned.version() == "1.2.0"


def test_all_pins_are_moved(services: cloud.Cloud, pinned: Pinned) -> None:
    code = {f"{pinned.name}.Application": _APPLICATION.format(pinned.name, pinned.library)}
    services.publish(pinned.name, "1.3.0", code, Require={pinned.library: ">=1,<1.2"})
    services.yank(pinned.releases["1.1.0"], "loses data")
    table = dict.fromkeys(pinned.pins.read().table)
    preview = pinned.preview(table)

    assert pinned.environment.deploy_session(pinned.pins.move(table)) == "ready"

    assert preview == [f"{pinned.name} 1.0.0 -> 1.3.0", f"{pinned.library} 1.1.0 -> 1.0.0"]
    assert pinned.version() == "1.0.0"
    assert f"{pinned.name}.Application/1.3.0@{pinned.name}" in pinned.environment.versions()


def test_an_invalid_move_fails_and_leaves_the_environment_as_it_was(pinned: Pinned) -> None:
    for table, reason in (
        ({pinned.library: "1.9.0"}, "not found in Glare (available: 2.0.0, 1.2.0, 1.1.0, 1.0.0)"),
        ({pinned.library: ["2.0.0"]}, "cannot be pinned to 2.0.0: the environment would use 2.0.0"),
        (["1.0.0"], "expected packages with their versions"),
    ):
        session = pinned.environment.configure()
        pinned.environment.patch_model(session, "/?/_pins", table)

        assert pinned.environment.deploy_session(session) == "deploy failure"
        assert any(reason in report for report in pinned.environment.reports())
        assert pinned.version() == "1.1.0"

    assert pinned.move(["1.0.0"]) == "ready"
    assert pinned.version() == "1.0.0"


def test_an_environment_whose_pin_is_missing_is_deployed_once_the_pin_is_moved(
    services: cloud.Cloud, pinned: Pinned
) -> None:
    services.remove(pinned.releases["1.1.0"])

    assert pinned.environment.start().wait() == "deploy failure"
    for reason in (
        f"required by {pinned.name} 1.0.0, pinned to 1.1.0, was not found in Glare "
        f"(available: 2.0.0, 1.2.0, 1.0.0)",
        f"to move the pin, set /?/_pins/{pinned.library} in the environment's model",
    ):
        assert any(reason in report for report in pinned.environment.reports())
    with pytest.raises(NoSuchPackage, match=r"pinned to 1\.1\.0"):
        pinned.preview({pinned.name: None})

    assert pinned.preview({pinned.library: None}) == [f"{pinned.library} 1.1.0 -> 1.2.0"]
    assert pinned.move(None) == "ready"
    assert pinned.version() == "1.2.0"


def test_an_environment_whose_pin_is_missing_is_deleted(
    services: cloud.Cloud, pinned: Pinned
) -> None:
    services.remove(pinned.releases["1.1.0"])
    services.remove(pinned.application)

    # Nothing can stand in for the application.
    assert pinned.environment.delete() == "delete failure"
    warning = (
        f"The pinned package {pinned.library} 1.1.0 was not found in Glare. The environment is "
        f"deleted with 1.2.0"
    )
    reports = pinned.environment.reports()
    assert warning in reports
    assert not any("to move the pin" in report for report in reports)

    publish_application(services, pinned.name, pinned.library, "1")
    assert pinned.environment.delete() == "deleted"


def test_the_pins_of_an_unknown_environment_are_an_error(services: cloud.Cloud) -> None:
    with pytest.raises(CatalogError, match=r"Murano's API answered GET .* the status 404"):
        pins_of(services.project.murano, "missing").read()


def begun(environment: cloud.Environment) -> None:
    """Wait until an application with a slow method says so."""
    processes.wait_until(lambda: "It begins" in environment.reports(), "the start of the task")


def test_no_environment_stays_in_deploying_when_the_engines_stop(
    services: cloud.Cloud, name: str
) -> None:
    services.publish(name, "1.0.0", {f"{name}.Application": _SLOW.format(name)})
    environment = cloud.Environment(services.project)
    environment.start(application(f"{name}.Application", name="app"))
    begun(environment)

    services.engines.stop(signal.SIGTERM)
    assert environment.wait() == "deploy failure"
    assert any("the engine was stopped" in report for report in environment.reports())

    # What was deployed before the stop is known.
    services.engines.start()
    environment.deploy()
    assert environment.act("app", "stage") == "begun"

    environment.start_deletion()
    begun(environment)
    services.engines.stop(signal.SIGTERM)
    assert environment.wait() == "delete failure"
    services.engines.start()
    environment.abandon()
    assert environment.status() == "deleted"


@pytest.mark.parametrize("are_engines_stopped", [False, True])
def test_a_result_without_a_queue_reaches_murano_api_once_it_is_back(
    services: cloud.Cloud, name: str, are_engines_stopped: bool
) -> None:
    code = _SLOW.format(name).replace("sleep(600)", "sleep(12)")
    services.publish(name, "1.0.0", {f"{name}.Application": code})
    environment = cloud.Environment(services.project)
    environment.start(application(f"{name}.Application", name="app"))
    begun(environment)

    with services.api.away():
        # As RabbitMQ does when it restarts.
        delete_queue(services.queue, "results")
        if are_engines_stopped:
            services.engines.stop(signal.SIGTERM)
            services.engines.start()
        else:
            logs = services.engines.logs[-2:]
            processes.wait_until(
                lambda: any("is kept and sent again" in log.read_text() for log in logs),
                "the result",
            )

    assert environment.wait() == ("deploy failure" if are_engines_stopped else "ready")
    environment.abandon()


def test_the_environment_of_a_killed_engine_stays_in_deploying_until_it_is_abandoned(
    services: cloud.Cloud, name: str
) -> None:
    services.publish(name, "1.0.0", {f"{name}.Application": _SLOW.format(name)})
    environment = cloud.Environment(services.project)
    environment.start(application(f"{name}.Application", name="app"))
    begun(environment)

    services.engines.stop(signal.SIGKILL)
    services.engines.start()
    # No engine gets the task again, while each takes others.
    tasks = services.tasks()
    for _ in range(2):
        cloud.Environment(services.project).deploy()

    assert sum(services.tasks()) - sum(tasks) == 2
    assert environment.status() == "deploying"
    environment.abandon()
    assert environment.status() == "deleted"


def upload_to_murano(project: cloud.Project, url: str, name: str) -> str:
    """Upload a package to Murano's own storage, and return its address."""
    files = {"file": ("package.zip", packages.package(name, "1.0.0"))}
    answer = project.murano.post(f"{url}/v1/catalog/packages", files=files)
    return f"{url}/v1/catalog/packages/{answer.json()['id']}"


@pytest.fixture
def stock_api(services: cloud.Cloud) -> Iterator[str]:
    with services.stock_api() as url:
        yield url


def test_packages_are_migrated_to_the_projects_that_own_them(
    services: cloud.Cloud, stock_api: str, name: str, tmp_path: pathlib.Path
) -> None:
    upload_to_murano(services.project, stock_api, name)
    public = upload_to_murano(services.project, stock_api, f"{name}.public")
    upload_to_murano(services.other_project, stock_api, name)
    patch = [{"op": "replace", "path": "/is_public", "value": True}]
    headers = {"Content-Type": "application/murano-packages-json-patch"}
    services.operator.patch(public, data=json.dumps(patch), headers=headers)
    # The administrator gets no role in the other project.
    owner = services.identity.add_member("admin", "one")
    clouds = tmp_path / "clouds.yaml"
    admin = {
        "auth": services.identity.credentials(),
        "application_catalog_endpoint_override": stock_api,
    }
    clouds.write_text(yaml.safe_dump({"clouds": {"admin": admin}}))
    arguments = ("murano", "migrate", "--all-projects", "-f", "json")
    finished = subprocess.run(
        [sys.executable, "-m", "openstackclient.shell", "--os-cloud", "admin", *arguments],
        env={**os.environ, "OS_CLIENT_CONFIG_FILE": str(clouds)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 1, finished.stderr
    rows = json.loads(finished.stdout)
    (refused,) = [row for row in rows if row["Owner"] != owner]
    assert refused["Result"] == "refused"
    assert "you cannot authenticate for its project" in refused["Reason"]
    assert f"give your user a role in the project {refused['Owner']}" in refused["Reason"]
    migrated = {row["Name"]: (row["Visibility"], row["Result"]) for row in rows if row != refused}
    assert migrated == {name: ("private", "migrated"), f"{name}.public": ("public", "migrated")}
    query = {"name": f"in:{name},{name}.public", "status": "active"}
    artifacts = services.project.glare.get("/artifacts/murano", params=query).json()["artifacts"]
    assert {(a["name"], a["owner"], a["visibility"]) for a in artifacts} == {
        (name, owner, "private"),
        (f"{name}.public", owner, "public"),
    }


_FORM = b"""\
Version: 2.2
Application:
  ?:
    type: {0}.Thing
  name: $.settings.title
Forms:
  - settings:
      fields:
        - {name: title, type: string, label: Title}
"""
_PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


MuranoOf = Callable[[str], MuranoClient]


@pytest.fixture
def murano_of(services: cloud.Cloud) -> MuranoOf:
    """Murano's own clients, of the users of Keystone."""

    def make(user: str) -> MuranoClient:
        session = services.identity.session(user)
        return MuranoClient(session=session, service_type="application-catalog")

    return make


def test_packages_are_managed_by_murano_s_own_client(
    services: cloud.Cloud, murano_of: MuranoOf, name: str
) -> None:
    def own(murano: MuranoClient) -> list[tuple[str, str]]:
        found = murano.packages.filter(owned=True, fqn=name)
        return [(package.id, package.version) for package in found]

    one, other, admin = map(murano_of, ("one", "other", "admin"))
    files = packages.content(name, "1.2.0", Description="Text")
    form = _FORM.replace(b"{0}", name.encode())
    content = packages.zipped(files | {"UI/ui.yaml": form, "logo.png": _PNG})

    created = one.packages.create({"categories": ["Web"]}, {"file": io.BytesIO(content)})
    theirs = other.packages.create(
        {}, {"file": io.BytesIO(packages.package(name, "3.0.0", Description="Text"))}
    )

    assert own(one) == [(created.id, "1.2.0")]
    assert own(other) == [(theirs.id, "3.0.0")]
    artifact = services.project.glare.get(f"{publish.ARTIFACTS}/{created.id}").json()
    assert (artifact["owner"], artifact["status"]) == (created.owner_id, "active")
    assert one.packages.get_ui(created.id) == yaml.safe_load(form)
    assert one.packages.get_logo(created.id) == _PNG
    assert one.packages.download(created.id) == content
    assert "Web" in [category.name for category in one.categories.list()]
    for use in (other.packages.get, other.packages.download, other.packages.delete):
        with pytest.raises(exceptions.HTTPNotFound):
            use(created.id)
    # An administrator makes it public, as by murano-dashboard's button.
    with pytest.raises(exceptions.HTTPForbidden):
        one.packages.toggle_public(created.id)
    admin.packages.toggle_public(created.id)
    assert other.packages.get(created.id).is_public
    found = other.packages.filter(fqn=name, catalog=True, version="*")
    assert [package.id for package in found] == [theirs.id, created.id]
    admin.packages.delete(created.id)
    other.packages.delete(theirs.id)
    assert own(one) == own(other) == []


_PLAIN = """\
Name: {0}.Application
Extends: io.murano.Application
Properties:
  name:
    Contract: $.string().notNull()
Methods:
  deploy:
    Body: []
"""


def test_a_client_uses_the_schema_of_the_class_if_a_package_has_no_form(
    services: cloud.Cloud, murano_of: MuranoOf, name: str
) -> None:
    services.publish(name, "1.0.0", {f"{name}.Application": _PLAIN.format(name)})
    murano = murano_of("one")
    (package,) = murano.packages.filter(fqn=name, catalog=True)
    (class_name,) = package.class_definitions

    assert not murano.packages.get_ui(package.id)
    found = murano.schemas.get(class_name, class_version=package.version, package_name=name)
    assert found.data[""]["properties"]["name"]["type"] == "string"
    environment = cloud.Environment(services.project)
    environment.deploy(application(class_name, package.version, name="a site"))

    assert environment.versions() == {f"{class_name}/1.0.0@{name}"}


def test_murano_s_api_refuses_an_invalid_token(services: cloud.Cloud) -> None:
    url = services.project.murano.get_endpoint()
    for headers in ({}, {"X-Auth-Token": "invalid"}):
        answer = requests.get(f"{url}/v1/catalog/packages", headers=headers, timeout=60)
        assert answer.status_code == 401


@pytest.fixture
def openstack(services: cloud.Cloud, tmp_path: pathlib.Path) -> OpenStack:
    return OpenStack.of_user(tmp_path, services.identity.credentials("one"))


def test_pins_are_listed_and_shown_in_advance_by_the_command(
    services: cloud.Cloud, pinned: Pinned, openstack: OpenStack
) -> None:
    environment = pinned.environment.id
    known_as = services.project.murano.get(f"/v1/environments/{environment}").json()["name"]
    library, pins = pinned.library, ("environment", "pins")
    expected = [
        {"Name": "io.murano", "Versions": ["0.16.0"]},
        {"Name": pinned.name, "Versions": ["1.0.0"]},
        {"Name": library, "Versions": ["1.1.0"]},
    ]
    assert openstack.json(*pins, "list", environment) == expected
    assert openstack.json(*pins, "list", known_as) == expected

    newest = [{"Name": library, "Before": ["1.1.0"], "After": ["1.2.0"]}]
    update = (*pins, "update", known_as)
    assert openstack.json(*update, "--dry-run") == newest
    assert openstack.json(*update, library, "--dry-run") == newest
    (moved,) = openstack.json(*update, f"{library}@1.0.0", "--dry-run")
    assert moved["After"] == ["1.0.0"]
    unchanged = openstack.ok(*update, f"{library}@1.1.0", "--yes")
    assert unchanged.err == "Nothing changes.\n"

    for arguments, code, reason in (
        ((library,), 1, "there is no terminal to ask on; add --yes"),
        (("org.typo",), 1, "org.typo is not pinned; the pinned packages are io.murano, "),
        ((library, f"{library}@1.0.0"), 1, f"{library} is listed twice"),
        ((f"{library}@7.0.0",), 3, "(available: 2.0.0, 1.2.0, 1.1.0, 1.0.0)"),
        ((f"{library}@x",), 2, "'x' is not a valid version"),
    ):
        refused = openstack.run(*update, *arguments)
        assert refused.code == code
        assert reason in refused.err
        assert "Traceback" not in refused.err
    unknown = openstack.fails(*pins, "list", "typo", code=3)
    assert "no environment with the id or the name typo" in unknown.err
    assert openstack.json(*pins, "list", environment) == expected


def test_pins_are_updated_by_the_command(
    services: cloud.Cloud, pinned: Pinned, openstack: OpenStack
) -> None:
    library = pinned.library
    update = ("environment", "pins", "update", pinned.environment.id)

    one = openstack.ok(*update, f"{library}@1.0.0", "--yes", "--wait", "-f", "json")
    assert one.json() == [{"Name": library, "Before": ["1.1.0"], "After": ["1.0.0"]}]
    assert one.err.endswith("Deployed.\n")
    assert pinned.pins.read().dump()[library] == ["1.0.0"]

    (change,) = openstack.json(*update, f"{library}@1.1.0", "--no-deploy")
    assert pinned.pins.read().dump()[library] == ["1.0.0"]
    assert pinned.environment.deploy_session(change["Session"]) == "ready"
    assert pinned.pins.read().dump()[library] == ["1.1.0"]

    late = openstack.fails(*update, "--yes", "--wait", "--timeout", 0, code=4)
    assert "did not end within 0 seconds" in late.err
    assert pinned.environment.wait() == "ready"
    assert pinned.pins.read().dump()[library] == ["1.2.0"]

    # A class that cannot be read: the preview reads no code.
    code = (
        f"Name: {library}.Library\nMethods:\n  version:\n    Body:\n      - $a: 1\n        $b: 2\n"
    )
    services.publish(library, "1.3.0", {f"{library}.Library": code})
    failed = openstack.fails(*update, library, "--yes", "--wait")
    assert f"the deployment of the environment {pinned.environment.id} failed: " in failed.err
    assert "a statement assigns one value" in failed.err
    assert pinned.pins.read().dump()[library] == ["1.2.0"]
