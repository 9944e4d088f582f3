# SPDX-License-Identifier: Apache-2.0

"""The operator's limits and checks of archives, as options of both services."""

from typing import Any

from oslo_config import cfg

from glare_murano.package import Limits
from glare_murano.package.archive_rules import DEFAULT_LIMITS
from glare_murano.package.sandbox import DEFAULT_MEMORY, Sandbox
from glare_murano.package.ui_form import FormCheck

# Field of Limits -> option, help.
_LIMITS = {
    "archive_size": ("max_archive_size", "largest archive that can be uploaded, in bytes."),
    "unpacked_size": (
        "max_unpacked_size",
        "largest total size of the files in an archive, in bytes.",
    ),
    "entries": ("max_archive_entries", "largest number of files and directories in an archive."),
    "ratio": (
        "max_archive_ratio",
        "largest number of unpacked bytes for each byte of an archive, once more than 1 MiB is "
        "unpacked.",
    ),
}

OPTIONS = [
    *(
        cfg.IntOpt(name, min=1, default=getattr(DEFAULT_LIMITS, limit), help=f"The {description}")
        for limit, (name, description) in _LIMITS.items()
    ),
    cfg.IntOpt(
        "package_type_timeout",
        min=1,
        default=20,
        help="The longest time that the package type of an uploaded package may take to read it, "
        "in seconds. MuranoPL packages are read without a limit of time.",
    ),
    cfg.IntOpt(
        "package_type_memory",
        min=64 * 1024**2,
        default=DEFAULT_MEMORY,
        help="The most memory that the package type of an uploaded package may use to read it, "
        "in bytes of address space.",
    ),
    cfg.StrOpt(
        "check_forms",
        choices=[
            (FormCheck.ENFORCE.value, "Refuse the package."),
            (FormCheck.WARN.value, "Accept the package and log a warning."),
        ],
        default=FormCheck.ENFORCE.value,
        help="What to do about a package whose form Murano's dashboard cannot show.",
    ),
]


def limits(options: Any) -> Limits:
    """Return the configured limits of archives.

    :param options: the values of ``OPTIONS``.
    """
    return Limits(**{limit: options[name] for limit, (name, _) in _LIMITS.items()})


def form_check(options: Any) -> FormCheck:
    """Return what to do about the problems of a form.

    :param options: the values of ``OPTIONS``.
    """
    return FormCheck(options["check_forms"])


def sandbox(options: Any, python: str = "") -> Sandbox:
    """Return the sandbox in which a package type reads a package, with the configured limits.

    :param options: the values of ``OPTIONS``.
    :param python: the interpreter, if it is not that of this process.
    """
    seconds, memory = options["package_type_timeout"], options["package_type_memory"]
    return Sandbox(seconds, memory, limits(options), python)
