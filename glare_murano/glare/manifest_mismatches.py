# SPDX-License-Identifier: Apache-2.0

"""The comparison of an artifact with the manifest in its archive.

A client creates an artifact with name and version, and may send any other field,
before or after the archive. A value that contradicts the package is refused and never
stored; the message has both values.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import jsonpatch
from glare.common import exception

from glare_murano import fields
from glare_murano.glare.interfaces import Artifact
from glare_murano.glare.options import SETTINGS
from glare_murano.package import Contents, InvalidManifest, Problem
from glare_murano.package.errors import quoted
from glare_murano.package.rules import Rule
from glare_murano.service import name_checks

# Fields that an artifact has from its creation -> keys of the manifest.
_IDENTITY = {"name": "FullName", "version": "Version"}


def check_upload(af: Artifact, contents: Contents) -> None:
    """Compare an uploaded package with the artifact's present fields; check names and limits.

    :raises InvalidManifest: with a problem for each contradiction, each name that belongs to
        others, and each value that Glare cannot store.
    """
    manifest, values = contents.manifest, fields.from_contents(contents)
    compared: dict[str, Any] = {"name": manifest.full_name, "version": str(manifest.version)}
    if af.archive is None or not af.archive["url"]:
        # No archive is replaced. Otherwise these fields come from that archive, and may differ.
        compared |= values
    problems = [
        Problem(
            Rule.MANIFEST_MISMATCH,
            _IDENTITY.get(field, field),
            f"the package says {_to_string(value)}, but the artifact was created with {field} "
            f"{_to_string(getattr(af, field))}",
        )
        for field, value in compared.items()
        if getattr(af, field) and _comparable(getattr(af, field)) != _comparable(value)
    ]
    problems += name_checks.find_problems(SETTINGS, contents, af.owner)
    problems += fields.find_excess(values)
    if problems:
        raise InvalidManifest(problems)


def check_patch(af: Artifact, patch: jsonpatch.JsonPatch) -> Mapping[str, Any]:
    """Refuse a JSON patch that changes name, version, or a field of an uploaded package.

    :returns: all fields as the patch makes them.
    :raises glare.common.exception.Forbidden: naming the field.
    :raises glare.common.exception.BadRequest: for a patch that cannot be applied.
    """
    for operation in patch:
        if operation["op"] in ("move", "copy"):
            # Glare stops half-way in "move", and a repeated "copy" doubles values.
            raise exception.BadRequest(
                f"{operation['op']} is not supported; use replace with the value"
            )
        if not operation["path"].startswith("/"):
            raise exception.BadRequest(
                f"{quoted(operation['path'])} is not a valid JSON pointer to a field"
            )
    before = af.to_dict()
    try:
        after: dict[str, Any] = patch.apply(before)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError) as error:
        raise exception.BadRequest(str(error)) from error
    _check_unchanged(
        _IDENTITY, before, after, "the artifact was created with", "create another artifact"
    )
    if before[fields.ARCHIVE]:
        names = [field.name for field in fields.FIELDS if field.by_package]
        _check_unchanged(names, before, after, "the package says", "upload another archive")
    return after


def _check_unchanged(
    names: Iterable[str], before: dict[str, Any], after: dict[str, Any], origin: str, remedy: str
) -> None:
    for name in names:
        if after.get(name) != before[name]:
            raise exception.Forbidden(
                f"{name}: {origin} {_to_string(before[name])}, which cannot become "
                f"{_to_string(after.get(name))}; {remedy}"
            )


def _comparable(value: Any) -> Any:
    """Sort a list, since Glare does not keep the order of tags; return other values unchanged."""
    return sorted(value) if isinstance(value, list) else value


def _to_string(value: Any) -> str:
    return quoted(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
