# SPDX-License-Identifier: Apache-2.0

"""The functions that tests call in a child process."""

import functools
from collections.abc import Callable
from typing import IO, Any

NAME = "tests.unit.package.sandboxed:act"
PREPARED = "tests.unit.package.sandboxed:prepare"


def act(file: IO[bytes], does: str, **names: Any) -> Any:
    """Run Python code, and return what it calls ``result``."""
    scope = {"file": file, "result": None, **names}
    exec(does, scope)
    return scope["result"]


def prepare(preparation: Any) -> Callable[..., Any]:
    """Return ``act``, whose code can use ``prepared``."""
    return functools.partial(act, prepared=preparation)
