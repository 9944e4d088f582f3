# SPDX-License-Identifier: Apache-2.0

"""Check the configuration of a service, before the service starts and before it is upgraded.

A service does not start if a check finds an error. The service's command ``upgrade check`` prints
what all checks find, in the form of oslo.upgradecheck, like the commands of other OpenStack
services.
"""

import dataclasses
import functools
import importlib.metadata
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck
from packaging.requirements import Requirement

from glare_murano.package.sandbox import system_calls, walls

_DISTRIBUTION = "glare-murano"
# oslo.upgradecheck has the same exit code for an exception in a check.
_FAILED = 255


@dataclasses.dataclass(frozen=True)
class Finding:
    """A mistake that a check has found.

    :ivar message: what is wrong, with the option and its value, and what to do.
    :ivar is_error: whether the mistake prevents the start of the service. If not, the finding is a
        warning.
    """

    message: str
    is_error: bool = True


Check = Callable[[], Iterable[Finding]]


class UpgradeCheck(upgradecheck.UpgradeCommands):
    """The command ``upgrade check`` of a service."""

    def __init__(self, title: str, checks: Mapping[str, Check]) -> None:
        """Make the command from the checks of a service.

        :param title: the title of the printed table.
        :param checks: the title of each check -> the function that returns its findings.
        """
        super().__init__()
        self.display_title = title
        self._upgrade_checks = tuple(
            (name, (_run, {"check": check})) for name, check in checks.items()
        )


def run(
    program: str,
    conf: cfg.ConfigOpts,
    project: str,
    command: UpgradeCheck,
    arguments: Sequence[str],
    files: Sequence[str],
) -> int:
    """Run ``upgrade check`` for a service.

    :param program: the name of the program, for messages.
    :param conf: the options of the service.
    :param project: the name by which oslo.config finds the service's configuration.
    :param arguments: the arguments of the program.
    :param files: the configuration that is read by default.
    :returns: the exit code of oslo.upgradecheck, which is 255 if the command itself fails. It is
        also 255 if the configuration cannot be read.
    """
    try:
        return upgradecheck.main(conf, project, command, [*arguments], [*files])
    except cfg.Error as error:
        print(f"{program}: {error}", file=sys.stderr)
        return _FAILED


def find_unmet_requirements(extra: str) -> Iterator[Finding]:
    """Yield a warning for each required library that is missing, or has an unsupported version.

    :param extra: the name of the extra (the optional requirements) that the service needs, such as
        ``glance``.
    """
    for line in importlib.metadata.requires(_DISTRIBUTION) or ():
        requirement = Requirement(line)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            version = "missing"
        if version == "missing" or not requirement.specifier.contains(version, prereleases=True):
            yield Finding(
                f"{requirement.name} is {version}, but {requirement.specifier or 'any version'} is "
                f"required; run pip install '{_DISTRIBUTION}[{extra}]' with your constraints",
                is_error=False,
            )


def find_missing_walls(
    danger: str = "an archive that takes over a child process could read the files of the "
    "service's user",
) -> Iterator[Finding]:
    """Yield a warning for each wall around child processes that this host lacks.

    :param danger: what can happen without Landlock.
    """
    if not walls.abi():
        yield Finding(
            f"the kernel has no Landlock, or this container forbids it: {danger}; use Linux 6.12 "
            f"or newer",
            is_error=False,
        )
    if not system_calls.are_refused():
        yield Finding(
            f"no system calls are refused to child processes on {platform.machine()}: an archive "
            f"that takes over a child process could stop the processes of the service's user; use "
            f"x86-64 or ARM64",
            is_error=False,
        )


def reads_database(find: Check) -> Check:
    """Make a check yield a warning if the database of the service does not answer.

    The warning contains the first line of the error's message.

    :param find: a check that reads the database.
    """

    @functools.wraps(find)
    def check() -> Iterator[Finding]:
        try:
            yield from find()
        except Exception as error:
            # Every error is handled, since oslo.db does not know all errors of databases.
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            yield Finding(f"[database] connection: the database does not answer: {reason}", False)

    return check


def _run(_: UpgradeCheck, check: Check) -> upgradecheck.Result:
    found = [*check()]
    if not found:
        return upgradecheck.Result(upgradecheck.Code.SUCCESS)
    is_failure = any(finding.is_error for finding in found)
    code = upgradecheck.Code.FAILURE if is_failure else upgradecheck.Code.WARNING
    return upgradecheck.Result(code, "\n".join(finding.message for finding in found))
