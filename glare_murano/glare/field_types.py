# SPDX-License-Identifier: Apache-2.0

"""Declare the fields of the artifact type, with the limits of Glare's database.

Some of Glare's field classes are slow or faulty with current libraries. The subclasses in this
module correct them.
"""

import json
import re
from typing import Any

import jsonschema
from glare.common import exception
from glare.objects import base
from glare.objects.meta import fields as glare_fields
from glare.objects.meta import validators, wrappers
from oslo_versionedobjects import fields as ovo_fields

from glare_murano import fields as table
from glare_murano.package import InvalidVersion, Version

_CONTROL_CHARACTERS = re.compile(table.CONTROL_CHARACTERS)

STRING_FILTERS = wrappers.Field.get_default_filter_ops(ovo_fields.String)
_BLOB_SCHEMA = jsonschema.Draft202012Validator(glare_fields.BlobFieldType.BLOB_SCHEMA)


class _Element(ovo_fields.String):
    """A string in a list or dict.

    ``coerce`` is a static method, since Glare's parser of filters calls it on the class.
    """

    @staticmethod
    def coerce(obj: Any, attr: str, value: Any) -> str:
        if not isinstance(value, str | int | float):
            raise ValueError(f"expected a string, found a {type(value).__name__}")
        return str(value)


class _Distinct(validators.Unique):  # type: ignore[misc]
    """A validator that removes duplicates from a list.

    If a value were in a list twice, a request that filters by this value would return the artifact
    twice.
    """

    def __call__(self, value: Any) -> None:
        value[:] = list(dict.fromkeys(value))


class _Line(validators.Validator):  # type: ignore[misc]
    """A validator that refuses control characters."""

    @staticmethod
    def get_allowed_types() -> tuple[type, ...]:
        return (ovo_fields.StringField,)

    def __call__(self, value: str) -> None:
        if found := _CONTROL_CHARACTERS.search(value):
            raise ValueError(f"the control character U+{ord(found[0]):04X} is not allowed")

    def to_jsonschema(self) -> dict[str, Any]:
        return {"not": {"pattern": table.CONTROL_CHARACTERS}}


class _BlobType(glare_fields.BlobFieldType):  # type: ignore[misc]
    """The type of a blob's metadata.

    Unlike Glare's own type, it compiles the JSON schema of the metadata only once.
    """

    @staticmethod
    def coerce(obj: Any, field: str, value: Any) -> Any:
        if _BLOB_SCHEMA.is_valid(value):
            return value
        return glare_fields.BlobFieldType.coerce(obj, field, value)


class _AutoTypedBlob(glare_fields.BlobField):  # type: ignore[misc]
    AUTO_TYPE = _BlobType()


class BlobField(wrappers.BlobField):  # type: ignore[misc]
    """A field for a blob. It validates the blob's metadata faster than Glare's own field."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.field_class = _AutoTypedBlob


def declare(field: table.Field) -> Any:
    """Declare the Glare field for an entry of ``fields.FIELDS``, and return the declaration."""
    common: dict[str, Any] = {"description": field.description, "mutable": field.mutable}
    common["required_on_activate"] = False
    length = validators.MaxStrLen(field.max_length)
    if field.is_line:
        common.update(default="", nullable=False, validators=[length, _Line()])
        return _strict(wrappers.Field.init(ovo_fields.StringField, **common))
    if field.kind == "string":
        return wrappers.Field.init(ovo_fields.StringField, validators=[length], **common)
    common.update(max_size=table.MAX_ELEMENTS, element_validators=[length])
    if field.kind == "list":
        return _filtered(wrappers.ListField.init(_Element, validators=[_Distinct()], **common))
    return _filtered(wrappers.DictField.init(_Element, **common))


def _strict(field: Any) -> Any:
    """Make a string field refuse other values, such as ``false``.

    Glare would convert such values to strings.
    """
    coerce = field.coerce

    def coerce_string(obj: Any, name: str, value: Any) -> Any:
        if value is not None and not isinstance(value, str):
            raise exception.BadRequest(f"{name}: expected a string, found {json.dumps(value)[:80]}")
        return coerce(obj, name, value)

    field.coerce = coerce_string
    return field


def declare_metadata() -> Any:
    """Declare Glare's common field ``metadata`` so that lists can be filtered by it."""
    field = wrappers.DictField.init(
        _Element,
        required_on_activate=False,
        element_validators=[validators.MinStrLen(1)],
        description="Free text of the publisher, by key.",
    )
    return _filtered(field)


def _filtered(field: Any) -> Any:
    """Add the filter operators of strings to a list or dict field, and return the field.

    Glare looks up the operators by the class of the elements. It finds no operators for
    ``_Element``, since it does not consider base classes.
    """
    field.filter_ops = list(STRING_FILTERS)
    return field


def declare_version() -> Any:
    """Declare the field ``version`` so that it refuses versions that are not valid.

    Glare itself would read ``1.2.3.4`` as 1.2.3+4.
    """
    field = _version_field("Version of the package (SemVer).")
    coerce = field.coerce

    def coerce_strictly(obj: Any, name: str, value: Any) -> Any:
        if not isinstance(value, str):
            # The JSON parser has already read the number 1.10 as 1.1.
            raise exception.BadRequest(f"{name}: expected a string, found {value!r}")
        try:
            return coerce(obj, name, str(table.check_version(value)))
        except ValueError as error:
            raise exception.BadRequest(f"{name}: {error}") from error

    field.coerce = coerce_strictly
    return field


def declare_version_of_all() -> Any:
    """Declare the field ``version`` so that filters refuse numbers that Glare cannot compare.

    Glare itself would answer such a filter with 500. Otherwise the field accepts what Glare
    accepts, since artifacts of other types may have any version.
    """
    field = _version_field("Artifact version (SemVer).")
    coerce = field.coerce

    def coerce_comparable(obj: Any, name: str, value: Any) -> Any:
        version = coerce(obj, name, value)
        try:
            table.check_numbers(Version(version))
        except InvalidVersion as error:
            raise exception.BadRequest(f"{name}: {error}") from error
        return version

    field.coerce = coerce_comparable
    return field


def _version_field(description: str) -> Any:
    return wrappers.Field.init(
        glare_fields.VersionField,
        required_on_activate=False,
        default=base.BaseArtifact.DEFAULT_ARTIFACT_VERSION,
        nullable=False,
        sortable=True,
        validators=[validators.Version()],
        description=description,
    )
