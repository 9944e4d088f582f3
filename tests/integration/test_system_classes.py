# SPDX-License-Identifier: Apache-2.0

"""System classes written in Python act for the task of a package, and for nobody else.

What connects somewhere is tested in ``test_connections.py``.
"""

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from murano.common import rpc
from oslo_messaging.notify import _impl_test

from examples import demo
from tests import packages
from tests.integration import publish, tasks

OTHER = "0f3c5a7e9b1d4f6a8c0e2b4d6f8a1c3e"
# The environment of a task in these tests.
OWN = "test"

_CLASS = """\
Namespaces:
  =: {0}
  std: io.murano
  sys: io.murano.system
Name: Thing
Extends: std:Application
Properties:
  name:
    Contract: $.string()
  other:
    Contract: $.class(std:Environment)
  SystemData:
    Contract:
      $.string(): $.string()
    Usage: Out
  project_id:
    Contract: $.string()
    Usage: Out
  TrustId:
    Contract: $.string()
    Usage: Out
Methods:
  reportAsOwn:
    Scope: Public
    Body:
      - $.find(std:Environment).reporter.report($this, 'mine')
      - $.find(std:Environment).reporter.report_error($this, 'my error')
  reportToId:
    Scope: Public
    Body:
      - new(sys:StatusReporter, environment => '{1}').report($this, 'forged')
  reportToObject:
    Scope: Public
    Body:
      - new(sys:StatusReporter, environment => $.other).report($this, 'forged')
      - $.other.reporter.report($this, 'forged')
      - new(sys:StatusReporter, $.other, environment => $.other).report($this, 'forged')
  trackAsOwn:
    Scope: Public
    Body:
      - $.find(std:Environment).instanceNotifier.trackApplication($this, title, 2)
      - $.find(std:Environment).instanceNotifier.untrackApplication($this)
  trackInObject:
    Scope: Public
    Body:
      - new(sys:InstanceNotifier, environment => $.other).trackApplication($this, title, 2)
      - new(sys:InstanceNotifier, environment => $.other).untrackApplication($this)
  decrypt:
    Scope: Public
    Body:
      - Return: decryptData('{1}')
  rewrite:
    Scope: Public
    Body:
      - $.SystemData: dict(TrustId => stolen)
      - $.project_id: stolen
      - $.TrustId: stolen
      - $.setAttr(TrustId, stolen)
      - $.find(std:Environment).setAttr(SystemData, dict(TrustId => stolen))
  reportFromAction:
    Usage: Static
    Scope: Public
    Body:
      - $environment: new(std:Environment, name => mine)
      - $environment.reporter.report($environment, 'from an action')
      - new(sys:StatusReporter, environment => '{1}').report($environment, 'from an action')
      - $environment.instanceNotifier.trackApplication($environment, title, 1)
      - Return: done
"""


@pytest.fixture
def notifications(conf: Any) -> Iterator[list[Any]]:
    """What is sent to murano-api."""
    if not rpc.initialized():
        rpc.init()
    conf.set_override("driver", ["test"], "oslo_messaging_notifications")
    _impl_test.reset()
    yield _impl_test.NOTIFICATIONS
    _impl_test.reset()
    conf.clear_override("driver", "oslo_messaging_notifications")


@pytest.fixture
def package(tenant: Any, name: str, tmp_path: pathlib.Path) -> str:
    """The name of a private package of a tenant."""
    content = packages.content(name, code=_CLASS.format(name, OTHER))
    publish.publish(tenant, [packages.write(tmp_path / name, content)], public=False)
    return name


def _run(package: str, method: str) -> Any:
    """Run a method of an application that has a second environment with a chosen id."""
    return tasks.run_model(_model(package), tasks.action("thing", method))


def _model(package: str) -> dict[str, Any]:
    other = {"?": {"id": OTHER, "type": "io.murano.Environment"}, "name": "other"}
    thing = {"?": {"id": "thing", "type": f"{package}.Thing"}, "name": "thing", "other": other}
    environment = {
        "?": {"id": OWN, "type": "io.murano.Environment"},
        "name": "own",
        "applications": [thing],
    }
    return {
        "Objects": environment,
        "SystemData": {"Packages": {}, "TrustId": "own"},
        "project_id": demo.PROJECT,
        "user_id": demo.USER["user_id"],
    }


def _succeeded(answer: Any) -> bool:
    assert not answer["action"]["isException"], answer["action"]["result"]
    return True


def _reports(notifications: list[Any]) -> list[tuple[str, str]]:
    bodies = [sent[1]["payload"] for sent in notifications]
    return [(body["environment_id"], body["text"]) for body in bodies]


def test_reports_of_the_own_environment_arrive(package: str, notifications: list[Any]) -> None:
    assert _succeeded(_run(package, "reportAsOwn"))

    assert _reports(notifications) == [(OWN, "mine"), (OWN, "my error")]
    assert [sent[1]["payload"]["id"] for sent in notifications] == ["thing", "thing"]


@pytest.mark.parametrize(("method", "count"), [("reportToId", 1), ("reportToObject", 3)])
def test_no_report_is_for_another_environment(
    package: str, notifications: list[Any], method: str, count: int
) -> None:
    assert _succeeded(_run(package, method))

    assert _reports(notifications) == [(OWN, "forged")] * count


@pytest.mark.parametrize("method", ["trackAsOwn", "trackInObject"])
def test_instances_are_counted_in_the_own_environment(
    package: str, notifications: list[Any], method: str
) -> None:
    assert _succeeded(_run(package, method))

    sent = [(each[1]["event_type"], each[1]["payload"]) for each in notifications]
    assert [kind for kind, _ in sent] == ["murano.track_instance", "murano.untrack_instance"]
    assert [payload["environment"] for _, payload in sent] == [OWN, OWN]
    assert [payload["instance"] for _, payload in sent] == ["thing", "thing"]


def test_a_static_action_reports_to_no_environment(package: str, notifications: list[Any]) -> None:
    assert tasks.call_static(f"{package}.Thing", "reportFromAction") == "done"

    assert notifications == []


def test_decrypt_data_is_disabled(package: str) -> None:
    action = _run(package, "decrypt")["action"]

    assert action["isException"]
    assert "decryptData is disabled on this engine" in action["result"]["message"]
    assert "[engine] decrypt_data" in action["result"]["message"]


def test_a_package_does_not_change_the_trust_or_the_owner(package: str) -> None:
    answer = _run(package, "rewrite")

    assert _succeeded(answer)
    model = answer["model"]
    assert model["SystemData"]["TrustId"] == "own"
    assert (model["project_id"], model["user_id"]) == (demo.PROJECT, demo.USER["user_id"])
