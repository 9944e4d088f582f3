# SPDX-License-Identifier: Apache-2.0

"""The function that tests call in a child process."""

from typing import IO, Any

NAME = "tests.unit.package.sandboxed:act"


def act(file: IO[bytes], does: str) -> Any:
    """Run Python code, and return what it calls ``result``."""
    scope = {"file": file, "result": None}
    exec(does, scope)
    return scope["result"]
