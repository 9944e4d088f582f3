# SPDX-License-Identifier: Apache-2.0

"""Run the function of a package type in a child process, and read its answer.

The child has limits on time and memory, and a temporary working directory. It does not get
the environment variables, the configuration or the open files of this process. Its answer is
not trusted. But the child runs as the same user, so the operator has to trust the plug-in: the
limits help against faults of a plug-in, and against packages that exploit them.
``type_process`` is the program of the child.
"""

import contextlib
import dataclasses
import json
import logging
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from typing import IO, Any

from glare_murano.package import package_types
from glare_murano.package.archive import Archive
from glare_murano.package.archive_rules import DEFAULT_LIMITS, Limits
from glare_murano.package.errors import InvalidPackage, Problem
from glare_murano.package.manifest import Manifest
from glare_murano.package.package_types import Description
from glare_murano.package.rules import Rule

LOG = logging.getLogger(__name__)

DEFAULT_MEMORY = 512 * 1024**2
MAX_ANSWER = 4 * 1024**2
# The exit status of a child that has run out of memory.
OUT_OF_MEMORY = 3

_PROGRAM = "glare_murano.package.type_process"
_POLL_SECONDS = 0.01
_LOGGED = 20_000
_SCRATCH = "glare-murano-package-type-"
# A scratch directory of this age, in seconds, was left behind by a stopped server.
_ABANDONED = 24 * 3600
# At most four children of this process run at once.
_turns = threading.BoundedSemaphore(4)


@dataclasses.dataclass(frozen=True)
class Sandbox:
    """The limits of child processes.

    :param seconds: the longest time to wait for other children, and then for the answer.
    :param memory: the largest address space in bytes.
    :param limits: the limits of the archive.
    :param python: the interpreter; by default that of this process. In uWSGI, name one, since
        ``sys.executable`` is uWSGI itself.
    """

    seconds: float = 20
    memory: int = DEFAULT_MEMORY
    limits: Limits = DEFAULT_LIMITS
    python: str = ""

    def describe(self, manifest: Manifest, archive: Archive) -> Description:
        """Describe a package by the function for its format.

        Without a function, the manifest has to list the classes.

        :raises InvalidPackage: if the package is refused, or the function fails.
        """
        if package_types.has_function(manifest.format):
            return self._describe(manifest, archive)
        if manifest.classes:
            return package_types.from_manifest(manifest)
        message = (
            f"has to list the classes, since no function is installed that finds those that the "
            f"package type {manifest.format} generates"
        )
        raise InvalidPackage([Problem(Rule.CLASS_UNLISTED, "Classes", message)])

    def _describe(self, manifest: Manifest, archive: Archive) -> Description:
        if not _turns.acquire(timeout=self.seconds):
            message = f"other packages were read for {self.seconds} seconds; try again"
            raise _refusal(Rule.PACKAGE_TYPE_FAILURE, message)
        try:
            with (
                tempfile.TemporaryFile() as answer,
                tempfile.TemporaryFile() as output,
                archive.open_zip() as package,
            ):
                try:
                    self._run(package, answer, output)
                    return _read(answer)
                except InvalidPackage:
                    _log(manifest, "did not describe", output)
                    raise
                except (OSError, ValueError, RecursionError) as error:
                    _log(manifest, f"failed ({error}) on", output)
                    message = f"the package type {manifest.format} failed; see the log"
                    raise _refusal(Rule.PACKAGE_TYPE_FAILURE, message) from error
        finally:
            _turns.release()

    def _run(self, package: IO[bytes], answer: IO[bytes], output: IO[bytes]) -> None:
        """Run a child, and wait for its end.

        :raises InvalidPackage: if the child reaches a limit.
        :raises ValueError: if the child fails.
        :raises OSError: if the child cannot be started.
        """
        settings = json.dumps([self.seconds, self.memory, dataclasses.astuple(self.limits)])
        _remove_abandoned()
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, ignore_cleanup_errors=True) as directory:
            process = subprocess.Popen(  # noqa: S603 - with arguments of ours alone
                [self.python or sys.executable, "-s", "-P", "-m", _PROGRAM, settings],
                stdin=package,
                stdout=answer,
                stderr=output,
                cwd=directory,
                env={
                    "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
                    "HOME": directory,
                    "TMPDIR": directory,
                },
                start_new_session=True,
            )
            has_ended = False
            try:
                has_ended = _wait(process.pid, self.seconds)
            finally:
                # The child leads a process group until it is reaped, so this ends all processes
                # that it has started.
                os.killpg(process.pid, signal.SIGKILL)
                code = process.wait()
        if not has_ended or code in (-signal.SIGALRM, -signal.SIGXCPU):
            message = f"reading the package took more than {self.seconds} seconds"
            raise _refusal(Rule.PACKAGE_TYPE_LIMIT, message)
        if code == OUT_OF_MEMORY:
            message = f"reading the package took more than {self.memory} bytes of memory"
            raise _refusal(Rule.PACKAGE_TYPE_LIMIT, message)
        if code:
            raise ValueError(f"exit status {code}")


