# SPDX-License-Identifier: Apache-2.0

"""A process that reads packages with little memory and little time.

It reads one after another, and is only started anew after one has ended it.
"""

import dataclasses
import math
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import resource
import tempfile
import time

from glare_murano.package import Archive, InvalidPackage, Limits, read_contents
from glare_murano.package.ui_form import FormCheck

# What reading one package may add, in bytes, and take, in seconds.
MEMORY = 64 * 1024**2
SECONDS = 4

_PAGE = resource.getpagesize()


@dataclasses.dataclass(frozen=True)
class Job:
    """A package to be read.

    :param archive: its path.
    :param target: the folder to unpack it to.
    :param scratch: the folder for temporary files.
    """

    archive: pathlib.Path
    target: pathlib.Path
    scratch: pathlib.Path
    limits: Limits = dataclasses.field(default_factory=Limits)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of it.

    :param rules: those that the package breaks; empty if it was accepted.
    :param failure: the error that is no refusal, if there was one.
    :param length: of the refusal's text, in characters.
    :param printable: whether that text can be shown as it is.
    """

    rules: frozenset[str] = frozenset()
    failure: str = ""
    seconds: float = 0
    length: int = 0
    printable: bool = True


class Reader:
    """The process, started when it is first needed."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: multiprocessing.connection.Connection | None = None

    def read(self, job: Job) -> Outcome:
        if self._connection is None:
            self._start()
        assert self._connection is not None
        self._connection.send(job)
        try:
            if self._connection.poll(10 * SECONDS):
                return self._connection.recv()
            failure = f"takes more than {10 * SECONDS} seconds"
        except (EOFError, ConnectionError):
            failure = f"ends the process, or takes more than {SECONDS} seconds of its time"
        self.close()
        return Outcome(failure=failure)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._connection = self._process = None

    def _start(self) -> None:
        self._connection, theirs = self._context.Pipe()
        self._process = self._context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()


def _serve(connection: multiprocessing.connection.Connection) -> None:
    os.umask(0o022)
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        connection.send(_bounded(job))


def _bounded(job: Job) -> Outcome:
    tempfile.tempdir = str(job.scratch)
    # A whole second more, since the system counts no fractions.
    _set_limit(resource.RLIMIT_CPU, math.ceil(time.process_time()) + SECONDS + 1)
    _set_limit(resource.RLIMIT_AS, _address_space() + MEMORY)
    start = time.process_time()
    try:
        error = _refusal(job)
        seconds = time.process_time() - start
    except BaseException as other:
        return Outcome(failure=f"{type(other).__name__}: {str(other)[:200]}")
    finally:
        _set_limit(resource.RLIMIT_AS, resource.RLIM_INFINITY)
        _set_limit(resource.RLIMIT_CPU, resource.RLIM_INFINITY)
    if error is None:
        return Outcome(seconds=seconds)
    text = str(error)
    rules = frozenset(problem.rule for problem in error.problems)
    return Outcome(rules, "", seconds, len(text), text.isprintable())


def _refusal(job: Job) -> InvalidPackage | None:
    try:
        with Archive.open(job.archive, job.limits) as archive:
            # What a server stores of it, as well.
            _ = read_contents(archive, form_check=FormCheck.ENFORCE).inherits
            archive.unpack(job.target)
    except InvalidPackage as error:
        return error
    return None


def _set_limit(kind: int, soft: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _address_space() -> int:
    return int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * _PAGE
