# SPDX-License-Identifier: Apache-2.0

"""The functions that tests call in a child process."""

import os
from typing import IO, Any

NAME = "tests.unit.package.sandboxed:act"
PREPARED = "tests.unit.package.sandboxed:Prepared"


def act(file: IO[bytes], does: str, **names: Any) -> Any:
    """Run Python code, and return what it calls ``result``."""
    scope = {"file": file, "result": None, **names}
    exec(does, scope)
    return scope["result"]


class Prepared:
    """``act``, whose code can use ``prepared`` and ``kept``."""

    def __init__(self, preparation: Any) -> None:
        self._preparation = preparation
        self._kept: list[Any] = []
        self._process = os.getpid()

    def __call__(self, file: IO[bytes], does: str) -> Any:
        names = {"prepared": self._preparation, "kept": self._kept, "process": self._process}
        return act(file, does, **names)

    def preload(self, value: Any) -> None:
        self._kept.append(value)
