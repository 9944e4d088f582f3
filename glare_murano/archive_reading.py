# SPDX-License-Identifier: Apache-2.0

"""Read uploaded archives in child processes, in turns that are fair to all projects.

An archive can take long to read, and may exploit a fault of a parser. If it is read in a child
process, it does not delay other requests, and has no access to the service. Glare, Glance and
murano-api read archives with this module. Authors check their packages with ``read_contents``,
which applies the same rules without a child process.
"""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator
from typing import IO, Any

from glare_murano import archive_limits, archive_settings, stored_contents
from glare_murano.package import (
    Archive,
    InvalidPackage,
    Limits,
    Problem,
    archive_process,
    package_types,
    read_contents,
)
from glare_murano.package.rules import Rule
from glare_murano.package.sandbox import Busy, Turns
from glare_murano.package.ui_form import FormCheck
from glare_murano.stored_contents import StoredContents

# The functions that run in child processes.
_READ = f"{__name__}:read_in_child"
_REPACK = f"{__name__}:repack_in_child"
# If the service is too busy to read an archive, the client should upload it again after these
# seconds.
RETRY_AFTER = 10

_turns = Turns()


def _renew_turns() -> None:
    """Give a process that was just forked a new, empty queue of turns.

    The forked process has a copy of its parent's queue, with turns and waiting callers that exist
    only in the parent.
    """
    global _turns
    _turns = Turns()


os.register_at_fork(after_in_child=_renew_turns)


class ServiceBusy(InvalidPackage):
    """The package was not read, since the service is busy with other packages."""


def read(
    options: Any,
    archive: IO[bytes],
    project_id: str | None,
    label: str,
    python: str = "",
    meanwhile: Callable[[], object] = lambda: None,
) -> StoredContents:
    """Wait for a turn of the project, then read an archive and check every file in it.

    :param options: the values of ``archive_settings.OPTIONS``.
    :param archive: an open file that has a file descriptor.
    :param project_id: the project that owns the package.
    :param label: the name of the package in the log.
    :param python: the path of the Python interpreter for the child; empty for the interpreter of
        this process.
    :param meanwhile: a function that is called every second during the wait and the reading, and
        while the result is checked. If it raises an error, the reading ends with this error.
    :raises ServiceBusy: if the project does not get a turn in time.
    :raises InvalidPackage: if the package breaks a rule, reaches a limit, or cannot be read.
    """
    parameters = {
        "limits": dataclasses.asdict(archive_limits.limits(options)),
        "form_check": archive_settings.form_check(options),
    }
    settings = archive_settings.child_settings(options, python)
    with _turn(options, project_id, meanwhile):
        result = archive_process.read(_READ, archive, parameters, settings, label, meanwhile)
    try:
        return stored_contents.from_json(result, meanwhile)
    except ValueError as error:
        raise archive_process.failure(label, str(error)) from error


def repacked_digest(options: Any, archive: IO[bytes], project_id: str | None, label: str) -> str:
    """Wait for a turn of the project, then return ``Archive.repacked_digest`` of an archive.

    :param options: the values of ``archive_settings.READING_OPTIONS`` and
        ``archive_limits.OPTIONS``.
    :param archive: an open file that has a file descriptor.
    :param project_id: the project that uploads the package.
    :param label: the name of the package in the log.
    :raises ServiceBusy: if the project does not get a turn in time.
    :raises InvalidPackage: if the archive is not valid, reaches a limit, or cannot be read.
    """
    parameters = {"limits": dataclasses.asdict(archive_limits.limits(options))}
    settings = archive_settings.child_settings(options)
    with _turn(options, project_id):
        result = archive_process.read(_REPACK, archive, parameters, settings, label)
    if not isinstance(result, str):
        raise archive_process.failure(label, "the result is not a string")
    return result


@contextlib.contextmanager
def _turn(
    options: Any, project_id: str | None, meanwhile: Callable[[], object] = lambda: None
) -> Iterator[None]:
    """Wait for a turn of a project, and keep it until the ``with`` statement ends.

    :raises ServiceBusy: if the project does not get a turn in time.
    """
    counts = options["max_readings"], options["max_project_readings"]
    try:
        with _turns.turn(project_id, *counts, options["max_reading_wait"], meanwhile):
            yield
    except Busy as error:
        message = "the service is reading other packages; upload the archive again later"
        raise ServiceBusy([Problem(Rule.SERVICE_BUSY, "archive", message)]) from error


def read_in_child(file: IO[bytes], limits: dict[str, int], form_check: str) -> dict[str, Any]:
    """Read a package in the child process, and return its contents or problems as a JSON object.

    :param file: the archive.
    :param limits: the fields of ``Limits``, by name.
    :param form_check: the value of a ``FormCheck``.
    :returns: the result of ``archive_process.answered``.
    """

    def read_file() -> dict[str, Any]:
        with Archive.open(file, Limits(**limits)) as archive:
            contents = read_contents(archive, package_types.describe, FormCheck(form_check))
            # A damaged file is refused here, so that it is not found only by an engine.
            archive.verify()
        return StoredContents.of(contents).to_json()

    return archive_process.answered(read_file)


def repack_in_child(file: IO[bytes], limits: dict[str, int]) -> dict[str, Any]:
    """Return ``Archive.repacked_digest`` of an archive, in the child process.

    :param file: the archive.
    :param limits: the fields of ``Limits``, by name.
    :returns: the result of ``archive_process.answered``.
    """

    def repack() -> str:
        with Archive.open(file, Limits(**limits)) as archive:
            return archive.repacked_digest()

    return archive_process.answered(repack)
