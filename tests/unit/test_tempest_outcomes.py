# SPDX-License-Identifier: Apache-2.0

"""The list of expected outcomes of Murano's tests, and the comparison with a run."""

import json
import pathlib
import subprocess
import sys

import pytest

from tests.tempest import outcomes
from tests.tempest.outcomes import Expectation, KeptOutcomes, Outcome

_FAILS = Expectation("failed", "404")
_EXPECTED = {"a.one": Expectation("passed"), "a.two": _FAILS}
_AS_EXPECTED = (Outcome("a.one", "passed"), Outcome("a.two", "failed", "NotFound: 404"))


def _problems(*found: Outcome, tests: tuple[str, ...] = ("a.one", "a.two")) -> list[str]:
    return list(outcomes.compare(_EXPECTED, tests, found))


def test_expected_outcomes_are_no_problem() -> None:
    assert _problems(*_AS_EXPECTED) == []


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (Outcome("a.two", "passed"), "a.two passed, expected: failed with '404'"),
        (Outcome("a.two", "skipped", "404"), "a.two skipped, expected: failed with '404'\n404"),
        (Outcome("a.two", "failed", "500"), "a.two failed, expected: failed with '404'\n500"),
    ],
)
def test_another_outcome_is_a_problem(found: Outcome, problem: str) -> None:
    assert _problems(_AS_EXPECTED[0], found) == [problem]


def test_each_test_has_to_run_and_to_be_listed() -> None:
    assert _problems(_AS_EXPECTED[0]) == ["a.two did not run"]
    assert _problems(*_AS_EXPECTED, tests=("a.one",)) == ["a.two does not exist any more"]
    new = Outcome("b.three", "passed")
    assert _problems(*_AS_EXPECTED, new) == ["b.three is not in expected.yaml"]


@pytest.mark.parametrize("cloud", ["stock", "glare", "glance"])
def test_the_list_has_a_reason_for_each_test_that_does_not_pass(cloud: str) -> None:
    expected = outcomes.read_expected(cloud)
    results = [each.result for each in expected.values()]
    assert set(results) == {"passed", "failed", "skipped"}
    assert results.count("passed") > 150


def test_a_missing_reason_is_refused(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "expected.yaml"
    file.write_text("a: {one: passed, two: {result: failed, shows: x, reason: ''}}")
    with pytest.raises(ValueError, match=r"a\.two has no reason"):
        outcomes.read_expected("stock", file)


def test_an_interrupted_run_goes_on_with_the_same_sources(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "kept" / "glare"
    with KeptOutcomes(file, "1") as kept:
        assert kept.outcomes == []
        kept.add({"test": "a.one", "result": "passed", "reason": ""})
    with file.open("a") as stream:
        stream.write('{"test": "a.tw')
    with KeptOutcomes(file, "1") as kept:
        assert kept.outcomes == [Outcome("a.one", "passed")]
        kept.end()
    with KeptOutcomes(file, "1") as ended:
        assert ended.outcomes == []
        ended.add({"test": "a.one", "result": "passed", "reason": ""})
    with KeptOutcomes(file, "2") as changed:
        assert changed.outcomes == []


_TESTS = """\
import unittest

class Broken(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise OSError("no server")

    def test_one(self):
        pass

class Mixed(unittest.TestCase):
    @classmethod
    def tearDownClass(cls):
        raise OSError("no client")

    def test_cleanup(self):
        self.addCleanup(self.fail, "left over")
        self.skipTest("not here")

    def test_good(self):
        print("noise")

class Skipped(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise unittest.SkipTest("no Nova")

    def test_one(self):
        pass
"""


def test_each_test_has_an_outcome_whatever_its_class_does(tmp_path: pathlib.Path) -> None:
    for package in ("murano_tempest_tests/tests", "muranoclient/tests/functional"):
        folder = tmp_path / package
        folder.mkdir(parents=True)
        for each in (folder, *folder.parents):
            if each.is_relative_to(tmp_path) and each != tmp_path:
                (each / "__init__.py").touch()
    (tmp_path / "murano_tempest_tests/tests/test_some.py").write_text(_TESTS)
    program = pathlib.Path(outcomes.__file__).with_name("suite_process.py")
    place = "murano_tempest_tests.tests.test_some"
    names = [f"{place}.{name}" for name in ("Broken.test_one", "Mixed.test_cleanup")]
    names += [f"{place}.{name}" for name in ("Mixed.test_good", "Skipped.test_one")]

    ended = subprocess.run(
        [sys.executable, program],
        env={"PYTHONPATH": str(tmp_path)},
        input="\n".join(names),
        capture_output=True,
        text=True,
        check=True,
    )

    listed, *lines = map(json.loads, ended.stdout.splitlines())
    assert listed == names
    found = {each["test"].removeprefix(f"{place}."): each for each in lines}
    assert {name: each["result"] for name, each in found.items()} == {
        "Broken.test_one": "failed",
        "Mixed.test_cleanup": "failed",
        "Mixed.test_good": "passed",
        "Mixed.tearDownClass": "failed",
        "Skipped.test_one": "skipped",
    }
    assert "no server" in found["Broken.test_one"]["reason"]
    assert "left over" in found["Mixed.test_cleanup"]["reason"]
