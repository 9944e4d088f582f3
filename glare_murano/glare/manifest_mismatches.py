# SPDX-License-Identifier: Apache-2.0

"""Compare the fields of an artifact with the manifest in its archive.

A client creates an artifact with name and version. The client may also send any other field, before
or after the archive. If a value differs from the package, the upload or the patch is refused. The
message contains the value from the client and the value from the package.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import jsonpatch
from glare.common import exception

from glare_murano import fields
from glare_murano.glare.interfaces import Artifact
from glare_murano.glare.options import SETTINGS
from glare_murano.package import InvalidManifest, Problem
from glare_murano.package.errors import quoted
from glare_murano.package.rules import Rule
from glare_murano.service import name_checks
from glare_murano.stored_contents import StoredContents

# Field that an artifact has from its creation -> key of the manifest.
_IDENTITY = {"name": "FullName", "version": "Version"}


def check_upload(af: Artifact, contents: StoredContents) -> None:
    """Compare an uploaded package with the fields of its artifact, and check the package's names.

    If the archive replaces an earlier archive, only the name and the version are compared: the
    other fields come from the earlier archive.

    :raises InvalidManifest: if a field differs from the package, or a name belongs to others. The
        error has all problems.
    """
    compared: dict[str, Any] = {"name": contents.fqn, "version": str(contents.version)}
    if af.archive is None or not af.archive["url"]:
        # No archive was uploaded before, so the client has sent the other fields. If an archive is
        # replaced, they come from the earlier archive, and may differ.
        compared |= contents.values
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
    if problems:
        raise InvalidManifest(problems)


def check_patch(af: Artifact, patch: jsonpatch.JsonPatch) -> Mapping[str, Any]:
    """Check that a JSON patch changes only fields that a client may change.

    :returns: all fields of the artifact after the patch.
    :raises glare.common.exception.Forbidden: if the patch changes the name, the version, or a field
        that was read from the archive.
    :raises glare.common.exception.BadRequest: if the patch cannot be applied, or if it has an
        operation ``move`` or ``copy``, which Glare does not apply correctly.
    """
    for operation in patch:
        if operation["op"] in ("move", "copy"):
            # Glare cannot complete a "move", and a repeated "copy" doubles values.
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
    """Convert a value for a comparison. Lists are sorted, since Glare does not keep their order."""
    return sorted(value) if isinstance(value, list) else value


def _to_string(value: Any) -> str:
    return quoted(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
