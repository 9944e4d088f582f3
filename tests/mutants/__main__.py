# SPDX-License-Identifier: Apache-2.0

"""Try the mutants of some areas, or of all; exit with 1 if more of them survive than allowed."""

import argparse
import contextlib
import os
import pathlib
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.testing import run_tests
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkItem, WorkResult

from tests.mutants import covering, sample

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
RUNS = ROOT / ".cache" / "mutants"
_PYTHON = ROOT / ".venv" / "bin" / "python"
# How many of a hundred mutants that change something may survive.
MOST = 3
# The longest time for all tests of a mutant, and for one of them, in seconds. A mutant that takes
# longer is noticed.
_SECONDS = 1800
_TEST_SECONDS = 60
# The tests of single modules. Few of them start a program.
_UNIT = "tests/unit/"


class MutantsError(Exception):
    """The mutants cannot be tried, or too many survive."""


class Survivor(NamedTuple):
    """A mutant that has passed all tests: its module, and the line before and after the change."""

    module: str
    before: str
    after: str


def main(arguments: Sequence[str]) -> None:
    """Try the mutants of the named areas, one area after another.

    :raises MutantsError: if too many mutants of an area survive.
    """
    areas = tomllib.loads((HERE / "areas.toml").read_text())
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("areas", nargs="*", choices=[[], *areas], metavar="AREA")
    reports = [_try_area(name, areas[name]) for name in parser.parse_args(arguments).areas or areas]
    if failed := [report for report in reports if report]:
        raise MutantsError("\n".join(failed))


def _try_area(name: str, area: Mapping[str, Any]) -> str:
    """Try the mutants of an area that have no result yet.

    :returns: why the area fails; empty if it passes.
    """
    folder = _copy(name)
    # Cosmic Ray reads and changes the modules below the current directory.
    with contextlib.chdir(folder), use_db(str(folder.with_suffix(".sqlite"))) as database:
        if not database.num_work_items:
            _check_unchanged(area["tests"])
            sample.draw(database, _modules(area))
        _try_pending(name, database, area["tests"])
        survivors = list(_survivors(database))
        count = database.num_work_items
    return _assess(name, survivors, count)


def _copy(name: str) -> pathlib.Path:
    """Copy the files of the last commit for an area, and return the directory of the copy.

    The files are written again in each run, since a run that was killed leaves a changed module.
    """
    commit = _output("git", "rev-parse", "--short=12", "HEAD")
    folder = RUNS / f"{name}-{commit}"
    folder.mkdir(parents=True, exist_ok=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, stdout=-1).stdout
    subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)
    for shared in (".cache", ".venv"):
        if not (folder / shared).exists():
            (folder / shared).symlink_to(ROOT / shared)
    # Python imports it as a program starts.
    begin = "from tests.mutants import program_lines\nprogram_lines.begin()\n"
    (folder / "sitecustomize.py").write_text(begin)
    return folder


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=-1, text=True).stdout.strip()


def _modules(area: Mapping[str, Any]) -> list[str]:
    """Return the paths of an area's modules, in the copy.

    :raises MutantsError: if a pattern finds none.
    """
    found, left_out = (
        {str(path) for pattern in area.get(key, ()) for path in _find(pattern)}
        for key in ("modules", "except")
    )
    return sorted(found - left_out)


def _find(pattern: str) -> list[pathlib.Path]:
    paths = list(pathlib.Path().glob(pattern))
    if not paths:
        raise MutantsError(f"{pattern} is not the path of a module")
    return paths


def _check_unchanged(tests: Sequence[str]) -> None:
    """Check that the tests pass without a change, in the copy, and record which lines each runs.

    :raises MutantsError: if they fail.
    """
    run = _pytest("-p", "tests.mutants.contexts", "-n", "2", *_files(tests))
    combine = shlex.join([str(_PYTHON), "-m", "coverage", "combine", "--quiet"])
    command = shlex.join(["sh", "-c", f"{run} && {combine}"])
    outcome, output = run_tests(command, _SECONDS)
    if outcome is not TestOutcome.SURVIVED:
        raise MutantsError(f"the tests fail without a change:\n{output[-4000:]}")