def describe_trusted(manifest: Manifest, archive: Archive) -> Description:
    """Describe a package by the function for its format.

    A built-in function runs in this process, any other in a child. Without a function, the
    package has one class, with the name of the package.

    :raises InvalidPackage: if the package is refused, or the function fails.
    """
    if package_types.is_built_in(manifest.format):
        return package_types.call(manifest, archive)
    if package_types.has_function(manifest.format):
        return Sandbox().describe(manifest, archive)
    return package_types.from_manifest(manifest)


def _remove_abandoned() -> None:
    """Remove old scratch directories, which stopped servers have left behind."""
    oldest = time.time() - _ABANDONED
    for path in pathlib.Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        with contextlib.suppress(OSError, RecursionError):
            if path.lstat().st_mtime < oldest:
                shutil.rmtree(path)


def _wait(pid: int, seconds: float) -> bool:
    """Wait for the end of a child, but do not reap it; return whether it has ended.

    The function polls, so that other green threads of a server can run.
    """
    deadline = time.monotonic() + seconds
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while os.waitid(os.P_PID, pid, options) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _read(answer: IO[bytes]) -> Description:
    """Read a child's answer.

    :raises InvalidPackage: if the answer has problems of the package.
    :raises ValueError: if the answer is malformed.
    :raises RecursionError: if the answer is nested too deeply.
    """
    answer.seek(0)
    data = answer.read(MAX_ANSWER + 1)
    if len(data) > MAX_ANSWER:
        message = f"the result has more than {MAX_ANSWER} bytes"
        raise _refusal(Rule.PACKAGE_TYPE_LIMIT, message)
    match json.loads(data):
        case {"problems": [_, *_] as problems}:
            raise InvalidPackage([_problem(problem) for problem in problems])
        case {
            "classes": dict() as classes,
            "requirements": dict() as requirements,
            "ui": (str() | None) as ui,
        } if _is_description(classes, requirements):
            return Description(classes, requirements, ui)
    raise ValueError("the answer is not a description")


def _is_description(classes: Mapping[str, Any], requirements: Mapping[str, Any]) -> bool:
    lists = all(isinstance(bases, list) for bases in classes.values())
    return (
        lists
        and all(isinstance(base, str) for bases in classes.values() for base in bases)
        and all(isinstance(text, str | None) for text in requirements.values())
    )


def _problem(content: object) -> Problem:
    match content:
        case [str() as rule, str() as where, str() as message, int() as line]:
            return Problem(Rule(rule), where, message, line)
    raise ValueError("a problem in the answer is malformed")


def _refusal(rule: Rule, message: str) -> InvalidPackage:
    return InvalidPackage([Problem(rule, "Format", message)])


def _log(manifest: Manifest, result: str, output: IO[bytes]) -> None:
    """Log the last output of a child; its lines are indented, so none can imitate a log line."""
    output.seek(max(output.seek(0, os.SEEK_END) - _LOGGED, 0))
    lines = output.read(_LOGGED).decode(errors="replace").splitlines()
    shown = "".join(f"\n    {line if line.isprintable() else ascii(line)}" for line in lines)
    package = f"{manifest.full_name} {manifest.version}"
    LOG.error("The package type %s %s %s:%s", manifest.format, result, package, shown)
