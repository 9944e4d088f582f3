# SPDX-License-Identifier: Apache-2.0

"""Read the object model of an environment, and change the headers of the objects in it.

Murano's API keeps the model, and the engine loads it. The header of an object is the value of its
key ``?``. The ``type`` in a header is ``CLASS``, which ``/RANGE`` and ``@PACKAGE`` may follow. The
engine always writes all three, with a full version as the range.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from glare_murano.package import GlareMuranoError, VersionSpec
from glare_murano.package.errors import InvalidName, InvalidRange, quoted
from glare_murano.package.manifest import check_fqn, check_required_name

# The current objects, and the objects of the former deployment. The engine loads both.
_OBJECTS = ("Objects", "ObjectsCopy")


def root_header(model: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the header of the root object; None if it is missing or malformed."""
    root = model.get("Objects")
    header = root.get("?") if isinstance(root, dict) else None
    return header if isinstance(header, dict) else None


def object_headers(model: Mapping[str, Any]) -> Iterator[tuple[str, VersionSpec]]:
    """Yield the class of each object, with the range in its header, in any order.

    Malformed headers are left out: the engine reports them when it loads the objects.
    """
    for header in _headers(model):
        # The header's package is not used: a dependency query has only one range for a package.
        with contextlib.suppress(GlareMuranoError):
            class_name, spec, _ = parse_header(header["type"], header.get("classVersion"))
            yield class_name, canonical_range(spec)


def parse_header(
    type_name: object, version: object, package: object = None
) -> tuple[str, VersionSpec, str | None]:
    """Return the class, the range and the package in the header of an object.

    :param type_name: the value of ``type``, such as ``CLASS`` or ``CLASS/RANGE@PACKAGE``.
    :param version: the value of ``classVersion``, which is used if the type has no range.
    :param package: the value of ``package``, which is used if the type has no package.
    :returns: the three values; the package is None if the header does not name a package.
    :raises InvalidName: if the type, or the name of the class or of the package, is not valid.
    :raises InvalidRange: if the range is not valid.
    """
    subject = f"the type {quoted(str(type_name))} of an object"
    if not isinstance(type_name, str):
        raise InvalidName(f"{subject} is not valid: expected a string such as org.example.App")
    versioned, at, written_package = type_name.partition("@")
    class_name, slash, written_range = versioned.partition("/")
    for separator, text, meaning in ((slash, written_range, "range"), (at, written_package, "FQN")):
        if separator and not text.strip():
            raise InvalidName(
                f"{subject} has no {meaning} after {separator!r}; add one, or remove {separator!r}"
            )
    package = written_package or package or None
    try:
        check_fqn(class_name)
        if package is not None:
            check_required_name(package if isinstance(package, str) else repr(package))
        spec = requested_range(written_range or version)
    except InvalidName as error:
        raise InvalidName(f"{subject}: {error}") from error
    except InvalidRange as error:
        raise InvalidRange(f"the version of an object of class {class_name}: {error}") from error
    return class_name, spec, None if package is None else str(package)


def requested_range(version: object) -> VersionSpec:
    """Return the range for a version in the header of an object, or in a request to Murano's API.

    :param version: a range; or a whole number, since YAML and JSON read ``1`` without quotes as a
        number. None and an empty string mean any version.
    :raises InvalidRange: if the value is anything else, such as a fraction: ``1.10`` without quotes
        is the number 1.1.
    """
    if version is None or version == "":
        return VersionSpec.of("*")
    is_whole = isinstance(version, int) and not isinstance(version, bool)
    return VersionSpec.of(str(version) if is_whole else version)  # type: ignore[arg-type]


def canonical_range(text: object) -> VersionSpec:
    """Parse a range, and return it in a form that does not depend on the order of its clauses.

    If two strings differ only in this order, the returned ranges are equal.

    :raises InvalidRange: if the range is not valid.
    """
    return VersionSpec.of(VersionSpec.of(str(text)).canonical)


def change_versions(model: Mapping[str, Any], change: Callable[[str, str], str]) -> None:
    """Change the ranges in those headers of a model that have a range and a package.

    The engine has written these headers. Other headers are not changed.

    :param change: a function that takes the FQN of a package and a range, and returns the new
        range.
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
    """Split ``CLASS/RANGE@PACKAGE`` into three parts; missing parts are empty strings."""
    versioned, _, package = text.partition("@")
    class_name, _, version = versioned.partition("/")
    return class_name, version, package