def _command(module: pathlib.Path, line: int, tests: Sequence[str]) -> str:
    """Return the command that tests a change of a module's line, and ends with the first failure.

    Only the tests that have run the line are run, or if none has, tests that start other programs.
    Tests in files that name the module run first, in a process of their own: most mutants
    fail there, and to collect all tests takes longer.
    """
    files = _files(tests)
    naming = {file for file in files if module.stem in pathlib.Path(file).read_text()}
    known = covering.tests(module, line)
    if not known:
        chosen = [file for file in files if file in naming or not file.startswith(_UNIT)]
        ordered = sorted(chosen, key=lambda file: file not in naming)
        return _of_file("all", ordered) + " -n 2 -m programs"
    selected = sorted(known, key=lambda test: (files.index(_file(test)), test))
    first = [test for test in selected if _file(test) in naming]
    others = [test for test in selected if _file(test) not in naming]
    runs = [_of_file("first", first)] if first else []
    runs += [_of_file("others", others) + " -n 2"] if others else []
    return shlex.join(["sh", "-c", " && ".join(runs)])


def _file(test: str) -> str:
    return test.partition("::")[0]


def _of_file(name: str, tests: Sequence[str]) -> str:
    """Write tests into a file, as a command has a limited length; return what runs them."""
    path = pathlib.Path(f"{name}.tests").resolve()
    path.write_text("\n".join(tests))
    return _pytest(f"@{path}")


def _pytest(*arguments: str) -> str:
    """Return a command that runs tests, and ends with the first failure or endless test."""
    options = ["-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no"]
    options += ["-o", f"timeout={_TEST_SECONDS}", "-o", "timeout_method=thread"]
    return shlex.join([str(_PYTHON), "-m", "pytest", *options, *arguments])


def _files(tests: Sequence[str]) -> list[str]:
    paths = map(pathlib.Path, tests)
    found = [sorted(path.rglob("test_*.py")) if path.is_dir() else [path] for path in paths]
    return [str(file) for files in found for file in files]


def _try_pending(name: str, database: WorkDB, tests: Sequence[str]) -> None:
    pending = database.pending_work_items
    for number, item in enumerate(pending, database.num_results + 1):
        (change,) = item.mutations
        start = time.monotonic()
        command = _command(change.module_path, change.start_pos[0], tests)
        result = mutate_and_test([change], command, _SECONDS)
        database.set_result(item.job_id, result)
        outcome = result.test_outcome.value if result.test_outcome else result.worker_outcome.value
        print(
            f"{name} {number}/{database.num_work_items}: {change.module_path}:"
            f"{change.start_pos[0]} {outcome} in {time.monotonic() - start:.0f} s",
            flush=True,
        )


def _survivors(database: WorkDB) -> Iterator[Survivor]:
    for item, result in database.completed_work_items:
        if result.test_outcome is TestOutcome.SURVIVED:
            yield _survivor(item, result)


def _survivor(item: WorkItem, result: WorkResult) -> Survivor:
    """Return what a mutant has changed; each changes one place."""
    (change,) = item.mutations
    changed: dict[str, list[str]] = {"-": [], "+": []}
    for line in (result.diff or "").splitlines():
        if line[:1] in changed and line[:3] not in ("---", "+++"):
            changed[line[0]].append(line[1:].strip())
    return Survivor(str(change.module_path), *(" ".join(lines) for lines in changed.values()))


def _assess(name: str, survivors: Sequence[Survivor], count: int) -> str:
    """Print the survivors of an area; return why it fails, or nothing."""
    listed = tomllib.loads((HERE / "without_effect.toml").read_text()).get(name, [])
    without_effect = {Survivor(each["module"], each["before"], each["after"]) for each in listed}
    found = [each for each in survivors if each not in without_effect]
    for each in found:
        print(f"{name}: {each.module}\n    - {each.before}\n    + {each.after}")
    changing = count - (len(survivors) - len(found))
    summary = f"{name}: {len(found)} of {changing} mutants that change something survive"
    print(summary, flush=True)
    return summary if len(found) * 100 > MOST * changing else ""


if __name__ == "__main__":
    try:
        os.environ.pop("FULL_TESTS", None)
        main(sys.argv[1:])
    except MutantsError as error:
        sys.exit(f"mutants: {error}")
