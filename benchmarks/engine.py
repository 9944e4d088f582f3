# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
from typing import Any

# First: it makes the standard library cooperative, as in the engine's service.
from murano.cmd import engine as _  # noqa: F401
from murano.common import auth_utils
from murano.common import config as murano_config
from murano.dsl import helpers
from murano.engine import execution_session
from murano.engine import package_loader as murano_package_loader

from benchmarks import closure
from benchmarks.measure import ratio
from benchmarks.measure import wall
from loader import engine

CONF = murano_config.CONF

_OURS = "glare"
_THEIRS = "murano"
_COLD_ROUNDS = 9
_WARM_ROUNDS = 15


class _Task:
    """A task of the engine, which loads the application and all that it requires."""

    def __init__(self, root: pathlib.Path, token: str, project_id: str) -> None:
        self._root = root
        self._folder = root
        self._session = execution_session.ExecutionSession()
        self._session.token = token
        self._session.project_id = project_id

    def run(self, service: str) -> None:
        """Load through the service ``glare`` or ``murano``, each with a cache of its own."""
        CONF.set_override("packages_service", service, "engine")
        CONF.set_override("packages_cache", str(self._folder / service), "engine")
        spec = helpers.parse_version_spec(closure.RANGE)
        with murano_package_loader.CombinedPackageLoader(self._session) as loader:
            found = {}
            # As for an object of the model, and then as the engine reaches what is required.
            queue = [loader.load_class_package(closure.MAIN_CLASS, spec)]
            while queue:
                package = queue.pop(0)
                if package.name not in found:
                    found[package.name] = package
                    queue += _required(loader, package)
        assert len(found) == closure.SIZE

    def forget(self) -> None:
        """Go on with empty caches; the old ones stay, since to remove them would be measured."""
        self._folder = self._root / uuid.uuid4().hex
        # What was written before is not the next one's to wait for.
        os.sync()


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
    engine.install()
    auth_utils.get_client_session = functools.cache(auth_utils.get_client_session)
    task = _Task(pathlib.Path(folder), token, project_id)

    def theirs() -> None:
        task.run(_THEIRS)

    def ours() -> None:
        task.run(_OURS)

    cold = ratio(ours, theirs, _COLD_ROUNDS, before=task.forget, clock=wall)
    warm = ratio(ours, theirs, _WARM_ROUNDS, clock=wall)
    print(json.dumps({"cold": cold, "warm": warm}))


if __name__ == "__main__":
    main()
