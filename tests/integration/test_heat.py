# SPDX-License-Identifier: Apache-2.0

"""Deployments with a real Heat, by tasks in cells.

The engine, RabbitMQ, Keystone and Heat are the real ones; the tests play murano-api. The password
of Murano's account is in the engine's configuration, and the cells of its tasks do not have it.
"""

import copy
import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from keystoneauth1 import adapter, exceptions
from keystoneclient.v3 import client

from tests import packages, plugins, prerequisites
from tests.functional import keystone
from tests.integration import break_out, heat, services

# Seconds for a test with its fixtures: the first one starts all services.
pytestmark = [pytest.mark.services, pytest.mark.timeout(300)]

NAME = "org.test.stack"
# The account of Murano.
ACCOUNT = "murano"
PASSWORD = "password-of-murano"
# The user who deploys, and the project.
USER = "tenant"

_CODE = f"""\
Namespaces:
  ext: org.test.ext
  std: io.murano
Name: {NAME}.Thing
Extends: std:Application
Properties:
  first:
    Contract: $.string()
Methods:
  deploy:
    Body:
      - If: $.first
        Then:
          - $.write($.first)
  write:
    Scope: Public
    Arguments:
      - value:
          Contract: $.string().notNull()
    Body:
      - $stack: $.find(std:Environment).stack
      - $stack.updateTemplate(dict(
          resources => dict(thing => dict(
            type => 'OS::Heat::Value', properties => dict(type => string, value => $value)
          )),
          outputs => dict(written => dict(value => dict(get_attr => [thing, value])))
        ))
      - $stack.push()
      - Return: $stack.output().get(written)
  remove:
    Scope: Public
    Body:
      - $.find(std:Environment).stack.delete()
  python:
    Scope: Public
    Arguments:
      - code:
          Contract: $.string().notNull()
    Body:
      - Return: !yaql "ext:Python.run($code)"
  rewrite:
    Scope: Public
    Arguments:
      - code:
          Contract: $.string().notNull()
      - value:
          Contract: $.string().notNull()
    Body:
      - $.write(first)
      - $count: $.python($code)
      - Return: [$count, $.write($value)]
"""

_OPTIONS = """
[engine]
load_packages_from = {core_library}, {packages}
task_cells = true
use_trusts = true

[keystone_authtoken]
www_authenticate_uri = {identity}

[murano_auth]
auth_type = password
auth_url = {identity}
www_authenticate_uri = {identity}
username = {account}
password = {password}
project_name = {account}
user_domain_id = default
project_domain_id = default

[package_loader]
catalogs = directory
"""

# Code in a cell that revokes the tokens that it has got for the trust, by an administrator's token.
_REVOKE = """
import requests
from loader.engine.credentials import EnvironmentTrust
result = []
for each in gc.get_objects():
    if isinstance(each, EnvironmentTrust) and each.auth_ref:
        headers = {{"X-Auth-Token": "{token}", "X-Subject-Token": each.auth_ref.auth_token}}
        answer = requests.delete(each.auth_url + "/auth/tokens", headers=headers)
        result.append(answer.status_code)
"""

# Code in a cell that looks for a pattern in its memory.
_SEARCH = """
import re
result = 0
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
    for line in maps.readlines():
        start, end = [int(address, 16) for address in line.split()[0].split("-")]
        try:
            memory.seek(start)
            content = memory.read(end - start)
        except (OSError, OverflowError, ValueError):
            continue
        result += len(re.findall(rb"{pattern}", content))
"""


@dataclasses.dataclass(frozen=True)
class Site:
    """An engine with all that it needs."""

    identity: keystone.Keystone
    engine: services.Engine
    api: services.MuranoApi
    configuration: pathlib.Path


class TaskFailed(Exception):
    """A task of the engine has failed; the message is the engine's."""


