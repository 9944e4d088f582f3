# SPDX-License-Identifier: Apache-2.0

"""Check the regular expressions in a file, within a limit of time.

Python takes milliseconds to compile a set such as ``[\\0-\\uffff]``, since it looks at each
character of the range. So the cost of each expression in a file is estimated and added up. Once the
sum exceeds a limit, further expressions are accepted without a check. The limit is far above the
cost of real forms and templates.
"""

import re

# One set with a range may take 5 ms, so all expressions of a file take about a second at most.
_MAX_COST = 16 * 1024
_COST_OF_PATTERN = 64
_COST_OF_RANGE = 32
# These characters begin a set or a range, or are literals.
_RANGES = re.compile(r"[\[-]")


class PatternCheck:
    """The check of all regular expressions in one file."""

    def __init__(self) -> None:
        self._cost = 0

    def check(self, pattern: str, flags: int = 0) -> None:
        """Check a regular expression by compiling it.

        If the expressions of the file cost too much together, this expression is accepted.

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
