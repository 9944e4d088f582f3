# SPDX-License-Identifier: Apache-2.0

"""Run Murano's tempest plug-in and the functional tests of python-muranoclient.

    python suite_process.py

This program runs in tempest's environment, and imports nothing of this project. The first line of
the output is a JSON list of the names of all tests. Then the program reads from its input the
names of the tests to run, one on each line. After each test it writes a line with the outcome, a
JSON object, so that a killed run loses one test at most.
"""

import importlib
import itertools
import json
import os
import pathlib
import re
import sys
import unittest
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

# The package to search for tests, below the package that is the top of its modules' names.
_SUITES = (("murano_tempest_tests", "tests"), ("muranoclient", "tests/functional"))
# The worse of several results of one test counts, such as those of a test and of its cleanup.
_WORST_LAST = ("passed", "skipped", "failed")


class _Outcomes(unittest.TestResult):
    """Writes the outcome of each test when the test has ended."""

    def __init__(self, output: TextIO) -> None:
        super().__init__()
        self._output = output
        self._written: set[str] = set()
        # The outcome so far of the running test, or of the fixture of a class.
        self._current = ("passed", "")

    def run_class(self, tests: Sequence[unittest.TestCase]) -> None:
        """Run the tests of a class.

        If its fixture fails or is skipped, this is the outcome of the tests that cannot run.
        """
        self._current = ("passed", "")
        unittest.TestSuite(tests).run(self)
        # Else the next class would remove the fixture again.
        self._previousTestClass = None
        names = [_name(test) for test in tests]
        missing = [name for name in names if name not in self._written]
        # After the last test, only what removes the fixture can fail.
        name, result = f"{unittest.util.strclass(type(tests[0]))}.tearDownClass", self._current
        for each in missing or [name] * (result[0] == "failed"):
            self._write(each)

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - of unittest
        super().startTest(test)
        self._current = ("passed", "")

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().stopTest(test)
        self._write(_name(test))
        self._current = ("passed", "")

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        super().addError(test, err)
        self._keep("failed", self.errors[-1][1])

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        super().addFailure(test, err)
        self._keep("failed", self.failures[-1][1])

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        super().addSkip(test, reason)
        self._keep("skipped", reason)

    def _keep(self, result: str, reason: str) -> None:
        before, reasons = self._current
        self._current = (max(before, result, key=_WORST_LAST.index), reasons + str(reason))

    def _write(self, name: str) -> None:
        self._written.add(name)
        result, reason = self._current
        self._output.write(json.dumps({"test": name, "result": result, "reason": reason}) + "\n")
        self._output.flush()


def _name(test: unittest.TestCase) -> str:
    """Return the name of a test without tempest's id and attributes of the test."""
    return re.sub(r"\[.*\]$", "", test.id())


def _tests() -> Iterator[unittest.TestCase]:
    """Yield the tests of all suites, one class after another."""
    for package, directory in _SUITES:
        top = pathlib.Path(str(importlib.import_module(package).__file__)).parent
        loader = unittest.TestLoader()
        yield from _flat(loader.discover(str(top / directory), top_level_dir=str(top.parent)))


def _flat(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from _flat(each)
        else:
            yield each


def main() -> None:
    """List all tests, and run those that the input names."""
    # Tests and their libraries may print.
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    tests = list(_tests())
    output.write(json.dumps([_name(test) for test in tests]) + "\n")
    output.flush()
    outcomes = _Outcomes(output)
    chosen = set(sys.stdin.read().split())
    waiting = [test for test in tests if _name(test) in chosen]
    for _, group in itertools.groupby(waiting, type):
        outcomes.run_class(list(group))


if __name__ == "__main__":
    main()
