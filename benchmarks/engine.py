# SPDX-License-Identifier: Apache-2.0

"""Murano's engine with two loaders in turn: this project's, and Murano's own.

It is a process of its own, since the engine and Glare cannot be in one. Its
output is one line of JSON: how long ours takes, Murano's being 1.

Each loader has a session that has its token already: Keystone takes the same to
give one to either, and what it takes is not the loader's.
"""

import functools
import json
import os
import pathlib
import sys
import uuid
from collections.abc import Callable
from typing import Any

# First: it makes the standard library cooperative, as in the engine's service.
from murano.cmd import engine as _  # noqa: F401
from murano.common import auth_utils
from murano.common import config as murano_config
from murano.dsl import helpers
from murano.engine import execution_session
from murano.engine import package_loader as murano_package_loader

from benchmarks import closure
from benchmarks.measure import ratio, wall
from loader.engine import adapter, patches

CONF = murano_config.CONF

_MakeLoader = Callable[[Any], Any]

_OURS: _MakeLoader = adapter.EnginePackageLoader
# What install() puts another in the place of.
_THEIRS: _MakeLoader = murano_package_loader.CombinedPackageLoader

_COLD_ROUNDS = 9
_WARM_ROUNDS = 15


class _Task:
    """Tasks of the engine, which load the application and all that it requires.

    The configuration stays as it is from task to task, as in an engine: to change
    it makes oslo.config forget all that it has read. So both loaders use one
    folder, in which neither touches what is the other's.
    """

    def __init__(self, root: pathlib.Path, token: str, project_id: str) -> None:
        self._root = root
        CONF.set_override("packages_cache", str(root), "engine")
        self._session = execution_session.ExecutionSession()
        self._session.token = token
        self._session.project_id = project_id

    def load(self, make_loader: _MakeLoader) -> None:
        """Load the packages."""
        with make_loader(self._session) as loader:
            _load(loader)

    def unpack(self, make_loader: _MakeLoader) -> None:
        """Load the packages, and have a file of each: Murano's loader unpacks them all."""
        with make_loader(self._session) as loader:
            for package in _load(loader):
                if package.name != closure.CORE:
                    assert pathlib.Path(package.get_resource(closure.RESOURCE)).is_file()

    def forget(self) -> None:
        """Go on with empty caches; the old ones stay, since to remove them would be measured."""
        CONF.set_override("packages_cache", str(self._root / uuid.uuid4().hex), "engine")
        # What was written before is not the next one's to wait for.
        os.sync()


def _load(loader: Any) -> list[Any]:
    spec = helpers.parse_version_spec(closure.RANGE)
    found = {}
    # As for an object of the model, and then as the engine reaches what is required.
    queue = [loader.load_class_package(closure.MAIN_CLASS, spec)]
    while queue:
        package = queue.pop(0)
        if package.name not in found:
            found[package.name] = package
            queue += _required(loader, package)
    assert len(found) == closure.SIZE
    return list(found.values())


def _required(loader: Any, package: Any) -> list[Any]:
    return [
        loader.load_package(name, spec)
        for name, spec in package.requirements.items()
        if name != package.name
    ]


def main() -> None:
    """Measure with empty and with full caches."""
    configuration, token, project_id, folder = sys.argv[1:]
    murano_config.parse_args(["--config-file", configuration])
    # Murano's loader asks Glare, if it is glare; ours does not look.
    CONF.set_override("packages_service", "murano", "engine")
    patches.install()
    auth_utils.get_client_session = functools.cache(auth_utils.get_client_session)
    task = _Task(pathlib.Path(folder), token, project_id)

    cold = ratio(
        lambda: task.unpack(_OURS),
        lambda: task.unpack(_THEIRS),
        _COLD_ROUNDS,
        before=task.forget,
        clock=wall,
    )
    warm = ratio(lambda: task.load(_OURS), lambda: task.load(_THEIRS), _WARM_ROUNDS, clock=wall)
    print(json.dumps({"cold": cold, "warm": warm}))


if __name__ == "__main__":
    main()
