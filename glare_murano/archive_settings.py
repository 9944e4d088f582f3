# SPDX-License-Identifier: Apache-2.0

"""Define the options by which operators limit and check the reading of uploaded archives."""

from typing import Any

from oslo_config import cfg

from glare_murano import archive_limits
from glare_murano.package.sandbox import MAX_ANSWER, ChildSettings
from glare_murano.package.ui_form import FormCheck

_DEFAULT_CHILD = ChildSettings()

# The options of a service that reads archives in child processes.
READING_OPTIONS = [
    cfg.IntOpt(
        "max_reading_seconds",
        min=1,
        default=_DEFAULT_CHILD.seconds,
        help="The most processor time that reading an uploaded archive may take, in seconds. A "
        "package type that waits, instead of computing, is ended after three times as long.",
    ),
    cfg.IntOpt(
        "max_reading_memory",
        min=64 * 1024**2,
        default=_DEFAULT_CHILD.memory,
        help="The most memory that reading an uploaded archive may take, in bytes of address "
        "space.",
    ),
    cfg.IntOpt(
        "max_readings",
        min=1,
        default=4,
        help="The largest number of archives that a process of the service reads at once, each in "
        "a child process. With more, uploads take turns.",
    ),
    cfg.IntOpt(
        "max_project_readings",
        min=1,
        default=2,
        help="The largest number of them that belong to one project.",
    ),
    cfg.IntOpt(
        "max_reading_wait",
        min=0,
        default=20,
        help="The longest time that an upload waits for its turn, in seconds. After that the "
        "service is busy, and the archive can be uploaded again.",
    ),
]

# The options of Glare and Glance.
OPTIONS = [
    *archive_limits.OPTIONS,
    *READING_OPTIONS,
    cfg.StrOpt(
        "check_forms",
        choices=[
            (FormCheck.WARN.value, "Accept the package and log a warning."),
            (FormCheck.ENFORCE.value, "Refuse the package."),
        ],
        default=FormCheck.WARN.value,
        help="What to do about a package that can be deployed, but whose form Murano's dashboard "
        "cannot show. The limits of YAML hold for every form.",
    ),
]


def form_check(options: Any) -> FormCheck:
    """Return what the operator has configured for forms that Murano's dashboard cannot show.

    :param options: the values of ``OPTIONS``.
    """
    return FormCheck(options["check_forms"])


def child_settings(options: Any, python: str = "") -> ChildSettings:
    """Return the configured limits of the child process that reads an archive.

    :param options: the values of ``READING_OPTIONS`` and ``archive_limits.OPTIONS``.
    :param python: the path of the Python interpreter for the child; empty for the interpreter of
        this process.
    """
    return ChildSettings(
        seconds=options["max_reading_seconds"],
        memory=options["max_reading_memory"],
        # A package type may unpack files, and the answer of the child is a file as well.
        file_size=max(options["max_unpacked_size"], MAX_ANSWER),
        python=python,
    )
