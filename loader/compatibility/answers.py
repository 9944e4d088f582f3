# SPDX-License-Identifier: Apache-2.0

"""The answer to a question about two contracts: yes, no, or unknown."""

import enum
from collections.abc import Iterable


class Answer(enum.IntEnum):
    """The answer to a question about two contracts; ``NO`` < ``UNKNOWN`` < ``YES``."""

    NO = 0
    UNKNOWN = 1
    YES = 2

    @classmethod
    def of(cls, value: bool | None) -> "Answer":
        """Return the answer for a truth value; None means unknown."""
        return cls.UNKNOWN if value is None else cls.YES if value else cls.NO


def all_of(answers: Iterable[Answer]) -> Answer:
    """Join answers by "and": ``NO`` if any is ``NO``, else ``UNKNOWN`` if any is, else ``YES``."""
    return min(answers, default=Answer.YES)
