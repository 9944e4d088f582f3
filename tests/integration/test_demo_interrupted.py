# SPDX-License-Identifier: Apache-2.0

"""The demo, interrupted: a file of its own, so that another worker can run it."""

import itertools
import pathlib
import signal
import subprocess
import time

import psutil
import pytest

from tests import effort
from tests.integration.test_demo import COMMAND, environment

pytestmark = pytest.mark.programs

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
DELAYS = (0, 0.13, 0.37, 0.61)
INTERRUPTIONS = (
    itertools.product(SIGNALS, DELAYS)
    if effort.FULL
    else [(signal.SIGINT, 0.13), (signal.SIGTERM, 0.61)]
)


@pytest.mark.parametrize(
    "program",
    ["examples.demo", pytest.param("examples.demo_glance", marks=pytest.mark.services)],
)
@pytest.mark.parametrize(("number", "delay"), INTERRUPTIONS)
def test_an_interrupted_demo_leaves_nothing_behind(
    core_library: pathlib.Path,
    tmp_path: pathlib.Path,
    program: str,
    number: signal.Signals,
    delay: float,
) -> None:
    with subprocess.Popen(
        [*COMMAND, program, core_library],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(tmp_path),
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
