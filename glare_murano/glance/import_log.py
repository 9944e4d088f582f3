# SPDX-License-Identifier: Apache-2.0

"""Log each refused import in one line.

Glance logs a failed import at the level WARNING, with a traceback. Then it logs each reverted step
of the import. So each mistake of a user would cause an alert. If the package of an import is
refused, this module suppresses Glance's lines, and the import plug-in logs the reason at the level
INFO.
"""

import logging
import threading

from glare_murano.glance.internals import ImportRefused

# Glance's logger for the steps of imports.
_LOGGER = logging.getLogger("glance.async_.taskflow_executor")
_REVERTED = "REVERTED"


class _RefusalFilter(logging.Filter):
    """A log filter that suppresses Glance's lines about refused imports.

    A thread runs one import at a time. So the filter stores for each thread whether the thread's
    latest import was refused.
    """

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
    """Add the filter to Glance's logger, if the logger does not have it."""
    _LOGGER.addFilter(_filter)
