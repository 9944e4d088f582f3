# SPDX-License-Identifier: Apache-2.0

"""Murano's engine with two loaders in turn: this project's, and Murano's own.

The engine and Glare cannot share a process, so this is a process of its own. The
output is a line of JSON: the times of this project's loader, as ratios to Murano's.

Both loaders get a session with a token. Keystone takes the same time
to issue a token to either.
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
from loader.engine import adapter, credentials, patches

CONF = murano_config.CONF

_MakeLoader = Callable[[Any], Any]

_OURS: _MakeLoader = adapter.EnginePackageLoader.for_task
# The class that install() replaces.
_THEIRS: _MakeLoader = murano_package_loader.CombinedPackageLoader

_COLD_ROUNDS = 9
_WARM_ROUNDS = 15


class _Task:
    """The engine's tasks, which load the application and its requirements.

    The tasks share a configuration, as in an engine: after a change, oslo.config
    reads everything again. So both loaders use one cache directory. Neither
    touches the other's files.
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
        """Load the packages, and request a file of each: Murano's loader unpacks all of them."""
        with make_loader(self._session) as loader:
            for package in _load(loader):
                resource = closure.resource(package.name)
                assert pathlib.Path(package.get_resource(resource)).is_file()

    def forget(self) -> None:
        """Use an empty cache from now on.

        The old cache stays: removing it would slow down the next task.
        """
        CONF.set_override("packages_cache", str(self._root / uuid.uuid4().hex), "engine")
        # The next task does not wait for the writes of the last one.
        os.sync()


def _load(loader: Any) -> list[Any]:
    spec = helpers.parse_version_spec(closure.RANGE)
    found = {}
    # The engine loads the class of an object first, then the package's requirements.
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
    """Measure both loaders with empty caches, then with full caches."""
    configuration, token, project_id, root = sys.argv[1:]
    murano_config.parse_args(["--config-file", configuration])
    patches.install()
    # Neither loader requests a token in each round.
    auth_utils.get_client_session = functools.cache(auth_utils.get_client_session)
    credentials.task_session = functools.cache(  # type: ignore[assignment]
        credentials.task_session
    )
    task = _Task(pathlib.Path(root), token, project_id)

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
