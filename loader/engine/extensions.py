# SPDX-License-Identifier: Apache-2.0

"""Extension plug-ins: classes written in Python, which packages can use like MuranoPL classes.

A Python distribution registers its classes in the entry-point group ``io.murano.extensions``, each
under the name of a MuranoPL class. All classes of a distribution form one package, which has the
distribution's name and version (specification "Murano versioning", section "Murano packages
versioning"). A class can add requirements to this package with its attribute
``murano_requirements``, a mapping of FQN to range. This module does not import Murano.
"""

import collections
import dataclasses
import importlib.metadata
import inspect
import logging
from collections.abc import Collection, Iterable, Mapping

from packaging import version as pep440

from glare_murano.package import GlareMuranoError, Version, VersionSpec, parse_version
from glare_murano.package.manifest import check_fqn
from loader import entry_points

LOG = logging.getLogger(__name__)

NAMESPACE = "io.murano.extensions"


@dataclasses.dataclass(frozen=True)
class ExtensionPackage:
    """The extension classes of one Python distribution, as a package.

    :param name: the distribution's name.
    :param version: the distribution's version, as SemVer.
    :param classes: a mapping of MuranoPL class names to Python classes.
    :param requirements: a mapping of the FQNs of required packages to ranges.
    """

    name: str
    version: Version
    classes: Mapping[str, type]
    requirements: Mapping[str, VersionSpec]


def load_extensions(enabled: Collection[str] | None = None) -> list[ExtensionPackage]:
    """Import the installed extension plug-ins, and return their packages.

    A class is left out if it cannot be imported, if its name is invalid, or if two distributions
    define it. A distribution is left out if its version or its requirements are invalid. A warning
    is logged for each of them.

    :param enabled: the distributions whose plug-ins may be used; None means all.
    """
    classes: dict[str, dict[str, type]] = collections.defaultdict(dict)
    for name, installed in sorted(entry_points.installed(NAMESPACE).items()):
        if len(installed) > 1:
            owners = " and by ".join(installed)
            LOG.warning("Left out the class %s, which is defined by %s", name, owners)
            continue
        ((distribution, entry_point),) = installed.items()
        if enabled is None or distribution in enabled:
            python_class = _load(entry_point)
            if python_class is not None:
                classes[distribution][name] = python_class
    packages = []
    for distribution, defined in classes.items():
        try:
            version = to_semver(importlib.metadata.version(distribution))
            requirements = _requirements(defined.values())
            packages.append(ExtensionPackage(distribution, version, defined, requirements))
        except (GlareMuranoError, TypeError, AttributeError) as error:
            LOG.warning("Left out the extensions of %s: %s", distribution, error)
    return packages


def to_semver(python_version: str) -> Version:
    """Translate the version of a Python distribution to SemVer.

    ``1.2`` becomes 1.2.0. A pre-release or development release such as ``1.2rc1`` becomes the
    pre-release 1.2.0-rc.1. Parts that SemVer does not have become build metadata.

    :raises InvalidVersion: if the version is valid neither in Python nor in SemVer.
    """
    try:
        found = pep440.Version(python_version)
    except pep440.InvalidVersion:
        return parse_version(python_version)
    major, minor, patch = [*found.release, 0, 0][:3]
    before = [str(part) for part in found.pre or ()]
    if found.dev is not None:
        before += ["dev", str(found.dev)]
    after = [str(part) for part in found.release[3:]]
    if found.post is not None:
        after += ["post", str(found.post)]
    if found.local:
        after += found.local.split(".")
    return Version(
        major=major, minor=minor, patch=patch, prerelease=tuple(before), build=tuple(after)
    )


def _load(entry_point: importlib.metadata.EntryPoint) -> type | None:
    """Import a class, and call its ``init_plugin`` as Murano does.

    :returns: None if the name is invalid, or the import or the call fails; then a warning is
        logged.
    """
    try:
        check_fqn(entry_point.name)
        python_class: type = entry_point.load()
        initialize = getattr(python_class, "init_plugin", None)
        if inspect.ismethod(initialize) and initialize.__self__ is python_class:
            initialize()
    # A plug-in may also try to end the process.
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        LOG.warning("Left out the extension %s: %s", entry_point.name, reason)
        return None
    return python_class


def _requirements(classes: Iterable[type]) -> dict[str, VersionSpec]:
    """Return the packages that the classes require, each with one range that fits all classes."""
    ranges: dict[str, dict[str, None]] = collections.defaultdict(dict)
    for python_class in classes:
        for fqn, written in getattr(python_class, "murano_requirements", {}).items():
            spec = VersionSpec.of(None if written is None else str(written))
            ranges[fqn][spec.canonical] = None
    return {fqn: VersionSpec.of(",".join(specs)) for fqn, specs in ranges.items()}
