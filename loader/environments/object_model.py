# SPDX-License-Identifier: Apache-2.0

"""The object model of an environment: the headers of its objects.

Murano's API keeps the model, and its engine loads it. The header of an object is its key
``?``. Its ``type`` is ``CLASS``, with ``/RANGE`` and ``@PACKAGE`` if they are known; the
engine always writes both, with a full version as the range.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from glare_murano.package import GlareMuranoError, VersionSpec
from glare_murano.package.manifest import check_full_name

# The current objects, and the objects of the former deployment. The engine loads both.
_OBJECTS = ("Objects", "ObjectsCopy")


def root_header(model: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the header of the root object, or None if it is missing or malformed."""
    root = model.get("Objects")
    header = root.get("?") if isinstance(root, dict) else None
    return header if isinstance(header, dict) else None


def object_headers(model: Mapping[str, Any]) -> Iterator[tuple[str, VersionSpec]]:
    """Yield the class of each object and the range in its header, in any order.

    A malformed header is left out: the engine reports it when it loads the object.
    """
    for header in _headers(model):
        class_name, version, _ = _parse_type(header["type"])
        # The package is left out, since a dependency query has only one range for each package.
        with contextlib.suppress(GlareMuranoError):
            yield (
                check_full_name(class_name),
                canonical_range(version or header.get("classVersion") or "*"),
            )


def canonical_range(text: object) -> VersionSpec:
    """Parse a range that the engine has written, with clauses in any order.

    :raises InvalidRange: if the range is not valid.
    """
    return VersionSpec.of(VersionSpec.of(str(text)).canonical)


def change_versions(model: Mapping[str, Any], change: Callable[[str, str], str]) -> None:
    """Change the ranges in those headers of objects that the engine has written.

    :param change: takes an FQN and a range, and returns the new range.
    """
    for header in _headers(model):
        class_name, version, package = _parse_type(header["type"])
        if version and package:
            header["type"] = f"{class_name}/{change(package, version)}@{package}"


def _headers(model: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    values = [model.get(key) for key in _OBJECTS]
    while values:
        value = values.pop()
        if isinstance(value, list):
            values += value
        elif isinstance(value, dict):
            values += value.values()
            header = value.get("?")
            if isinstance(header, dict) and isinstance(header.get("type"), str):
                yield header


def _parse_type(text: str) -> tuple[str, str, str]:
    """Split ``CLASS/RANGE@PACKAGE``; missing parts are empty."""
    versioned, _, package = text.partition("@")
    class_name, _, version = versioned.partition("/")
    return class_name, version, package
