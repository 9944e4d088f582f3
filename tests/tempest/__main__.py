# SPDX-License-Identifier: Apache-2.0

"""Run Murano's own tests against the real Murano, alone, over Glare and over Glance.

    python -m tests.tempest [--only WORD] [CLOUD...]

These are the tests of Murano's tempest plug-in, with those of the service broker, and the
functional tests of python-muranoclient. ``expected.yaml`` has the expected outcome of each in each
cloud. If the command is interrupted, the next run goes on with the tests that have not run.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence

from tests import prerequisites, processes
from tests.functional import keystone
from tests.tempest import murano_clouds, outcomes
from tests.tempest.murano_clouds import CLOUDS, ENVIRONMENTS, MuranoCloud
from tests.tempest.outcomes import Expectation, KeptOutcomes, Outcome

_CLIENT = ENVIRONMENTS / "client" / "bin"
_SUITES = pathlib.Path(__file__).with_name("suite_process.py")
# What a change of makes the outcomes of an interrupted run invalid.
_SOURCES = ("constraints.txt", "glare_murano", "loader", "tests/tempest")
# The longest time of a test, in seconds.
_TEST_SECONDS = 900

_CONF = """\
[DEFAULT]
debug = true
log_file = {folder}/tempest.log

[auth]
admin_domain_name = Default
admin_password = {password}
admin_project_name = admin
admin_username = admin
create_isolated_networks = false

[identity]
auth_version = v3
region = RegionOne
uri_v3 = {url}

[identity-feature-enabled]
api_v2 = false

[oslo_concurrency]
lock_path = {folder}

[service_available]
cinder = false
glance = false
murano = true
murano_cfapi = true
neutron = false
nova = false
swift = false

[service_broker]
run_service_broker_tests = true
"""


def main(arguments: Sequence[str]) -> int:
    """Run the tests, and print those with an unexpected outcome.

    :returns: the exit code: 1 if there are such tests.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.tempest")
    parser.add_argument("clouds", nargs="*", metavar="CLOUD", help=f"one of {', '.join(CLOUDS)}")
    parser.add_argument("--only", metavar="WORD", help="run the tests whose names contain the word")
    given = parser.parse_args(arguments)
    if unknown := set(given.clouds) - CLOUDS.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if missing := prerequisites.missing(
        prerequisites.mariadb,
        prerequisites.rabbitmq,
        prerequisites.swift,
        prerequisites.glance,
        prerequisites.core_library,
    ):
        print(missing, file=sys.stderr)
        return 1
    # So that services and databases are removed if make is stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    problems = []
    for name in given.clouds or CLOUDS:
        found = list(run(CLOUDS[name], given.only))
        problems += [f"{name}: {problem}" for problem in found]
    print("\n".join(problems), file=sys.stderr)
    print(f"unexpected outcomes: {len(problems)}", file=sys.stderr)
    return 1 if problems else 0


def run(cloud: MuranoCloud, only: str | None) -> Iterator[str]:
    """Run the tests in a cloud, and yield a line for each unexpected outcome.

    :param only: a part of the names of the tests to run; None runs all, and keeps their outcomes.
    """
    expected = outcomes.read_expected(cloud.name)
    file = ENVIRONMENTS / "outcomes" / (f"{cloud.name}-{only}" if only else cloud.name)
    if only:
        file.unlink(missing_ok=True)
        expected = {test: each for test, each in expected.items() if only in test}
    with KeptOutcomes(file, outcomes.digest(_sources())) as kept:
        if kept.outcomes:
            print(f"{cloud.name}: going on after {len(kept.outcomes)} tests", flush=True)
        tests = [test for test in _run(cloud, kept, expected, only) if not only or only in test]
        kept.end()
    _print_counts(cloud.name, kept.outcomes)
    yield from outcomes.compare(expected, tests, kept.outcomes)


def _run(
    cloud: MuranoCloud, kept: KeptOutcomes, expected: dict[str, Expectation], only: str | None
) -> list[str]:
    """Run the tests that have no outcome, and return the names of all."""
    folder = ENVIRONMENTS / "runs" / cloud.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with cloud.running(folder) as identity, _tests(folder, identity) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        names = json.loads(process.stdout.readline())
        done = {outcome.test for outcome in kept.outcomes}
        waiting = [name for name in names if name not in done and (not only or only in name)]
        process.stdin.write("\n".join(waiting))
        process.stdin.close()
        for number, line in enumerate(process.stdout, 1):
            outcome = kept.add(json.loads(line))
            wanted = expected.get(outcome.test)
            remark = "" if wanted and wanted.is_met(outcome) else " (unexpected)"
            count = f"{number}/{len(waiting)}"
            print(f"{cloud.name} {count} {outcome.test} {outcome.result}{remark}", flush=True)
        if process.wait():
            raise RuntimeError(f"the tests ended with {process.returncode}; see {folder}")
    return list(names)


@contextlib.contextmanager
def _tests(folder: pathlib.Path, identity: keystone.Keystone) -> Iterator["subprocess.Popen[str]"]:
    """Start the process of the tests."""
    conf = _CONF.format(folder=folder, password=keystone.PASSWORD, url=identity.url)
    (folder / "tempest.conf").write_text(conf)
    environment = {
        **murano_clouds.administrator(identity),
        "OS_MURANOCLIENT_EXEC_DIR": str(_CLIENT),
        "OS_TEST_TIMEOUT": str(_TEST_SECONDS),
        "PATH": f"{_CLIENT}:{os.environ['PATH']}",
        "TEMPEST_CONFIG": "tempest.conf",
        "TEMPEST_CONFIG_DIR": str(folder),
    }
    with (
        (folder / "tests.out").open("w") as errors,
        subprocess.Popen(
            [_CLIENT / "python", "-W", "ignore", _SUITES],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def _print_counts(cloud: str, found: Iterable[Outcome]) -> None:
    """Print how many tests of each directory have each outcome."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for outcome in found:
        counts[_part(outcome.test)][outcome.result] += 1
    for part, results in sorted(counts.items()):
        listed = ", ".join(f"{count} {result}" for result, count in sorted(results.items()))
        print(f"{cloud}: {part}: {listed}", flush=True)


def _part(test: str) -> str:
    """Return the directory of a test, without the parts that all tests have."""
    module, _, _ = test.rpartition(".test_")
    names = module.split(".test_", 1)[0].split(".")
    return ".".join(name for name in names if name not in ("tests", "murano_tempest_tests"))


def _sources() -> Iterator[pathlib.Path]:
    for source in _SOURCES:
        path = processes.ROOT / source
        found = path.rglob("*") if path.is_dir() else [path]
        for each in found:
            if each.is_file() and each.suffix != ".pyc" and each != outcomes.EXPECTED:
                yield each


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
