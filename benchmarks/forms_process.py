# SPDX-License-Identifier: Apache-2.0

"""Murano's engine, which generates the schemas of a class again and again.

Each line of the input is the name of a class, and ``subclasses`` if its schemas list them; the
output is the processor time of the schemas in seconds. With this project's loader, the process is
prepared as by ``murano-glare-engine``; Murano's own engine is left as it is.
"""

import json
import sys
from typing import Any

# First: it makes the standard library cooperative, as in the engine's service.
from murano.cmd import engine as command  # noqa: F401 # isort: split
from murano.common import config as murano_config
from murano.common import engine as murano_engine

from benchmarks.measure import seconds
from loader import config
from loader.catalogs import options
from loader.engine import patches, shutdown


def main() -> None:
    """Generate schemas until the input ends."""
    configuration, token, project_id = sys.argv[1:]
    # Murano's objects of metadata outlive their executor, and fail when they are collected.
    sys.unraisablehook = lambda _: None
    murano_config.parse_args(["--config-file", configuration])
    options.register(murano_config.CONF, config.SERVICE_OPTIONS)
    if murano_config.CONF.engine.package_loader == config.CATALOGS:
        patches.install()
        shutdown.freeze_startup()
    owner = {"token": token, "project_id": project_id}
    for line in sys.stdin:
        name, *more = line.split()
        arguments: dict[str, Any] = {"class_name": name, "method_names": [], "class_version": None}
        arguments |= {"subclasses": True} if more else {}

        def generate(arguments: dict[str, Any] = arguments) -> None:
            found = murano_engine.SchemaEndpoint.generate_schema(owner, **arguments)
            assert found.keys() == {"", "build"}, found

        print(json.dumps(seconds(generate)), flush=True)


if __name__ == "__main__":
    main()
