# SPDX-License-Identifier: Apache-2.0

"""A package whose code runs Python, as hostile code could after it has broken out of YAQL.

An extension plug-in gives the package a method that runs Python in the process that evaluates it.
"""

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from murano.common import engine as murano_engine

from glare_murano.package.sandbox import warm_processes
from loader.engine import adapter
from loader.engine.cells import warm
from loader.engine.extensions import NAMESPACE
from tests import packages, plugins
from tests.integration import tasks

_DISTRIBUTION = "test-python"
# What a package requires to run Python.
REQUIRE = {_DISTRIBUTION: "1"}

_PYTHON = """
import ctypes, gc, json, os, pathlib, signal, socket, subprocess, sys, time

class Python:
    @staticmethod
    def run(code):
        found = {**globals(), "result": None}
        try:
            exec(code, found)
        except Exception as error:
            return type(error).__name__
        return found["result"]
"""
_RUNNING = """
Namespaces: {{ext: org.test.ext}}
Name: {name}.Thing
Properties:
  size:
    Contract: $.int()
    Usage: InOut
Methods:
  go:
    Scope: Public
    Usage: Static
    Arguments:
      - code: {{Contract: $.string().notNull()}}
    Body:
      - Return: !yaql "ext:Python.run($code)"
  act:
    Scope: Public
    Arguments:
      - code: {{Contract: $.string().notNull()}}
    Body:
      - $.size: 5
      - Return: !yaql "ext:Python.run($code)"
"""


NAME = "org.test.out"


class Package:
    """A package with a class ``Thing``, whose methods run Python."""

    def __init__(self, name: str, folder: pathlib.Path) -> None:
        """Name the package, and the directory from which the engine loads it."""
        self.class_name = f"{name}.Thing"
        self.folder = folder

    def call_static(self, code: str) -> Any:
        """Run Python in a static action; return its result, or the name of its error."""
        return tasks.call_static(self.class_name, "go", code=code)

    def act(self, code: str) -> Any:
        """Run Python in an action of an object; return the answer of the engine."""
        header = {"type": self.class_name}
        return tasks.run(header, action=tasks.action("object", "act", code=code))


def install(site: plugins.Site) -> None:
    """Install the plug-in."""
    point = {"org.test.ext.Python": "python_plugin:Python"}
    site.install(_DISTRIBUTION, "1.0.0", {NAMESPACE: point}, {"python_plugin": _PYTHON})


@pytest.fixture(scope="module")
def installed(engine_conf: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Package]:
    """The package, in a directory of its own, with its plug-in."""
    folder = tmp_path_factory.mktemp("break_out")
    (folder / "site").mkdir()
    with plugins.activated(folder / "site") as site, pytest.MonkeyPatch.context() as patch:
        install(site)
        patch.setattr(murano_engine, "PLUGIN_LOADER", adapter.PluginLoader())
        # The process from which cells are forked imports the plug-ins when it starts.
        warm_processes.end(warm.NAME)
        content = packages.content(NAME, Require=REQUIRE)
        content["Classes/Thing.yaml"] = _RUNNING.format(name=NAME).encode()
        packages.write(folder / "packages" / NAME, content)
        yield Package(NAME, folder / "packages")
