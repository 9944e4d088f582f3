# SPDX-License-Identifier: Apache-2.0

"""The ``openstack`` command: lists, publications, and the time until it prints help.

``list`` runs in this process, as the tests run it. Publications and help are processes of
their own, as users run them.
"""

import functools
import itertools
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence

from keystoneauth1 import session

from benchmarks import catalogue, server
from benchmarks.measure import Figure, ratio, scratch, seconds, wall
from glare_murano import fields
from tests import packages
from tests.functional.client import ARTIFACTS, Client
from tests.functional.openstack_command import OpenStack
from tests.processes import ROOT

_LISTED = 1_000
_PACKAGES = 50
_STARTS = 5
_PROGRAM = pathlib.Path(sys.executable).with_name("openstack")
# Glare's own limit of a page, which makes the fewest requests.
_MOST = 1_000


def listing() -> Iterator[Figure]:
    """Compare ``list`` with the fewest requests for the same packages.

    The time of Glare counts as well: while one of both works, the other waits.
    """
    with server.running(fields.TYPE_NAME) as running:
        catalogue.load(running.database, catalogue.artifacts(_LISTED * 5 // 4))
        token = f"user:{catalogue.owner(1)}:member"
        client = Client(running.url, token)
        command = OpenStack(scratch(), running.url, token)

        def list_packages() -> None:
            listed = command.ok("package", "list", "--all-versions", "-f", "value")
            assert listed.out.count("\n") >= _LISTED

        value = ratio(
            list_packages,
            lambda: _request_all(client.session(), running.url),
            rounds=5,
            clock=lambda: running.processor_time() + time.process_time(),
        )
    yield Figure(f"list of {_LISTED:,} packages / its requests", value, "times", 0.1)


def _request_all(requests: session.Session, url: str) -> None:
    path = f"{ARTIFACTS}?status=active&yanked=&sort=name:asc,version:desc&limit={_MOST}"
    count = 0
    while path:
        answer = requests.get(f"{url}{path}").json()
        count += len(answer["artifacts"])
        path = answer.get("next")
    assert count >= _LISTED


def publishing() -> Iterator[Figure]:
    """Compare one run for many packages with a run for each, as a loop in a shell has them.

    Each run is a process. The loop has a tenth of the packages, and counts ten times.
    """
    folder = scratch()
    paths = [
        packages.write(folder / f"package{n}", packages.content(f"org.p{n}"))
        for n in range(_PACKAGES)
    ]
    # A project can publish a version once.
    projects = itertools.count()
    with server.running(fields.TYPE_NAME) as running:
        core = packages.package("io.murano", "0.0.1")
        Client(running.url, "admin:admin:admin").publish("io.murano", "0.0.1", core, public=True)

        def publish(*runs: Sequence[pathlib.Path]) -> None:
            command = OpenStack(scratch(), running.url, f"user:project{next(projects)}:member")
            environment = {**os.environ, **command.environment}
            for run in runs:
                arguments = (str(_PROGRAM), "murano", "package", "publish", *map(str, run))
                subprocess.run(arguments, env=environment, capture_output=True, check=True)

        tenth = [[path] for path in paths[::10]]
        value = ratio(lambda: publish(paths), lambda: publish(*tenth), rounds=3, clock=wall) / 10
    yield Figure(f"publishing {_PACKAGES} by one run / by a run each", value, "times", 0.06)


def help_text() -> Iterator[Figure]:
    """Compare help with ``openstack --help`` in an environment without this project."""
    libraries, project = scratch(), scratch()
    for path in pathlib.Path(sysconfig.get_path("purelib")).iterdir():
        if path.name.startswith("glare_murano-"):
            (project / path.name).symlink_to(path)
        elif not path.name.startswith("__editable__"):
            (libraries / path.name).symlink_to(path)
    for package in ("glare_murano", "loader"):
        (project / package).symlink_to(ROOT / package)

    def run(*arguments: str, folders: Sequence[pathlib.Path]) -> None:
        # -S: otherwise this project is found in the libraries of the interpreter.
        program = "import sys; from openstackclient.shell import main; sys.exit(main())"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
        output = subprocess.run(
            [sys.executable, "-S", "-c", program, *arguments],
            env=environment,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        assert ("murano package" in output) == (project in folders)

    without = functools.partial(run, "--help", folders=[libraries])
    for arguments in (["--help"], ["murano", "package", "publish", "--help"]):
        ours = functools.partial(run, *arguments, folders=[libraries, project])
        ours(), without()
        times = [(_children(ours), _children(without)) for _ in range(_STARTS)]
        value = statistics.median(ours - theirs for ours, theirs in times)
        name = " ".join(["openstack", *arguments])
        yield Figure(f"{name} / openstack --help without us", value, "s", 0.5)


def _children(action: Callable[[], object]) -> float:
    """Return the processor time of the processes that an action runs."""

    def clock() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    return seconds(action, clock=clock)


BENCHMARKS = (listing, publishing, help_text)
