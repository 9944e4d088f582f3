# SPDX-License-Identifier: Apache-2.0

"""Report classes that extend themselves, directly or through other classes.

For such a class, Murano 16 reports that it is not found; this module reports the cycle. If a
package defines a class, the whole package uses its own class under this name. So a class cannot
extend an older version of itself.
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

    In the block, the engine finds the classes that this class needs, and calls ``check`` for each
    of them.
    """
    token = _defined.set((*_defined.get(), (package, name)))
    try:
        yield
    finally:
        _defined.reset(token)


def check(package: Any, name: str) -> None:
    """Check that a class is not needed for its own definition.

    :raises InvalidInheritanceError: if the class is being defined already; the message has the
        names in the cycle.
    """
    path = _defined.get()
    if (package, name) not in path:
        return
    names = [each for _, each in path[path.index((package, name)) :]]
    raise exceptions.InvalidInheritanceError(
        f'class "{name}" needs itself, by Extends, Import or Meta: {" -> ".join([*names, name])}'
    )
