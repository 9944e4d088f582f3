# SPDX-License-Identifier: Apache-2.0

"""Describe what a package type generates: classes, requirements and the form.

A package type other than MuranoPL has a function, which takes a manifest and an archive and
returns a description. A distribution registers the function in the entry-point group
``glare_murano.package_types``, under the name of the format, such as ``Cloudify.TOSCA/1.0``.
``sandbox`` runs the functions, and servers store the descriptions. Engines get the code of the
classes from another plug-in, see ``loader/formats``.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping

from glare_murano.package.archive import Archive
from glare_murano.package.manifest import FUNCTION_NAMESPACE, Format, Manifest, registered_formats

_DISTRIBUTION = "glare-murano"


@dataclasses.dataclass(frozen=True)
class Description:
    """What a package type generates from the files of a package.

    :param classes: FQN of each class -> FQNs of its direct base classes.
    :param requirements: FQN of a required package -> range, as in ``Require``. A range for
        the core library replaces the default ``0`` (specification "Murano versioning",
        "Package requirements": other types may have other defaults).
    :param ui: the form definition, as YAML; if None, the package has the form that the manifest
        names, if any.
    """

    classes: Mapping[str, Collection[str]]
    requirements: Mapping[str, str | None]
    ui: str | None = None


Describe = Callable[[Manifest, Archive], Description]


def has_function(package_format: Format) -> bool:
    """Return whether a function for a format is installed."""
    return package_format in registered_formats(FUNCTION_NAMESPACE)


def is_built_in(package_format: Format) -> bool:
    """Return whether the function for a format is part of this project."""
    entry_point = registered_formats(FUNCTION_NAMESPACE).get(package_format)
    distribution = entry_point and entry_point.dist
    return distribution is not None and distribution.name == _DISTRIBUTION


def call(manifest: Manifest, archive: Archive) -> Description:
    """Describe a package by the function for its format, in this process.

    :raises InvalidPackage: if the function refuses the package.
    :raises Exception: if the function cannot be imported, or fails in any other way.
    """
    describe: Describe = registered_formats(FUNCTION_NAMESPACE)[manifest.format].load()
    return describe(manifest, archive)


def from_manifest(manifest: Manifest) -> Description:
    """Describe a package by its manifest alone.

    If the manifest lists no class, the package has one class, with the name of the package.
    """
    classes = manifest.classes or (manifest.full_name,)
    requirements = {fqn: spec.text for fqn, spec in manifest.requirements.items()}
    return Description(dict.fromkeys(classes, ()), requirements)
