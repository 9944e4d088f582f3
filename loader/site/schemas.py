# SPDX-License-Identifier: Apache-2.0

"""Make the JSON schemas of a release's classes in a child process.

The contracts of classes are code of the package. So the child process has limits, but no
environment variables and no token. Its answer is checked before a page shows it. The child runs
``loader.engine.class_schemas``, which needs the extra ``engine`` of this distribution.
"""

import importlib.util
import json
import os
import pathlib
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

from glare_murano.package import sandbox
from loader import errors

_FUNCTION = "loader.engine.class_schemas:make"
# The processor time in seconds, and the address space in bytes, for all classes of a release. The
# core library takes 1 s and 145 MB.
_LIMITS = sandbox.ChildSettings(seconds=20, memory=1024**3)
# The longest message about a class without a schema, in characters.
_MAX_TEXT = 500


class NoEngine(errors.LoaderError):
    """Murano's engine is not installed, so contracts cannot be converted to JSON schemas."""


def check_installed() -> None:
    """Check that Murano's engine is installed.

    :raises NoEngine: if the engine is not installed.
    """
    if importlib.util.find_spec("murano") is None:
        raise NoEngine(
            "--schemas needs Murano's engine, which is not installed; in a clone of glare-murano, "
            "run pip install -c constraints.txt '.[cli,engine]'"
        )


def make(
    fqn: str, version: str, packages: Iterable[pathlib.Path], classes: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """Return the JSON schemas of the classes of a release.

    :param fqn: the package of the release.
    :param version: the version of the release.
    :param packages: the paths of the release, and of the other releases in its plan.
    :param classes: the names of the classes.
    :returns: class -> ``{"schema": SCHEMA}``, where SCHEMA is a JSON string. If the schema cannot
        be made: class -> ``{"problem": TEXT}``.
    """
    names = [*classes]
    try:
        with tempfile.TemporaryFile() as file:
            file.write(json.dumps([os.fspath(path.absolute()) for path in packages]).encode())
            file.seek(0)
            parameters = {"fqn": fqn, "version": version}
            answer = sandbox.run(_FUNCTION, file, parameters, _LIMITS).content
    except sandbox.LimitReached as error:
        problem = f"The contracts were run in a child process, which {error}"
    except sandbox.ChildFailed as error:
        # The last line of a traceback is the error.
        problem = f"The child process failed: {error}; {error.output[-_MAX_TEXT:].strip()}"
    else:
        return {name: _checked(answer, name) for name in names}
    return {name: {"problem": problem} for name in names}


def _checked(answer: Any, name: str) -> dict[str, str]:
    """Return the child's answer for a class, or a problem if the answer has an unexpected form.

    The answer is not trusted, since a hostile package may have taken control of the child.

    :param answer: the whole answer of the child.
    :param name: the name of the class.
    """
    found = answer.get(name) if isinstance(answer, Mapping) else None
    if isinstance(found, Mapping):
        if isinstance(found.get("schema"), dict):
            return {"schema": json.dumps(found["schema"], indent=2, sort_keys=False)}
        if isinstance(found.get("problem"), str):
            return {"problem": found["problem"][:_MAX_TEXT]}
    return {"problem": "The child process has returned no schema"}
