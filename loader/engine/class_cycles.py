# SPDX-License-Identifier: Apache-2.0

"""Report classes that need themselves, directly or through other classes.

A class needs the classes in its ``Extends``, ``Import`` and ``Meta``. If a class needs itself,
Murano 16 reports that the class was not found. This module reports the cycle instead. A class
cannot extend an older version of itself: in a package that defines a class, the name of the class
always means the package's own class.
"""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

from murano.dsl import exceptions

# The package and the name of each class that is being defined. Each class after the first is
# needed by the one before it. Each green thread has a context of its own.
_Path = tuple[tuple[Any, str], ...]
_defined: contextvars.ContextVar[_Path] = contextvars.ContextVar("defined", default=())


@contextlib.contextmanager
def defining(package: Any, name: str) -> Iterator[None]:
    """Record that a class is being defined while the block runs.

    In the block, the engine finds the classes that the class needs, and calls ``check`` for each of
    them.
    """
    token = _defined.set((*_defined.get(), (package, name)))
    try:
        yield
    finally:
        _defined.reset(token)


def check(package: Any, name: str) -> None:
    """Check that the engine is not already defining a class that another class needs.

    If the engine is already defining the class, the class needs itself.

    :raises InvalidInheritanceError: if the class needs itself; the message has the names of all
        classes in the cycle.
    """
    path = _defined.get()
    if (package, name) not in path:
        return
    names = [each for _, each in path[path.index((package, name)) :]]
    raise exceptions.InvalidInheritanceError(
        f'class "{name}" needs itself, by Extends, Import or Meta: {" -> ".join([*names, name])}'
    )
