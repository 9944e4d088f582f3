# SPDX-License-Identifier: Apache-2.0

"""The program of a child process, which runs the function of a package type.

It reads the archive from its standard input, sets its limits, and writes the description,
or the problems of the package, to its standard output as JSON. ``sandbox`` starts it.
"""

import json
import math
import os
import resource
import signal
import sys
from typing import Any

from glare_murano.package import Archive, InvalidPackage, Limits, package_types, read_manifest
from glare_murano.package.sandbox import OUT_OF_MEMORY

_MAX_FILES = 256


def main() -> None:
    """Describe the package; what the plug-in prints goes to the standard error."""
    seconds, memory, archive_limits = json.loads(sys.argv[1])
    answer = open(os.dup(1), "w", encoding="utf-8")  # noqa: SIM115 - closed with the process
    os.dup2(2, 1)
    _limit(math.ceil(seconds) + 1, memory, archive_limits)
    try:
        content = _describe(archive_limits)
    except MemoryError:
        # Nothing else works reliably without memory.
        os._exit(OUT_OF_MEMORY)
    with answer:
        json.dump(content, answer)
    # sys.exit would wait for threads that the plug-in has left behind.
    sys.stderr.flush()
    os._exit(0)


def _limit(seconds: int, memory: int, archive_limits: list[int]) -> None:
    """Set the limits of this process, which stay in force if the parent is killed."""
    unpacked_size = archive_limits[1]
    for kind, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, unpacked_size),
        (resource.RLIMIT_NOFILE, _MAX_FILES),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (value, value))
    signal.alarm(seconds)


def _describe(archive_limits: list[int]) -> dict[str, Any]:
    try:
        with Archive.open(sys.stdin.buffer, Limits(*archive_limits)) as archive:
            description = package_types.call(read_manifest(archive), archive)
    except InvalidPackage as error:
        return {"problems": [[p.rule, p.where, p.message, p.line] for p in error.problems]}
    for name, bases in description.classes.items():
        if isinstance(bases, str):
            raise TypeError(f"{name}: expected a list of base classes, found a string")
    return {
        "classes": {name: list(bases) for name, bases in description.classes.items()},
        "requirements": dict(description.requirements),
        "ui": description.ui,
    }


if __name__ == "__main__":
    main()
