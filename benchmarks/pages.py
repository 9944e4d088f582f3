# SPDX-License-Identifier: Apache-2.0

"""The time and the memory for the pages of a large catalogue."""

import json
import pathlib
import random
import subprocess
import sys
from collections.abc import Iterator

from benchmarks import closure
from benchmarks.measure import Figure, scratch
from tests import packages

_PACKAGES = 2000
_FEW = 200
_VERSIONS = 5
# A package requires only packages in its group of so many.
_TOGETHER = 30
_MIB = 1024**2


def large_catalogue() -> Iterator[Figure]:
    """Render 10,000 releases, and then once more after one new release of an application.

    Nothing requires the application. A new release of a library also changes the pages of the
    packages whose plans take it.
    """
    small, large = (_catalogue(number) for number in (_FEW, _PACKAGES))
    target = scratch() / "pages"
    first = _render(large, target)
    yield Figure("pages of 10,000 releases", first["seconds"], "s", 300)
    few = _render(small, scratch() / "pages")
    yield Figure(
        "memory for pages, 10,000 releases / 1,000", first["memory"] / few["memory"], "times", 1.5
    )
    yield Figure("memory of a process that reads", first["workers"] / _MIB, "MiB", 88)
    _write(large, _PACKAGES - 1, _VERSIONS)
    again = _render(large, target)
    yield Figure(
        "pages after one more release / all", again["seconds"] / first["seconds"], "", 0.27
    )
    # The application, and packages that this or the former release uses.
    yield Figure("packages with new pages after one more release", again["written"], "", 8)


def _catalogue(number: int) -> pathlib.Path:
    folder = scratch() / "packages"
    folder.mkdir()
    for package in range(number):
        for version in range(_VERSIONS):
            _write(folder, package, version)
    return folder


def _write(folder: pathlib.Path, number: int, version: int) -> None:
    """Write a release; each package requires up to two of those before it among thirty."""
    fqn = f"org.bench.Package{number}"
    dice = random.Random(f"{number} {version}")
    before = range(number - number % _TOGETHER, number)
    required = dice.sample(before, min(len(before), 2))
    content = closure.files(
        fqn,
        dice,
        Version=f"1.{version}.0",
        Require={f"org.bench.Package{each}": "1" for each in required},
    )
    (folder / f"{number}.{version}.zip").write_bytes(packages.zipped(content))


def _render(folder: pathlib.Path, target: pathlib.Path) -> dict[str, float]:
    """Render in a process of its own; see ``pages_process``."""
    command = [sys.executable, "-m", "benchmarks.pages_process", str(folder), str(target)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


BENCHMARKS = (large_catalogue,)
