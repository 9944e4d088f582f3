# SPDX-License-Identifier: Apache-2.0

"""Write what a cell logs to the engine's log."""

import logging
from collections.abc import Callable
from typing import Any

from glare_murano.package.errors import escaped, shown
from loader.engine import task_usage

LOG = logging.getLogger(__name__)

# The logger of packages, and the prefix of the names that Murano gives to their loggers.
_PACKAGES = logging.getLogger("applications")
_PREFIX = "applications."
# How many lines of a cell are logged besides those of its packages.
_MAX_LINES = 1000
# The longest line that a cell sends, in characters. As JSON, a character takes at most 12 bytes, so
# it fits into a query of the sandbox.
_MAX_TEXT = 5000


class QueryHandler(logging.Handler):
    """Sends what is logged in a cell to the engine's process."""

    def __init__(self, cast: Callable[[Any], object]) -> None:
        """Make a handler.

        :param cast: a function that sends a query without waiting for the answer.
        """
        super().__init__()
        self._cast = cast

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record."""
        text = self.format(record)[:_MAX_TEXT]
        line = {"logger": record.name, "level": record.levelno, "text": text}
        try:
            self._cast({"query": "log", **line})
        except Exception:
            # The watchdog logs while it interrupts another query.
            self.handleError(record)


class CellLog:
    """Logs what one cell sends, in the engine's process."""

    def __init__(self, kind: str, maximum: int) -> None:
        """Begin a log.

        :param kind: the kind of the request, such as ``static action``.
        :param maximum: how many lines the packages may log.
        """
        self._kind = kind
        self._left = maximum + _MAX_LINES

    def write(self, logger: str, level: int, text: str) -> None:
        """Log a line. Further lines of a cell that sends too many are dropped.

        Nothing here can be trusted. Python keeps each logger for ever, so all packages share one.
        """
        self._left -= 1
        if self._left < 0:
            return
        level = min(max(level, logging.DEBUG), logging.ERROR)
        text = task_usage.log_lines(escaped(text[:_MAX_TEXT], keep="\n"))
        found = _PACKAGES if logger.startswith(_PREFIX) else LOG
        found.log(level, "A %s, %s: %s", self._kind, shown(logger.removeprefix(_PREFIX)), text)
