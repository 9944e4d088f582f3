# SPDX-License-Identifier: Apache-2.0

"""Define which contents of a package a service stores, and convert them to JSON and back.

A service reads archives in a child process, which sends the contents as JSON. A hostile archive may
have taken control of the child. So ``from_json`` refuses values that cannot come from a package.
"""

import base64
import binascii
import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any

from glare_murano import fields
from glare_murano.package import Contents, InvalidManifest, Problem, Version, parse_version
from glare_murano.package.archive_process import from_json as problems_from_json
from glare_murano.package.archive_process import to_json as problems_to_json
from glare_murano.package.contents import MAX_IMAGE_SIZE
from glare_murano.package.manifest import (
    CORE_LIBRARY,
    MAX_REQUIREMENTS,
    PACKAGE_TYPES,
    Format,
    check_fqn,
    check_required_name,
)
from glare_murano.package.safe_yaml import MAX_SIZE
from glare_murano.package.versions import VersionSpec

# The largest size of each blob in bytes.
_MAX_BLOB = {"logo": MAX_IMAGE_SIZE, "supplier_logo": MAX_IMAGE_SIZE, "ui_definition": MAX_SIZE}
# The number of implicit requirements: a package requires the core library and itself.
_IMPLICIT = 2
_KINDS: Mapping[str, type] = {"string": str, "list": list, "dict": dict}


@dataclasses.dataclass(frozen=True)
class StoredContents:
    """The contents of a package that a service stores.

    :param values: the values of the fields in ``fields.FIELDS`` and ``fields.COMMON``, by name.
    :param blobs: the contents of those blobs in ``fields.BLOBS`` that the package has, by name.
    :param warnings: mistakes in the package that do not prevent its publication.
    """

    fqn: str
    version: Version
    values: Mapping[str, Any]
    blobs: Mapping[str, bytes]
    warnings: tuple[Problem, ...] = ()

    @classmethod
    def of(cls, contents: Contents) -> "StoredContents":
        """Take the contents that a service stores, and leave out all other contents of a package.

        :param contents: all contents of the package.
        :raises InvalidManifest: if a service cannot store a value.
        """
        values = fields.from_contents(contents)
        if problems := fields.find_excess(values):
            raise InvalidManifest(problems, contents.warnings)
        found = {blob.name: blob.fill(contents) for blob in fields.BLOBS}
        return cls(
            contents.manifest.fqn,
            contents.manifest.version,
            values,
            {name: data for name, data in found.items() if data is not None},
            contents.warnings,
        )

    @property
    def class_names(self) -> list[str]:
        """The names of the classes that the package defines."""
        names: list[str] = self.values["class_definitions"]
        return names

    def to_json(self) -> dict[str, Any]:
        """Return these contents as a JSON object that ``from_json`` can read."""
        return {
            "fqn": self.fqn,
            "version": str(self.version),
            "values": dict(self.values),
            "blobs": {name: base64.b64encode(b).decode() for name, b in self.blobs.items()},
            "warnings": problems_to_json(self.warnings),
        }


def from_json(content: object, meanwhile: Callable[[], object] = lambda: None) -> StoredContents:
    """Read and check the contents of a package that a child process has sent.

    :param content: the JSON object, which is not trusted.
    :param meanwhile: a function that is called after each requirement is read. It lets the caller
        do other work, since parsing many long ranges takes some time.
    :raises ValueError: if these contents cannot come from a package.
    """
    match content:
        case {
            "fqn": str() as fqn,
            "version": str() as version,
            "values": dict() as values,
            "blobs": dict() as blobs,
            "warnings": warnings,
        }:
            _check_values(values, meanwhile)
            if fqn != CORE_LIBRARY and not {fqn, CORE_LIBRARY} <= values["requirements"].keys():
                raise ValueError("a requirement that every package has is missing")
            return StoredContents(
                check_fqn(fqn),
                parse_version(version),
                values,
                {name: _blob(name, text) for name, text in blobs.items()},
                problems_from_json(warnings),
            )
    raise ValueError("the result is not that of a package")


def _check_values(values: Mapping[str, Any], meanwhile: Callable[[], object]) -> None:
    kinds = {field.name: _KINDS[field.kind] for field in fields.FIELDS if field.fill is not None}
    kinds |= {"description": str, "tags": list}
    if values.keys() != kinds.keys():
        raise ValueError("a field is missing or unknown")
    for name, value in values.items():
        strings = value.values() if isinstance(value, dict) else value
        if not isinstance(value, kinds[name]) or not all(isinstance(s, str) for s in strings):
            raise ValueError(f"{name} has another type")
        if isinstance(value, list) and len(set(value)) < len(value):
            raise ValueError(f"{name} has a duplicate")
    if problems := fields.find_excess(values):
        raise InvalidManifest(problems)
    if values["type"] not in PACKAGE_TYPES:
        raise ValueError("the type is unknown")
    Format.of(values["format"])
    _check_classes(values["class_definitions"], values["inherits"])
    if len(values["requirements"]) > MAX_REQUIREMENTS + _IMPLICIT:
        raise ValueError("there are too many requirements")
    for fqn, text in values["requirements"].items():
        check_required_name(fqn)
        VersionSpec.of(text)
        meanwhile()


def _check_classes(names: Collection[str], inherits: Mapping[str, str]) -> None:
    for name in (*names, *inherits):
        check_fqn(name)
    for subclasses in inherits.values():
        if not set(subclasses.split(",")) <= set(names):
            raise ValueError("a subclass is not a class of the package")


def _blob(name: str, text: object) -> bytes:
    blob = next((each for each in fields.BLOBS if each.name == name), None)
    if blob is None or not isinstance(text, str):
        raise ValueError("a blob is unknown, or has another type")
    try:
        data = base64.b64decode(text, validate=True)
        blob.content_type(data)
    except (binascii.Error, StopIteration) as error:
        raise ValueError(f"{name} has another form") from error
    if len(data) > _MAX_BLOB[name]:
        raise ValueError(f"{name} is too large")
    return data
