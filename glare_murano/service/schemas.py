# SPDX-License-Identifier: Apache-2.0

"""Define the JSON schemas of requests. ``doc/openapi.yaml`` contains the same schemas."""

from typing import Any

from glare_murano import fields, wire

_ID = {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
_RANGE = {"type": ["string", "null"]}
_RANGES = {"type": "object", "maxProperties": wire.MAX_REQUIREMENTS, "additionalProperties": _RANGE}
_OBJECT = {
    "type": "object",
    "properties": {"class": {"type": "string"}, "version": _RANGE},
    "required": ["class"],
    "additionalProperties": False,
}
_VERSIONS = {"type": "array", "maxItems": wire.MAX_PINS, "items": {"type": "string"}}
_PINS = {**_RANGES, "additionalProperties": _VERSIONS}
_LINE: dict[str, Any] = next(
    {"type": "string", "maxLength": field.max_length, "not": {"pattern": fields.CONTROL_CHARACTERS}}
    for field in fields.FIELDS
    if field.name == "yanked"
)

QUERY = {
    "type": "object",
    "properties": {
        "requirements": _RANGES,
        "package": {"type": "string", "maxLength": 36},
        "objects": {"type": "array", "maxItems": wire.MAX_REQUIREMENTS, "items": _OBJECT},
        "pins": _PINS,
        "provided": _PINS,
        "prereleases": {"type": "boolean"},
        "why": {"type": "boolean"},
        "project_id": {"type": "string"},
        "private_overrides": {"type": "boolean"},
    },
    "additionalProperties": False,
}

BATCH = {
    "type": "object",
    "properties": {
        "artifacts": {"type": "array", "maxItems": wire.MAX_ARCHIVES, "items": _ID},
    },
    "required": ["artifacts"],
    "additionalProperties": False,
}

DELETIONS = {
    "type": "object",
    "properties": {
        "packages": {
            "type": "array",
            "maxItems": wire.MAX_PUBLICATIONS,
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "version": {"type": "string"}},
                "required": ["name", "version"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["packages"],
    "additionalProperties": False,
}

PUBLICATION = {
    "type": "object",
    "properties": {
        "ids": {
            "type": "array",
            "minItems": 1,
            "maxItems": wire.MAX_PUBLICATIONS,
            "items": _ID,
        },
        "visibility": {"enum": ["private", "public"]},
        "dry_run": {"type": "boolean"},
    },
    "required": ["ids", "visibility"],
    "additionalProperties": False,
}

YANK = {
    "type": "object",
    "properties": {"id": _ID, "reason": _LINE},
    "required": ["id", "reason"],
    "additionalProperties": False,
}

SUBCLASSES = {
    "type": "object",
    "properties": {
        name: {"type": "string", "minLength": 1}
        for name in ("class", "package", "version", "marker", "limit")
    },
    "required": ["class"],
    "additionalProperties": False,
}
