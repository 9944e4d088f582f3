# SPDX-License-Identifier: Apache-2.0

"""An application of 30 packages, each as large as real packages.

The 31 packages of openstack/murano-apps, the last ones of Murano's project, have
9 files and an archive of 29 kB on average. Here, the first package is Murano's
core library. Each other package requires two more, down to the leaves. Each has a
single version, since Murano's own catalogue keeps no more.
"""

import functools
import io
import pathlib
import random
from typing import Any

from benchmarks.package import core_library
from glare_murano.package import Archive, read_manifest
from loader import PackageLoader
from tests import packages
from tests.functional.client import Client

CORE = "io.murano"
SIZE = 30
APPLICATION = "org.bench.Package0"
MAIN_CLASS = f"{APPLICATION}.Main"
RANGE = "1"

_RESOURCE = "files.tar.gz"
_CORE_RESOURCE = "Agent-v2.template"

_CLASSES = ("Main", "Cluster", "Client")
_PROPERTIES = ("hostname", "port", "flavor", "image", "volume", "password", "mode", "zone")
_SCRIPTS = 4
_SCRIPT_SIZE = 1500
_PACKED_SIZE = 25_000

_CLASS = """\
Namespaces:
  =: {fqn}
  std: io.murano

Name: {name}

Extends: std:{parent}

Properties:
"""

_PROPERTY = """\
  {name}:
    Contract: $.string()
    Usage: In
    Default: '{name} of {owner}'
"""

_METHODS = """\
Methods:
  initialize:
    Body:
      - $._environment: $.find(std:Environment)
"""

_METHOD = """\
  set{name}:
    Usage: Action
    Arguments:
      - value:
          Contract: $.string().notNull()
    Body:
      - $.reporter.report($this, 'Setting {name}')
      - $.{name}: $value
      - If: $value != null
        Then:
          - Return: $value
        Else:
          - Return: $.{name}
"""

_FIELD = """\
        - name: {name}
          type: string
          label: The {name}
          description: The value of the {name}
          initial: {name}
"""


@functools.cache
def archives() -> dict[str, bytes]:
    """Return the archives by their packages' names, required packages first."""
    numbers = reversed(range(SIZE - 1))
    return {CORE: core_library(), **{_name(number): _package(number) for number in numbers}}


def publish(client: Client) -> list[str]:
    """Publish the packages for every project, and return their artifacts' ids."""
    ids = []
    for name, archive in archives().items():
        with Archive.open(io.BytesIO(archive)) as read:
            version = str(read_manifest(read).version)
        ids.append(client.publish(name, version, archive, public=True)["id"])
    return ids


def resource(fqn: str) -> str:
    """Return the name of a resource file of a package."""
    return _CORE_RESOURCE if fqn == CORE else _RESOURCE


def load(package_loader: PackageLoader) -> None:
    """Load the application and all its requirements, and unpack all their files.

    The loader unpacks a package on demand. The programs beside it unpack all packages.
    """
    packages = package_loader.load_all(APPLICATION, RANGE)
    assert len(packages) == SIZE
    for package in packages:
        assert pathlib.Path(package.source_directory).is_dir()


def _name(number: int) -> str:
    return f"org.bench.Package{number}"


def _package(number: int) -> bytes:
    fqn = _name(number)
    required = (child for child in (2 * number + 1, 2 * number + 2) if child < SIZE - 1)
    requirements = {_name(child): RANGE for child in required}
    return packages.zipped(files(fqn, random.Random(number), Require=requirements))


def files(fqn: str, dice: random.Random, **keys: Any) -> dict[str, bytes]:
    """Return the files of a package that is as large as real ones.

    :param dice: makes the content of its resources.
    :param keys: keys of the manifest.
    """
    manifest = packages.manifest(
        fqn,
        Type="Application",
        Classes={f"{fqn}.{name}": f"{name}.yaml" for name in _CLASSES},
        **keys,
    )
    return {
        **packages.files(manifest),
        **{f"Classes/{name}.yaml": _class(fqn, name) for name in _CLASSES},
        **{f"Resources/scripts/step{step}.sh": _script(dice) for step in range(_SCRIPTS)},
        "UI/ui.yaml": _form(fqn),
        f"Resources/{_RESOURCE}": dice.randbytes(_PACKED_SIZE),
    }


def _class(fqn: str, name: str) -> bytes:
    parent = "Application" if name == _CLASSES[0] else "Object"
    parts = [
        _CLASS.format(fqn=fqn, name=name, parent=parent),
        *(_PROPERTY.format(name=found, owner=fqn) for found in _PROPERTIES),
        _METHODS,
        *(_METHOD.format(name=found) for found in _PROPERTIES),
    ]
    return "".join(parts).encode()


def _form(fqn: str) -> bytes:
    fields = "".join(_FIELD.format(name=name) for name in _PROPERTIES)
    return (
        f"Version: 2\nApplication:\n  ?:\n    type: {fqn}.Main\n"
        f"Forms:\n  - appConfiguration:\n      fields:\n{fields}"
    ).encode()


def _script(dice: random.Random) -> bytes:
    words = (f"install part-{dice.randrange(10_000)} --quiet" for _ in range(_SCRIPT_SIZE // 27))
    return ("#!/bin/sh\n" + "\n".join(words) + "\n").encode()
