# SPDX-License-Identifier: Apache-2.0

"""Format the output of commands: columns, units, and escaped control characters."""

from collections.abc import Iterable
from typing import Any

from cliff import columns
from osc_lib.cli import format_columns
from rich import filesize

from glare_murano.package import Version
from glare_murano.package.errors import escaped
from loader.version_changes import VersionChange

# The columns of a table of changes.
CHANGE_COLUMNS = ("Name", "Before", "After")
_SIZE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"]
# The formats that do not escape control characters in strings.
_PLAIN_FORMATS = ("csv", "shell", "table", "value")
# The characters that a shell interprets between double quotes. The formatter itself escapes double
# quotes.
_OF_SHELLS = str.maketrans({each: f"\\{each}" for each in "\\$`"})


class Size(columns.FormattableColumn[int]):
    """A number of bytes; tables show it with a unit."""

    def human_readable(self) -> str:
        unit, suffix = filesize.pick_unit_and_suffix(self._value, _SIZE_UNITS, 1024)
        return f"{self._value / unit:.{0 if unit == 1 else 1}f} {suffix}"


def versions(listed: Iterable[Version]) -> format_columns.ListColumn:
    """Return the value of a column that lists versions."""
    return format_columns.ListColumn(list(map(str, listed)))


def change_row(change: VersionChange) -> tuple[Any, ...]:
    """Return a change as a row of a table with the columns ``CHANGE_COLUMNS``."""
    return change.fqn, versions(change.before), versions(change.after)


def printable(values: Iterable[Any], formatter: str) -> tuple[Any, ...]:
    """Escape control characters in values, unless the formatter escapes them itself.

    :param formatter: the name of the output format.
    """
    if formatter not in _PLAIN_FORMATS:
        return tuple(values)
    texts = (_plain(value, formatter) for value in values)
    # A cell of a table and a variable of a shell may have several lines.
    keep = "\n" if formatter in ("shell", "table") else ""
    return tuple(escaped(text, keep) if isinstance(text, str) else text for text in texts)


def _plain(value: Any, formatter: str) -> Any:
    is_size = isinstance(value, Size)
    if formatter == "shell" and not is_size:
        is_column = isinstance(value, columns.FormattableColumn)
        return str(value.machine_readable() if is_column else value).translate(_OF_SHELLS)
    if is_size and formatter != "table":
        return value.machine_readable()
    return value.human_readable() if isinstance(value, columns.FormattableColumn) else value
