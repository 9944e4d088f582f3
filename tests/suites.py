# SPDX-License-Identifier: Apache-2.0

"""The comparison of another project's own tests, without this project's changes and with them."""

import contextlib
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator


class SuiteError(Exception):
    """The tests did not run, or a test fails with the changes; the message names it."""


def wait(process: "subprocess.Popen[bytes]", output: str, may_fail: bool = False) -> None:
    """Wait for the tests.

    :param may_fail: whether the program exits with 1 if some of them fail.
    :raises SuiteError: with the end of the output if not all could be run.
    """
    if process.wait() not in ((0, 1) if may_fail else (0,)):
        raise SuiteError(f"the tests did not run:\n{output[-4000:]}")


def compare(fewest: int, project: str, changes: str, without: set[str], changed: set[str]) -> str:
    """Return the counts of the tests that pass.

    :param fewest: how many must pass without the changes.
    :param changes: such as ``the patches``.
    :param without: the names of the tests that pass without the changes.
    :param changed: of those that pass with them.
    :raises SuiteError: if a test passes only without the changes, or too few pass.
    """
    tests = f"{project}'s tests"
    if len(without) < fewest:
        raise SuiteError(f"only {len(without)} of {tests} pass, expected {fewest} or more")
    if broken := sorted(without - changed):
        raise SuiteError(f"pass without {changes}, but not with them:\n" + "\n".join(broken))
    return f"{len(without)} of {tests} pass without {changes}, {len(changed)} with them"


@contextlib.contextmanager
def running(*processes: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Kill the processes that are left at the end."""
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def report(target: str, run: Callable[[pathlib.Path], str]) -> int:
    """Run a comparison in a temporary directory, and print its result.

    :param target: of the Makefile.
    :param run: returns what to print.
    :returns: the exit code.
    """
    with tempfile.TemporaryDirectory(prefix=f"{target}-") as directory:
        try:
            print(run(pathlib.Path(directory)))
        except SuiteError as error:
            print(f"{target}: {error}", file=sys.stderr)
            return 1
    return 0
