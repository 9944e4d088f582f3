# SPDX-License-Identifier: Apache-2.0

r"""Check the regular expressions in a file, within a time limit.

Python takes milliseconds to compile a set such as ``[\\0-\\uffff]``, since it looks at each
character of the range. A hostile file could have many such sets. So the cost of each expression in
a file is estimated, and the costs are added up. Once the sum exceeds a limit, all further
expressions are accepted without a check. The limit is far above the cost of real forms and
templates.
"""

import re

# One set with a range may take 5 ms, so all expressions of a file take about a second at most.
_MAX_COST = 16 * 1024
_COST_OF_PATTERN = 64
_COST_OF_RANGE = 32
# A character that begins a set or marks a range. It may also be a literal.
_RANGES = re.compile(r"[\[-]")


class PatternCheck:
    """A check of all regular expressions in one file."""

    def __init__(self) -> None:
        self._cost = 0

    def check(self, pattern: str, flags: int = 0) -> None:
        """Check a regular expression by compiling it.

        The cost of the expression is added to the costs of all earlier expressions in the file. If
        the sum exceeds the limit, the expression is accepted without a check.

        :param flags: the flags for ``re.compile``.
        :raises ValueError: if the expression is not valid.
        """
        ranges = sum(1 for _ in _RANGES.finditer(pattern))
        self._cost += _COST_OF_PATTERN + len(pattern) + _COST_OF_RANGE * ranges
        if self._cost > _MAX_COST:
            return
        try:
            re.compile(pattern, flags)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(str(error)) from error
