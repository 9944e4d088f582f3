# SPDX-License-Identifier: Apache-2.0

"""The lines that programs run which tests have started; not those of the tests' own process.

Coverage writes what it has measured as a program ends, but tests kill their programs, and a program
may serve many tests. So each line is written as it runs, with the test that runs then.
"""

import contextlib
import os
import pathlib
import sys
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

# The directory of a record, in the environment of the programs.
_VARIABLE = "MUTANTS_LINES"
_ROOT = str(pathlib.Path(__file__).parents[2])
_PACKAGES = (f"{_ROOT}/glare_murano/", f"{_ROOT}/loader/")
# The length of a test's name in its file, in bytes.
_LENGTH = 1000

Trace = Callable[[FrameType, str, Any], Any]


def prepare(folder: pathlib.Path) -> int:
    """Let the programs that this process starts write their lines into an empty directory.

    :returns: a descriptor for ``name_test``. It stays open, since a test may become another user.
    """
    (folder / "lines").touch()
    test = os.open(folder / "test", os.O_WRONLY | os.O_CREAT, 0o600)
    name_test(test, "")
    # A copy of the project has a "sitecustomize", which calls begin().
    os.environ.update({_VARIABLE: str(folder), "PYTHONPATH": _ROOT})
    return test


def name_test(descriptor: int, test: str) -> None:
    """Name the test that runs from now on; empty for none."""
    # The file is not truncated: a program may read it at any time.
    os.pwrite(descriptor, test.encode().ljust(_LENGTH), 0)


def read(folder: pathlib.Path) -> Mapping[str, Mapping[str, set[int]]]:
    """Return the lines of each file that programs have run, by test."""
    found: dict[str, dict[str, set[int]]] = {}
    for each in (folder / "lines").read_text().splitlines():
        test, path, line = each.split("\t")
        found.setdefault(test, {}).setdefault(path, set()).add(int(line))
    return found


def begin() -> None:
    """Write down the lines of this process from now on, if its tests want them."""
    if _VARIABLE not in os.environ:
        return
    folder = pathlib.Path(os.environ[_VARIABLE])
    trace = _tracer(
        os.open(folder / "test", os.O_RDONLY),
        os.open(folder / "lines", os.O_WRONLY | os.O_APPEND),
    )
    threading.settrace(trace)
    sys.settrace(trace)


def _tracer(test: int, lines: int) -> Trace:
    """Return a function that traces the code of this project.

    :param test: the descriptor of the file with the test's name.
    :param lines: the descriptor of the file for the lines.
    """
    written = set()

    def call(frame: FrameType, event: str, argument: Any) -> Trace | None:
        return line if frame.f_code.co_filename.startswith(_PACKAGES) else None

    def line(frame: FrameType, event: str, argument: Any) -> Trace:
        # A child may have closed the files.
        with contextlib.suppress(OSError):
            name = os.pread(test, _LENGTH, 0).decode().strip()
            found = f"{name}\t{frame.f_code.co_filename}\t{frame.f_lineno}\n"
            if found not in written:
                written.add(found)
                os.write(lines, found.encode())
        return line

    return call
