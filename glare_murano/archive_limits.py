# SPDX-License-Identifier: Apache-2.0

"""Define the options that limit archives, for Glare, Glance and the loader."""

from typing import Any

from oslo_config import cfg

from glare_murano.package import Limits
from glare_murano.package.archive_rules import DEFAULT_LIMITS

# Field of ``Limits`` -> name of the option, and its help text after the word "The".
_OPTIONS = {
    "archive_size": ("max_archive_size", "largest size of an archive, in bytes."),
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
    cfg.IntOpt(name, min=1, default=getattr(DEFAULT_LIMITS, field), help=f"The {description}")
    for field, (name, description) in _OPTIONS.items()
]


def limits(options: Any) -> Limits:
    """Return the configured limits of archives.

    :param options: the values of the options in ``OPTIONS``, by name.
    """
    return Limits(**{field: options[name] for field, (name, _) in _OPTIONS.items()})