class Environment:
    """An environment with one application, as murano-api keeps it between two tasks."""

    def __init__(self, site: Site, first: str | None = None) -> None:
        """Deploy it, with a token of the user.

        :param first: the first value that the application writes into its stack, if any.
        """
        self._site = site
        self.session = site.identity.session(USER)
        self.model = services.environment(services.application(f"{NAME}.Thing", first=first))
        del self.model["Objects"]["applications"][0]["name"]
        self.model["project_id"] = self.session.get_project_id()
        self.model["user_id"] = self.session.get_user_id()
        self.id = services.environment_id(self.model)
        self.token = str(self._new_token())
        self._run(self.id, "deploy")
        self._trust = self.model["SystemData"]["TrustId"]

    def act(self, method: str, **arguments: Any) -> Any:
        """Run an action of the application, and return its result."""
        return self._run("app", method, **arguments)

    def error(self, method: str, **arguments: Any) -> str:
        """Run an action of the application that fails, and return the message."""
        with pytest.raises(TaskFailed) as failed:
            self.act(method, **arguments)
        return str(failed.value)

    def delete(self) -> None:
        """Delete the environment."""
        objects = self.model.pop("Objects")
        model = self.model | {"Objects": None, "ObjectsCopy": objects}
        self._site.api.start_deletion(self.id, model, self._user)
        self._taken(self._site.api.result_of(self.id))

    def revoke(self) -> None:
        """Revoke the token with which the user starts tasks."""
        headers = {"X-Subject-Token": self.token}
        url = f"{self._site.identity.url}/auth/tokens"
        administrator = self._site.identity.session()
        administrator.delete(url, headers=headers)
        with pytest.raises(exceptions.NotFound):
            administrator.get(url, headers=headers)

    def renew(self) -> None:
        """Let the user start the next tasks with another token."""
        self.token = str(self._new_token())

    def stacks(self) -> list[dict[str, Any]]:
        """Return the stacks of the environment, as the user sees them in Heat."""
        orchestration = adapter.Adapter(self.session, service_type="orchestration")
        listed = orchestration.get("/stacks").json()["stacks"]
        found = [orchestration.get(f"/stacks/{each['id']}").json()["stack"] for each in listed]
        return [stack for stack in found if self.id in stack["description"]]

    def written(self) -> list[str]:
        """Return the values in the outputs of the environment's stacks."""
        outputs = [output for stack in self.stacks() for output in stack["outputs"]]
        return [output["output_value"] for output in outputs]

    def has_trust(self) -> bool:
        """Return whether Keystone still has the environment's trust."""
        trusts = client.Client(session=self.session).trusts
        user = self.session.get_user_id()
        return self._trust in {trust.id for trust in trusts.list(trustor_user=user)}

    @property
    def _user(self) -> dict[str, str]:
        return {
            "token": self.token,
            "project_id": self.model["project_id"],
            "user_id": self.model["user_id"],
        }

    def _new_token(self) -> str | None:
        return self._site.identity.session(USER).get_token()

    def _run(self, object_id: str, method: str, **arguments: Any) -> Any:
        model = copy.deepcopy(self.model)
        self._site.api.start(model, object_id, method, self._user, **arguments)
        return self._taken(self._site.api.result_of(self.id))

    def _taken(self, answer: Any) -> Any:
        """Keep the new model of an answer, and return the result."""
        self.model = answer["model"]
        result = answer["action"]["result"]
        if answer["action"]["isException"]:
            raise TaskFailed(result["message"])
        return result


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("heat")
    for name in ("keystone", "heat", "engine", "site"):
        (folder / name).mkdir()
    content = packages.content(NAME, code=_CODE, Require={**break_out.REQUIRE, "io.murano": "0"})
    packages.write(folder / "packages" / NAME, content)
    break_out.install(plugins.Site(folder / "site"))
    with keystone.running(folder / "keystone") as identity:
        identity.add_project(USER)
        _add_account(identity)
        options = _OPTIONS.format(
            core_library=prerequisites.core_library(),
            packages=folder / "packages",
            identity=identity.url,
            account=ACCOUNT,
            password=PASSWORD,
        )
        with (
            heat.running(folder / "heat", identity),
            services.message_queue() as queue,
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setenv("PYTHONPATH", str(folder / "site"), prepend=":")
            with (
                services.murano_engine(folder / "engine", queue, "", options=options) as engine,
                services.MuranoApi(queue, engine) as api,
            ):
                yield Site(identity, engine, api, folder / "engine" / "murano.conf")


def _add_account(identity: keystone.Keystone) -> None:
    """Create the account of Murano, an administrator."""
    admin = client.Client(session=identity.session())
    project = admin.projects.create(ACCOUNT, domain="default")
    user = admin.users.create(ACCOUNT, domain="default", password=PASSWORD)
    (role,) = admin.roles.list(name="admin")
    admin.roles.grant(role, user=user, project=project)


def test_tasks_create_update_and_delete_a_stack(site: Site) -> None:
    environment = Environment(site, "first")
    (stack,) = environment.stacks()
    assert stack["stack_status"] == "CREATE_COMPLETE"
    assert environment.written() == ["first"]
    assert environment.has_trust()
    environment.renew()
    assert environment.act("write", value="second") == "second"
    assert environment.written() == ["second"]
    environment.delete()
    assert environment.stacks() == []
    assert not environment.has_trust()


def test_the_trust_s_tokens_update_and_delete_a_stack(site: Site) -> None:
    environment = Environment(site, "first")
    environment.revoke()
    assert environment.act("write", value="second") == "second"
    assert environment.written() == ["second"]
    environment.act("remove")
    assert environment.stacks() == []
    error = environment.error("write", value="third")
    assert "Keystone refuses this token" in error
    assert environment.stacks() == []


def test_a_cell_gets_another_token_if_keystone_refuses_the_former(site: Site) -> None:
    environment = Environment(site)
    code = _REVOKE.format(token=site.identity.session().get_token())
    assert environment.act("rewrite", code=code, value="second") == [[204], "second"]
    environment.delete()


def test_the_memory_of_a_cell_does_not_have_the_password(site: Site) -> None:
    assert PASSWORD in site.configuration.read_text()
    environment = Environment(site)
    assert environment.has_trust()
    assert environment.act("python", code=_search(environment.token)) > 0
    assert environment.act("python", code=_search(PASSWORD)) == 0
    read = f"open({str(site.configuration)!r})"
    assert environment.act("python", code=read) == "PermissionError"


def _search(text: str) -> str:
    """Return Python that counts the places of the memory with a text, but does not contain it."""
    return _SEARCH.format(pattern=f"[{text[0]}]{text[1:]}")
