# SPDX-License-Identifier: Apache-2.0

"""The log of refused imports, with one line for each.

Glance logs a failed import at the level WARNING, with a traceback, and then each step that it
reverts. So every mistake of a user would raise an alert. If the package of an import is refused,
Glance's lines are left out: the import plug-in logs the reason at the level INFO.
"""

import logging
import threading

from glare_murano.glance.internals import ImportRefused

# Glance's logger for the steps of imports.
_LOGGER = logging.getLogger("glance.async_.taskflow_executor")
_REVERTED = "REVERTED"


class _RefusalFilter(logging.Filter):
    """Leaves out the lines of refused imports; a thread runs one import at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info:
            self._thread.is_refused = isinstance(record.exc_info[1], ImportRefused)
            return not self._thread.is_refused
        is_repeated = isinstance(record.args, tuple) and _REVERTED in record.args
        return not (is_repeated and getattr(self._thread, "is_refused", False))


_filter = _RefusalFilter()


def install() -> None:
    """Add the filter to Glance's logger, unless it has the filter."""
    _LOGGER.addFilter(_filter)
