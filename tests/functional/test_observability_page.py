# SPDX-License-Identifier: Apache-2.0

"""The page of metrics, notifications and policies has the names of the code."""

import dataclasses
import pathlib
import re

import prometheus_client
from glare.common import policy
from glare.objects.base import BaseArtifact
from oslo_policy.policy import RuleDefault

from glare_murano.glance import image_policies
from glare_murano.glare import metrics, policies
from glare_murano.service import notifications
from loader.counters import Counters
from tests.processes import ROOT

PAGE = (ROOT / "doc" / "source" / "reference" / "observability.rst").read_text()


def _section(title: str) -> str:
    """Return a section of the page, with those below it."""
    (found,) = re.findall(rf"^{title}\n([=-])\1+\n", PAGE, re.MULTILINE)
    rest = re.split(rf"^{title}\n[=-]+\n", PAGE, flags=re.MULTILINE)[1]
    above = "=" if found == "=" else "=-"
    return re.split(rf"^.+\n[{above}]{{4,}}\n", rest, maxsplit=1, flags=re.MULTILINE)[0]


def _first_column(title: str) -> set[str]:
    return set(re.findall(r"^``([\w:]+)``  ", _section(title), re.MULTILINE))


def _types(prefix: str) -> set[str]:
    table = _section("Notifications").split("Glare writes")[0]
    return set(re.findall(rf"``{prefix}(\w+)``", table))


def _source(*names: str) -> str:
    """Return the code of modules that cannot be imported beside Glare."""
    return "".join((ROOT / name).read_text() for name in names)


def _written(module: str, function: str) -> set[str]:
    """Return the keys of the payload that a function writes."""
    code = _source(module).split(f"def {function}(")[1].split("\ndef ")[0]
    return set(re.findall(r'^        "(\w+)":', code, re.MULTILINE))


def _modules(folder: str) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in pathlib.Path(ROOT, folder).rglob("*.py")]


def test_the_metrics_of_glare_are_listed() -> None:
    names = {"counter": "{}_total", "histogram": "{}"}
    found = {
        names[family.type].format(family.name)
        for family in prometheus_client.REGISTRY.collect()
        if family.name.startswith("glare_murano")
    }
    assert len(found) == 3
    assert _first_column("Metrics of Glare") == found
    for metric in (metrics.REFUSED, metrics.QUERIES):
        assert all(f"``{label}``" in _section("Metrics of Glare") for label in metric._labelnames)


def test_the_counters_of_the_loader_are_listed() -> None:
    fields = {field.name for field in dataclasses.fields(Counters)}
    assert _first_column("Counters of the loader") == fields


def test_the_notifications_of_both_services_are_listed() -> None:
    own = {notifications.YANK, notifications.UNYANK, notifications.REFUSE}
    glare = _source("glare_murano/glare/api/publications.py")
    assert 'Notifier.notify(context, f"artifact:{action}", af)' in glare
    of_glare = {"create", "upload", "activate", "publish", "deactivate", "reactivate", "delete"}
    assert _types("artifact:") == own | of_glare
    # Glare's own hooks are named as its notifications are.
    hooks = {name for name in of_glare if hasattr(BaseArtifact, f"post_{name}_hook")}
    assert hooks == of_glare

    requests = _source("glare_murano/glance/api/image_requests.py")
    changed = re.search(r"_VERBS = \{(.+)\}", requests)
    assert changed is not None
    verbs = set(re.findall(r': "(\w+)"', changed[1]))
    verbs |= set(re.findall(r'return "(\w+)" if .+ else "(\w+)"', requests)[0])
    assert _types("package.") == own | verbs | {"activate"}
    events = _source("glare_murano/glance/image_events.py")
    assert re.findall(r'^_IMPORT = "(.+)"$', events, re.MULTILINE) == ["audit.package.import"]


def test_the_keys_of_payloads_are_listed() -> None:
    table = _section("The payload")
    rows = re.split(r"^(?=\S)", table, flags=re.MULTILINE)
    keys = {row.split("  ")[0]: set(re.findall("``(\\w+)``", row)) for row in rows}

    refusal = _written("glare_murano/service/notifications.py", "refusal")
    assert keys["a refusal, in both"] == refusal
    change = _written("glare_murano/glance/image_events.py", "send")
    assert keys["a change, in Glance"] == change
    assert change < keys["a change, in Glare"]


def test_the_rules_of_glare_are_listed() -> None:
    listed = _first_column("In Glare")
    named = {value for value in vars(policies).values() if isinstance(value, str) and ":" in value}
    named = {value for value in named if re.fullmatch(r"(artifact|murano):\w+", value)}
    assert named <= listed
    own = {rule.name for rule in policies.list_rules()}
    assert listed - own <= {rule.name for rule in policy.list_rules()}
    assert all(f"``{name}``" in PAGE for name in own)


def test_the_rules_of_glance_are_listed() -> None:
    section = _section("In Glance")
    named = {
        value.name if isinstance(value, RuleDefault) else value
        for name, value in vars(image_policies).items()
        if name.isupper() and isinstance(value, str | RuleDefault)
    }
    assert _first_column("In Glance") == named
    assert all(f"``{name}``" in section for name in image_policies.DATA_POLICIES)


def test_the_rules_of_murano_are_listed() -> None:
    checked = re.findall(r'policy\.check\(\s*"(\w+)"', _source(*_modules("loader/murano_api")))
    assert _first_column("In murano-api") == set(checked)
