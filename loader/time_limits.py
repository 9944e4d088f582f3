# SPDX-License-Identifier: Apache-2.0

"""Check limits of time, in seconds, that programs and operators set."""

import math


def check(seconds: float, name: str) -> float:
    """Return a limit of time unchanged, if it is finite; a wait for ``nan`` or ``inf`` never ends.

    :param name: the name of the limit, for the message.
    :raises ValueError: if the limit is not a finite number.
    """
    if not math.isfinite(seconds):
        raise ValueError(f"{name} is {seconds}; expected a finite number of seconds, such as 90")
    return seconds
