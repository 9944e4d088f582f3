# SPDX-License-Identifier: Apache-2.0

"""Describe what a package type generates, for the loader and for authors.

The loader reads archives in its own process. But the function of a package type may come from
another distribution, so it runs in a child process with limits.
"""

import base64
import dataclasses
from typing import IO, Any

from glare_murano.package import archive_process, package_types
from glare_murano.package.archive import Archive
from glare_murano.package.archive_rules import DEFAULT_LIMITS, Limits
from glare_murano.package.manifest import MANIFEST_FILE, Manifest
from glare_murano.package.package_types import Description
from glare_murano.package.safe_yaml import MAX_SIZE
from glare_murano.package.sandbox import ChildSettings

_IN_CHILD = "glare_murano.package.type_process:describe_in_child"


def describe(manifest: Manifest, archive: Archive) -> Description:
    """Return the description of a package: what its package type generates.

    The function for the format of the package makes the description. A function of this project
    runs in this process, and any other function in a child process. If no function is installed,
    the description is made from the manifest alone.

    :raises InvalidPackage: if the function refuses the package, or fails.
    """
    if package_types.is_built_in(manifest.format):
        return package_types.call(manifest, archive)
    if not package_types.has_function(manifest.format):
        return package_types.from_manifest(manifest)
    label = f"{manifest.fqn} {manifest.version}"
    limits = {"limits": dataclasses.asdict(DEFAULT_LIMITS)}
    with archive.open_zip() as package:
        result = archive_process.read(_IN_CHILD, package, limits, ChildSettings(), label)
    try:
        return _description(result)
    except (TypeError, ValueError) as error:
        raise archive_process.failure(label, str(error)) from error


def describe_for_author(manifest: Manifest, archive: Archive) -> Description:
    """Return the description of a package for its author.

    If no function for the format is installed, the manifest must list the classes, as on a server.

    :raises InvalidPackage: as in ``describe``; also if no function for the format is installed and
        the manifest lists no class.
    """
    if package_types.has_function(manifest.format):
        return describe(manifest, archive)
    return package_types.from_complete_manifest(manifest)


def describe_in_child(file: IO[bytes], limits: dict[str, int]) -> dict[str, Any]:
    """Return the description of a package, or the problems of the package, as JSON.

    The child process calls this function.

    :param file: the archive of the package.
    :param limits: the fields of ``Limits``, by name.
    :returns: the result of ``archive_process.answered``.
    """

    def describe_file() -> dict[str, Any]:
        with Archive.open(file, Limits(**limits)) as archive:
            found = package_types.call_safely(_manifest(archive), archive)
        return {
            "classes": {name: list(bases) for name, bases in found.classes.items()},
            "requirements": dict(found.requirements),
            "ui": found.ui,
            "manifest": dict(found.manifest),
            "logo": None if found.logo is None else base64.b64encode(found.logo).decode(),
        }

    return archive_process.answered(describe_file)


def _manifest(archive: Archive) -> Manifest:
    return Manifest.parse(archive.read(MANIFEST_FILE, MAX_SIZE))


def _description(result: Any) -> Description:
    """Read a description that a child process has sent.

    The names in the description are checked later, in ``read_contents``.

    :raises TypeError: if a value has the wrong type.
    :raises ValueError: if the result is not a description.
    """
    match result:
        case {
            "classes": classes,
            "requirements": requirements,
            "ui": ui,
            "manifest": manifest,
            "logo": str() | None as logo,
        }:
            image = None if logo is None else base64.b64decode(logo, validate=True)
            description = Description(classes, requirements, ui, manifest, image)
            package_types.check_types(description)
            return description
    raise ValueError("the result is not a description")
