# SPDX-License-Identifier: Apache-2.0

"""An application of 20 packages, which the engine deploys without a cloud.

Each package but the last ones requires two others by ranges. Its component extends the
component of the first, and creates a component of each. All packages require Murano's core
library, which is not counted.
"""

import pathlib
from collections.abc import Iterator
from typing import Any

from benchmarks.closure import CORE
from benchmarks.package import CORE_LIBRARY, core_library
from glare_murano.package import Archive
from tests import packages
from tests.functional.client import Client
from tests.integration import attacks as hostile
from tests.integration.attacks import Attack

SIZE = 20

# What hostile packages try to reach; nothing is there.
_PLACES = {"victim": "victim", "trap": "9"}

_VERSION = "1.3.0"
_RANGES = ("1", ">=1.2,<2", ">=1.0,!=1.1.0,<1.4")
_SETTINGS = ("hostname", "port", "flavor", "image", "volume", "password", "mode", "zone")

_COMPONENT = """\
Namespaces:
  =: {fqn}
  std: io.murano
{namespaces}
Name: Component

Extends: {parent}

Properties:
  settings:
    Contract: $.class(std:Object)
    Usage: Out
  parts:
    Contract: [$.class(std:Object)]
    Usage: Out
  address:
    Contract: $.string()
    Usage: Out

Methods:
  create:
    Body:
      - $this.find(std:Environment).reporter.report($this, 'Deploying {fqn}')
      - $.settings: new(Settings, $this, hostname => '{fqn}')
      - $.parts: list({parts})
      - $.parts.select($.create())
      - $.address: $.settings.render()
      - Return: $.address
"""

_SETTINGS_CLASS = """\
Namespaces:
  =: {fqn}
  std: io.murano

Name: Settings

Extends: std:Object

Properties:
{properties}
Methods:
  render:
    Body:
      - $lines: []
      - For: name
        In: list({names})
        Do:
          - If: $name != null
            Then:
              - $lines: $lines + list(format('{{0}}={{1}}', $name, len($lines)))
      - Return: $lines.join(';')
"""

_PROPERTY = """\
  {name}:
    Contract: $.string()
    Usage: InOut
    Default: '{name} of {fqn}'
"""

_MAIN = """\
Namespaces:
  =: {fqn}
  std: io.murano

Name: Main

Extends: [std:Application, Component]

Methods:
  deploy:
    Body:
      - $.create()
"""


def model(system_data: dict[str, Any], owner: dict[str, str]) -> dict[str, Any]:
    """Return the object model of a new environment with the application.

    :param system_data: of an earlier deployment, which has made a trust.
    :param owner: its project and its user.
    """
    main = {"?": {"id": "main", "type": f"{_name(0)}.Main", "classVersion": "1"}}
    header = {"id": "environment", "type": f"{CORE}.Environment"}
    return {
        "Objects": {"?": header, "name": "bench", "applications": [main]},
        "SystemData": dict(system_data),
        **owner,
    }


def attacks() -> list[Attack]:
    """Return the hostile packages whose deployment computes or waits without an end."""
    return [
        each
        for each in hostile.attacks()
        if each.by == "deploy" and each.stopped == "task" and (each.holds or each.waits)
    ]


def hostile_model(
    number: int, system_data: dict[str, Any], owner: dict[str, str]
) -> dict[str, Any]:
    """Return the object model of an environment with a hostile package.

    :param number: the place of the package in ``attacks()``.
    """
    attack = attacks()[number]
    found = model(system_data, owner)
    header = {"id": "hostile", "type": attack.class_name}
    properties = attack.properties_in_model(_PLACES)
    found["Objects"]["applications"] = [{"?": header, "name": "hostile", **properties}]
    return found


def publish_attacks(client: Client) -> None:
    """Publish the hostile packages for the project of the client."""
    for attack in attacks():
        files = attack.build(_PLACES)
        client.publish(attack.package, f"{attack.version}.0", packages.zipped(files))


def write(folder: pathlib.Path) -> None:
    """Write the packages and the core library into a directory."""
    for fqn, content in _packages():
        packages.write(folder / fqn, content)
    with Archive.open(CORE_LIBRARY) as archive:
        archive.unpack(folder / CORE)


def publish(client: Client) -> None:
    """Publish the core library and the packages for every project, required packages first."""
    client.publish(CORE, "0.0.0", core_library(), public=True)
    for fqn, content in _packages():
        client.publish(fqn, _VERSION, packages.zipped(content), public=True)


def _packages() -> Iterator[tuple[str, dict[str, bytes]]]:
    for number in reversed(range(SIZE)):
        yield _name(number), _package(number)


def _name(number: int) -> str:
    return f"org.bench.Part{number}"


def _package(number: int) -> dict[str, bytes]:
    fqn = _name(number)
    required = [n for n in (2 * number + 1, 2 * number + 2) if n < SIZE]
    classes = {"Component": _component(fqn, required), "Settings": _settings(fqn)}
    if number == 0:
        classes["Main"] = _MAIN.format(fqn=fqn)
    manifest = packages.manifest(
        fqn,
        _VERSION,
        Type="Library" if number else "Application",
        Require={_name(n): _RANGES[n % len(_RANGES)] for n in required},
        Classes={f"{fqn}.{name}": f"{name}.yaml" for name in classes},
    )
    code = {f"Classes/{name}.yaml": text.encode() for name, text in classes.items()}
    return {**packages.files(manifest), **code}


def _component(fqn: str, required: list[int]) -> str:
    return _COMPONENT.format(
        fqn=fqn,
        namespaces="".join(f"  part{n}: {_name(n)}\n" for n in required),
        parent=f"part{required[0]}:Component" if required else "std:Object",
        parts=", ".join(f"new(part{n}:Component, $this)" for n in required),
    )


def _settings(fqn: str) -> str:
    return _SETTINGS_CLASS.format(
        fqn=fqn,
        names=", ".join(_SETTINGS),
        properties="".join(_PROPERTY.format(name=name, fqn=fqn) for name in _SETTINGS),
    )
