# SPDX-License-Identifier: Apache-2.0

"""The demo as a user runs it: real processes, a real port."""

import itertools
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests import effort

COMMAND = [sys.executable, "-W", "ignore", "-m", "examples.demo"]

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
DELAYS = (0, 0.13, 0.37, 0.61)
# In the sample, each signal and each delay at least once.
INTERRUPTIONS = (
    itertools.product(SIGNALS, DELAYS)
    if effort.FULL
    else zip(itertools.cycle(SIGNALS), DELAYS, strict=False)
)


def _environment(tmp_path: pathlib.Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}


def test_the_demo_shows_what_the_whole_is_for(
    core_library: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    finished = subprocess.run(
        [*COMMAND, core_library],
        capture_output=True,
        text=True,
        timeout=120,
        env=_environment(tmp_path),
    )

    assert finished.returncode == 0, finished.stderr
    for line in (
        r"'status' returns .*\"uses\": \{\"org.example.db\": \"1.2.0\"\}",
        r"side by side: the wiki uses org.example.db 1.2.0, the shop 2.0.0",
        r"first keeps its pins: the wiki uses org.example.db 1.2.0",
        r"second takes the new version: the wiki uses org.example.db 1.3.0",
        r"deploy first +murano 0.0.0, db 1.2.0 and 2.0.0, .* \d+ +[\d,]+ +\d",
    ):
        assert re.search(line, finished.stdout), line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("number", "delay"), INTERRUPTIONS)
def test_an_interrupted_demo_leaves_nothing_behind(
    core_library: pathlib.Path, tmp_path: pathlib.Path, number: signal.Signals, delay: float
) -> None:
    with subprocess.Popen(
        [*COMMAND, core_library],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=_environment(tmp_path),
    ) as demo:
        assert demo.stdout is not None
        while "Deploying" not in (line := demo.stdout.readline()):
            assert line, "the demo ended too early"
        children = psutil.Process(demo.pid).children(recursive=True)
        time.sleep(delay)
        demo.send_signal(number)
        output, _ = demo.communicate(timeout=60)

    assert demo.returncode not in (0, None)
    assert "Traceback" not in output
    assert children
    assert psutil.wait_procs(children, timeout=10)[1] == []
    assert list(tmp_path.iterdir()) == []


def test_a_demo_without_the_core_library_says_so(tmp_path: pathlib.Path) -> None:
    finished = subprocess.run(
        [*COMMAND, tmp_path / "nothing"], capture_output=True, text=True, timeout=120
    )

    assert finished.returncode == 1
    assert "nothing" in finished.stderr
    assert "Traceback" not in finished.stderr
