# SPDX-License-Identifier: Apache-2.0

"""Describe what a package type generates, such as classes, requirements and a form.

A package type other than MuranoPL has a function, which takes a manifest and an archive, and
returns a description. A distribution registers the function in the entry-point group
``glare_murano.package_types``, under the name of the format, such as ``Cloudify.TOSCA/1.0``. A
server calls the function in the child process that reads the archive, and stores the description.
The loader calls the function through ``type_process``. Engines get the code of the classes from
another plug-in; see ``loader/formats``.
"""

import dataclasses
import itertools
import json
import traceback
from collections.abc import Callable, Collection, Mapping
from typing import Any

from glare_murano.package.archive import Archive
from glare_murano.package.errors import InvalidPackage, Problem
from glare_murano.package.manifest import FUNCTION_NAMESPACE, Format, Manifest, registered_formats
from glare_murano.package.rules import Rule

_DISTRIBUTION = "glare-murano"


@dataclasses.dataclass(frozen=True)
class Description:
    """What a package type generates from the files of a package.

    :param classes: the generated classes: FQN of the class -> FQNs of its direct base classes.
    :param requirements: the requirements of the package: FQN -> range, as in ``Require``. A range
        for the core library replaces the default ``0`` (specification "Murano versioning", "Package
        requirements": other types may have other defaults).
    :param ui: the generated form definition, as YAML; None if the package type generates no form.
        Without a generated form, the form in the package is used, if there is one.
    :param manifest: the keys of the manifest that the package type computes, such as ``Name`` or
        ``Tags``, with their values. These values replace the values in the manifest file.
    :param logo: the bytes of the generated logo; None if the package type generates no logo.
    """

    classes: Mapping[str, Collection[str]]
    requirements: Mapping[str, str | None]
    ui: str | None = None
    manifest: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    logo: bytes | None = None


Describe = Callable[[Manifest, Archive], Description]


def has_function(package_format: Format) -> bool:
    """Return whether the function that describes packages of a format is installed."""
    return package_format in registered_formats(FUNCTION_NAMESPACE)


def is_built_in(package_format: Format) -> bool:
    """Return whether the function that describes packages of a format is part of this project."""
    entry_point = registered_formats(FUNCTION_NAMESPACE).get(package_format)
    distribution = entry_point and entry_point.dist
    return distribution is not None and distribution.name == _DISTRIBUTION


def call(manifest: Manifest, archive: Archive) -> Description:
    """Call the function for the format of a package, in this process, and return its description.

    :raises InvalidPackage: if the function refuses the package.
    :raises Exception: any other error of the function, or of its import.
    """
    describe: Describe = registered_formats(FUNCTION_NAMESPACE)[manifest.format].load()
    return describe(manifest, archive)


def describe(manifest: Manifest, archive: Archive) -> Description:
    """Return the description of a package for a server: what its package type generates.

    Call this only in a child process with limits. If no function for the format is installed, the
    manifest must list the classes. The output of the function goes to the output of this process,
    and so does the traceback if the function fails.

    :raises InvalidPackage: if the function refuses the package or fails, or if there is no function
        and the manifest lists no class.
    """
    if has_function(manifest.format):
        return call_safely(manifest, archive)
    return from_complete_manifest(manifest)


def from_complete_manifest(manifest: Manifest) -> Description:
    """Make the description of a package from its manifest alone, which must list the classes.

    :raises InvalidPackage: if the manifest lists no class.
    """
    if manifest.classes:
        return from_manifest(manifest)
    message = (
        f"has to list the classes, since no function is installed that finds those that the "
        f"package type {manifest.format} generates"
    )
    raise InvalidPackage([Problem(Rule.CLASS_UNLISTED, "Classes", message)])


def call_safely(manifest: Manifest, archive: Archive) -> Description:
    """Call the function for the format of a package, and convert its errors to ``InvalidPackage``.

    Only ``MemoryError`` is not converted.

    :raises InvalidPackage: if the function refuses the package, or fails in another way.
    """
    try:
        description = call(manifest, archive)
        check_types(description)
    except (InvalidPackage, MemoryError):
        raise
    except BaseException as error:
        traceback.print_exc()
        message = f"the package type {manifest.format} failed; see the log"
        raise InvalidPackage([Problem(Rule.READING_FAILURE, "Format", message)]) from error
    return description


def from_manifest(manifest: Manifest) -> Description:
    """Make the description of a package from its manifest alone.

    If the manifest lists no class, the package has one class, with the name of the package.
    """
    classes = manifest.classes or (manifest.fqn,)
    requirements = {fqn: spec.text for fqn, spec in manifest.requirements.items()}
    return Description(dict.fromkeys(classes, ()), requirements)


def check_types(description: Any) -> None:
    """Check that an object is a ``Description`` whose values have the declared types.

    :raises TypeError: if the object is not a ``Description``, or a value has another type.
    """
    match description:
        case Description(
            classes=Mapping() as classes,
            requirements=Mapping() as requirements,
            manifest=Mapping() as manifest,
            logo=bytes() | None,
        ):
            # This raises TypeError for a value that JSON does not have.
            json.dumps(dict(manifest))
            bases = list(classes.values())
            are_lists = all(isinstance(b, Collection) and not isinstance(b, str) for b in bases)
            names = [*classes, *requirements, *itertools.chain(*bases)] if are_lists else [None]
            texts = [*requirements.values(), description.ui]
            if all(isinstance(name, str) for name in names) and all(
                isinstance(text, str | None) for text in texts
            ):
                return
    raise TypeError(f"expected a description, found {description!r:.400}")
