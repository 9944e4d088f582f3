# SPDX-License-Identifier: Apache-2.0

"""The outcomes of another project's tests: those that are expected, and those of a run.

``expected.yaml`` lists every test. An interrupted run keeps its outcomes in a file, and the next
run goes on from there.
"""

import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Self

import yaml

EXPECTED = pathlib.Path(__file__).with_name("expected.yaml")
PASSED = "passed"
_ENDED = "ended"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of a test.

    :param result: ``passed``, ``failed`` or ``skipped``.
    :param reason: the traceback, or why the test was skipped.
    """

    test: str
    result: str
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class Expectation:
    """The expected outcome of a test.

    :param shows: what the reason of the outcome contains.
    """

    result: str
    shows: str = ""

    def is_met(self, outcome: Outcome) -> bool:
        """Return whether an outcome is the expected one."""
        return outcome.result == self.result and self.shows in outcome.reason


def read_expected(cloud: str, file: pathlib.Path = EXPECTED) -> dict[str, Expectation]:
    """Return test -> its expected outcome in a cloud.

    :raises ValueError: if a test that does not pass has no reason.
    """
    found = {}
    for group, tests in yaml.safe_load(file.read_text()).items():
        for name, entry in tests.items():
            test = f"{group}.{name}"
            if entry != PASSED and not (entry["reason"] and entry["shows"]):
                raise ValueError(f"{file}: {test} has no reason, or does not say what it shows")
            is_passed = entry == PASSED or cloud not in entry.get("clouds", [cloud])
            found[test] = (
                Expectation(PASSED) if is_passed else Expectation(entry["result"], entry["shows"])
            )
    return found


def compare(
    expected: Mapping[str, Expectation], tests: Collection[str], outcomes: Iterable[Outcome]
) -> Iterator[str]:
    """Yield a line for each test with another outcome than expected.

    :param tests: the names of all existing tests.
    """
    ended = {outcome.test: outcome for outcome in outcomes}
    for test in sorted({*expected, *tests, *ended}):
        if test not in expected:
            yield f"{test} is not in {EXPECTED.name}"
        elif test not in tests:
            yield f"{test} does not exist any more"
        elif test not in ended:
            yield f"{test} did not run"
        elif not expected[test].is_met(ended[test]):
            wanted, found = expected[test], ended[test]
            shows = f" with {wanted.shows!r}" * bool(wanted.shows)
            yield f"{test} {found.result}, expected: {wanted.result}{shows}\n{found.reason}".strip()


class KeptOutcomes:
    """A file with the outcomes of a run, which grows with each test.

    :ivar outcomes: the outcomes so far.
    """

    def __init__(self, file: pathlib.Path, sources: str) -> None:
        """Open the file, and read the outcomes of an interrupted run.

        A run begins again if the last one has ended, or had other sources.

        :param sources: the digest of what is tested.
        """
        self.outcomes: list[Outcome] = []
        lines = file.read_text().splitlines() if file.exists() else []
        if lines[:1] == [sources] and lines[-1] != _ENDED:
            self.outcomes = list(_read(lines[1:]))
        file.parent.mkdir(parents=True, exist_ok=True)
        self._stream = file.open("w")
        self._write(sources)
        for outcome in self.outcomes:
            self._write(json.dumps(dataclasses.asdict(outcome)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def add(self, content: Any) -> Outcome:
        """Add an outcome, as the tests' own process writes it."""
        outcome = Outcome(**content)
        self.outcomes.append(outcome)
        self._write(json.dumps(content))
        return outcome

    def end(self) -> None:
        """Note that all tests have run."""
        self._write(_ENDED)

    def _write(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()


def _read(lines: Iterable[str]) -> Iterator[Outcome]:
    for line in lines:
        try:
            yield Outcome(**json.loads(line))
        except ValueError:
            # The run was killed while it wrote the last line.
            return


def digest(files: Iterable[pathlib.Path]) -> str:
    """Return the SHA-256 of files and their names."""
    found = hashlib.sha256()
    for file in sorted(files):
        found.update(f"{file}\0".encode() + file.read_bytes() + b"\0")
    return found.hexdigest()
