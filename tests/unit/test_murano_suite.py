# SPDX-License-Identifier: Apache-2.0

import pathlib
import subprocess
import sys

import pytest

from tests import murano_suite, suites

TESTS = {f"test_{number}" for number in range(murano_suite._FEWEST)}


def test_more_tests_may_pass_with_the_patches() -> None:
    assert murano_suite.compare(TESTS, TESTS | {"test_more"}).endswith("701 with them")


def test_a_test_that_the_patches_break_is_named() -> None:
    with pytest.raises(suites.SuiteError, match=r"not with them:\ntest_7$"):
        murano_suite.compare(TESTS, TESTS - {"test_7"})


def test_too_few_tests_are_an_error() -> None:
    with pytest.raises(suites.SuiteError, match="only 1 of Murano's tests pass"):
        murano_suite.compare({"test_1"}, {"test_1"})


def test_tests_that_cannot_be_collected_are_an_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "output").write_text("2 errors in 1.2s")
    with (
        subprocess.Popen([sys.executable, "-c", "exit(2)"]) as process,
        pytest.raises(suites.SuiteError, match="2 errors in"),
    ):
        murano_suite.passed(tmp_path, process)
