# SPDX-License-Identifier: Apache-2.0

"""What a client says of a package, held against what the package itself says.

A client claims name and version when it creates an artifact, and may send any
other field as well, before or after the archive. The package decides: what
contradicts it is refused with the field and both values, and never stored.
"""

import json
from typing import Any

import jsonpatch
from glare.common import exception

from glare_murano import fields
from glare_murano.package import Contents, InvalidManifest, Problem
from glare_murano.package.errors import quoted
from glare_murano.package.rules import Rule

# Field -> key of the manifest. An artifact has both from the beginning.
_CLAIMED = {"name": "FullName", "version": "Version"}


def check_upload(af: Any, contents: Contents) -> None:
    """Hold what an artifact says already against the archive that is uploaded.

    :raises InvalidManifest: if they differ, with a problem for each field.
    """
    manifest = contents.manifest
    said: dict[str, Any] = {"name": manifest.full_name, "version": str(manifest.version)}
    if not af.archive["url"]:
        # Else the other fields stem from the archive that is to be replaced.
        said |= {**fields.from_contents(contents), **fields.common_from_contents(contents)}
    problems = [
        Problem(
            Rule.MANIFEST_MISMATCH,
            _CLAIMED.get(field, field),
            f"the package says {_text(value)}, but the artifact was created with {field} "
            f"{_text(getattr(af, field))}",
        )
        for field, value in said.items()
        if getattr(af, field) and _comparable(getattr(af, field)) != _comparable(value)
    ]
    if problems:
        raise InvalidManifest(problems)


def check_patch(af: Any, patch: Any) -> None:
    """Hold a JSON patch against what was claimed, and what the archive says.

    :raises glare.common.exception.Forbidden: if it would change that.
    :raises glare.common.exception.BadRequest: if it cannot be applied.
    """
    for operation in patch:
        if operation["op"] in ("move", "copy"):
            # Glare fails in the middle of the one; the other, repeated, doubles
            # what is there each time.
            raise exception.BadRequest(
                message=f"{operation['op']} is not supported; use replace with the value"
            )
        if not operation["path"].startswith("/"):
            raise exception.BadRequest(
                message=f"{quoted(operation['path'])} is no JSON pointer to a field"
            )
    before = af.to_dict()
    try:
        after = patch.apply(before)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError) as error:
        raise exception.BadRequest(message=str(error)) from error
    for field in _CLAIMED:
        if after.get(field) != before[field]:
            raise exception.Forbidden(
                message=f"{field}: the artifact was created with {_text(before[field])}, which "
                f"cannot become {_text(after.get(field))}; create another artifact"
            )
    if not before[fields.ARCHIVE]:
        return
    for name in (field.name for field in fields.FIELDS if field.by_package):
        if after.get(name) != before[name]:
            raise exception.Forbidden(
                message=f"{name}: the package says {_text(before[name])}, which cannot become "
                f"{_text(after.get(name))}; upload another archive"
            )


def _comparable(value: Any) -> Any:
    """A list without its order: Glare keeps none of tags."""
    return sorted(value) if isinstance(value, list) else value


def _text(value: Any) -> str:
    return quoted(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
