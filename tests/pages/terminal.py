# SPDX-License-Identifier: Apache-2.0

"""A terminal in which a reader runs the commands of a page, one after the other."""

import contextlib
import os
import pathlib
import signal
import subprocess
import uuid
from collections.abc import Iterator, Mapping


class Terminal:
    """A shell that keeps its variables and its directory from one command to the next."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, command: str) -> tuple[int, list[str]]:
        """Run a command, and return its exit status and the lines that it writes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        end = uuid.uuid4().hex
        # The shell's own input has the commands, so no command reads from it.
        self._process.stdin.write(f"{{ {command}\n}} < /dev/null; printf '%s %s\\n' '\n{end}' $?\n")
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            if line.startswith(end):
                # printf has begun a new line, after a last line that may have had no end.
                return int(line.split()[1]), lines[:-1] if lines[-1] == "" else lines
            lines.append(line.rstrip())
        raise AssertionError(f"{command}: the shell has ended")


@contextlib.contextmanager
def opened(directory: pathlib.Path, environment: Mapping[str, str]) -> Iterator[Terminal]:
    """Open a terminal, and end what still runs in it at the end."""
    process = subprocess.Popen(
        ["bash", "--norc", "--noprofile"],
        cwd=directory,
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield Terminal(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
