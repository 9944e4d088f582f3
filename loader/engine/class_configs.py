# SPDX-License-Identifier: Apache-2.0

"""Read the operator's files with values for ``Usage: Config`` properties of classes.

The files are in the directory ``[engine] class_configs``, and are called ``CLASS-VERSION.yaml`` or
``.json``. A file is found by the name of the class alone, and any package can define a class with
this name. So ``may_read`` checks the package.
"""

import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import yaml

from glare_murano import eligibility
from glare_murano.package.reserved_names import ReservedNames
from glare_murano.wire import Release

_FILE_NAME = re.compile(r"(?P<class_name>.+?)(-[0-9.]+)?\.(json|yaml)")


def may_read(class_name: str, release: Release, reserved: ReservedNames) -> bool:
    """Return whether a class may get the values in the operator's files.

    A class may get them if its package comes from the operator's directory or lock file. For any
    other package, the name of the class decides. If the name is reserved, the package has to belong
    to a project that owns the name. If it is not reserved, the package has to be public.

    :param release: the release of the package that declares the class.
    :param reserved: the names that the operator has reserved for projects.
    """
    if eligibility.is_from_operator(release):
        return True
    reservation = reserved.find(class_name)
    if reservation is not None:
        return release.owner in reservation.projects
    return release.visibility == eligibility.PUBLIC


def find(directory: str, class_name: str) -> list[pathlib.Path]:
    """Return the paths of all files for a class. A file's name may contain any version.

    :param directory: the operator's directory, which may be missing.
    """
    return [path for path, name in _files(directory) if name == class_name]


def class_names(directory: str) -> set[str]:
    """Return the names of all classes that have a file.

    :param directory: the operator's directory, which may be missing.
    """
    return {name for _, name in _files(directory)}


def _files(directory: str) -> Iterator[tuple[pathlib.Path, str]]:
    """Yield the path of each file, and the name of its class."""
    folder = pathlib.Path(directory)
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if found := _FILE_NAME.fullmatch(path.name):
            yield path, found["class_name"]


def read(path: pathlib.Path) -> dict[str, Any]:
    """Read the values in a file.

    As in Murano, a file whose content is not a dictionary gives no values.

    :raises ValueError: if the file is unreadable or not valid.
    """
    try:
        text = path.read_text(encoding="utf-8")
        values = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    return values if isinstance(values, dict) else {}
