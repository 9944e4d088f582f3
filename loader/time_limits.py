# SPDX-License-Identifier: Apache-2.0

"""Check the time limits that programs and operators set, in seconds."""

import math


def check(seconds: float, name: str) -> float:
    """Check that a time limit is finite, since a wait for ``nan`` or ``inf`` never ends.

    :param name: the name of the limit, for the message.
    :returns: the limit, unchanged.
    :raises ValueError: if the limit is not a finite number.
    """
    if not math.isfinite(seconds):
        raise ValueError(f"{name} is {seconds}; expected a finite number of seconds, such as 90")
    return seconds
