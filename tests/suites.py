# SPDX-License-Identifier: Apache-2.0

"""The comparison of another project's own tests, without this project's changes and with them."""

import subprocess


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
