# SPDX-License-Identifier: Apache-2.0

"""Make the JSON schemas of a release's classes in a child process.

The contracts of classes are code of the package. So the child process has limits, but no
environment variables and no token. With Landlock, it can read the packages, but no other files of
the user; see ``sandbox.walls``. Its answer is checked before a page shows it. The child runs
``loader.engine.class_schemas``, which needs the extra ``engine`` of this distribution.
"""

import dataclasses
import importlib.util
import json
import os
import pathlib
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from glare_murano import extras
from glare_murano.package import sandbox
from loader import errors

_FUNCTION = "loader.engine.class_schemas:make"
# The processor time in seconds, and the address space in bytes, for all classes of a release. The
# core library takes 1 s and 145 MB.
_LIMITS = sandbox.ChildSettings(seconds=10, memory=1024**3)
# The longest schema, without and with indents, in characters.
_MAX_SCHEMA, _MAX_WRITTEN = 64 * 1024, 256 * 1024
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
            "--schemas needs Murano's engine, which is not installed; "
            f"{extras.remedy('cli,engine')}"
        )


def make(
    fqn: str, releases: Mapping[str, tuple[Sequence[pathlib.Path], Sequence[str]]]
) -> tuple[dict[str, dict[str, dict[str, str]]], bool]:
    """Return the JSON schemas of the classes of a package.

    If a child process for one of its releases reaches a limit or fails, the following releases are
    not tried, so that a package cannot stop a rendering for long.

    :param releases: version -> the paths of the release and of the releases that fit together with
        it, and the names of its classes.
    :returns: version -> class -> ``{"schema": SCHEMA}``, where SCHEMA is JSON as a string, or
        ``{"problem": TEXT}``; and whether another attempt would return the same. It might not if
        the host lacked memory, for example.
    """
    found, problem, is_final = {}, "", True
    for version, (places, classes) in releases.items():
        answer: Any = None
        if not problem:
            try:
                answer = _request(fqn, version, places)
            except sandbox.LimitReached as error:
                problem = f"The schemas of {version} were made in a child process, which {error}."
            except (sandbox.ChildFailed, OSError) as error:
                problem, is_final = str(error), False
        found[version] = {
            name: {"problem": problem} if problem else _checked(answer, name) for name in classes
        }
    return found, is_final


def _request(fqn: str, version: str, places: Iterable[pathlib.Path]) -> Any:
    paths = [os.fspath(place.absolute()) for place in places]
    with tempfile.TemporaryFile() as file:
        file.write(json.dumps(paths).encode())
        file.seek(0)
        parameters = {"fqn": fqn, "version": version}
        settings = dataclasses.replace(_LIMITS, readable=paths)
        return sandbox.run(_FUNCTION, file, parameters, settings).content


def _checked(answer: Any, name: str) -> dict[str, str]:
    """Return the child's answer for a class. A package may have taken over the child.

    :param answer: the whole answer. If no class could be loaded, its only key is empty.
    """
    found = answer.get(name, answer.get("")) if isinstance(answer, Mapping) else None
    if not isinstance(found, Mapping):
        found = {}
    problem = found.get("problem")
    if not isinstance(problem, str):
        problem = "The child process has returned no schema."
    if isinstance(found.get("schema"), dict):
        schema = _written(found["schema"])
        if schema:
            return {"schema": schema}
        problem = "The schema is too long for a page."
    return {"problem": problem[:_MAX_TEXT]}


def _written(schema: Mapping[str, Any]) -> str:
    """Write a schema with indents; return an empty string if it is too long."""
    try:
        if len(json.dumps(schema)) <= _MAX_SCHEMA:
            written = json.dumps(schema, indent=2)
            return written if len(written) <= _MAX_WRITTEN else ""
    except RecursionError:
        pass
    return ""
