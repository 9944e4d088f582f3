# SPDX-License-Identifier: Apache-2.0

"""Extension plug-ins: classes written in Python, which form packages.

A Python distribution registers classes in the entry-point group
``io.murano.extensions``, each under the name of a MuranoPL class. Together they are one
package with the distribution's name and version (specification "Murano versioning",
section "Murano packages versioning"). A class's attribute ``murano_requirements``, a
mapping of FQN to range, adds to the package's requirements. Murano is not imported here.
"""

import collections
import dataclasses
import importlib.metadata
import inspect
import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from packaging import version as pep440
from stevedore import extension, named

from glare_murano.package import GlareMuranoError, Version, VersionSpec, parse_version
from glare_murano.package.manifest import check_full_name
from loader import entry_points

LOG = logging.getLogger(__name__)

NAMESPACE = "io.murano.extensions"


@dataclasses.dataclass(frozen=True)
class ExtensionPackage:
    """The extension classes of one Python distribution.

    :param name: the distribution's name.
    :param version: its version, as SemVer.
    :param classes: name of a MuranoPL class -> the Python class.
    :param requirements: FQN of a required package -> range.
    """

    name: str
    version: Version
    classes: Mapping[str, type]
    requirements: Mapping[str, VersionSpec]


def load_extensions(enabled: Collection[str] | None = None) -> list[ExtensionPackage]:
    """Import the installed extension plug-ins.

    Left out with a warning: plug-ins with errors in their import, invalid class names, and
    classes defined by two distributions.

    :param enabled: names of the distributions whose plug-ins may be used; None means all.
    """
    classes: dict[importlib.metadata.Distribution, dict[str, type]] = {}
    for name, distributions in sorted(entry_points.distributions(NAMESPACE).items()):
        if len(distributions) > 1:
            names = " and by ".join(distribution.name for distribution in distributions)
            LOG.warning("Left out the class %s, which is defined by %s", name, names)
        elif enabled is None or distributions[0].name in enabled:
            for plugin in filter(_initialize, _import(name)):
                classes.setdefault(distributions[0], {})[name] = plugin.plugin
    packages = (_package(*defined) for defined in classes.items())
    return [package for package in packages if package is not None]


def to_semver(python_version: str) -> Version:
    """Return the SemVer version for a Python distribution's version.

    ``1.2`` is 1.2.0; a pre-release or development release such as ``1.2rc1`` is the
    pre-release 1.2.0-rc.1; parts without a place in SemVer become build metadata.

    :raises InvalidVersion: if it is not a valid version of a distribution.
    """
    try:
        found = pep440.Version(python_version)
    except pep440.InvalidVersion:
        return parse_version(python_version)
    numbers = [*found.release, 0, 0][:3]
    before = [str(part) for part in found.pre or ()]
    if found.dev is not None:
        before += ["dev", str(found.dev)]
    after = [str(part) for part in found.release[3:]]
    if found.post is not None:
        after += ["post", str(found.post)]
    if found.local:
        after += found.local.split(".")
    return Version(
        ".".join(map(str, numbers))
        + (f"-{'.'.join(before)}" if before else "")
        + (f"+{'.'.join(after)}" if after else "")
    )


def _import(name: str) -> "list[extension.Extension[Any]]":
    """Import the plug-in of an entry point; an empty list if it fails."""

    def warn(_: object, failed: object, error: BaseException) -> None:
        LOG.warning("Left out the extension %s, which cannot be imported: %s", name, error)

    try:
        return list(named.NamedExtensionManager(NAMESPACE, [name], on_load_failure_callback=warn))
    except SystemExit as error:
        # stevedore catches exceptions only.
        LOG.warning("Left out the extension %s, which would end the process: %s", name, error)
        return []


def _initialize(plugin: "extension.Extension[Any]") -> bool:
    """Call a plug-in's ``init_plugin``, as Murano does; return whether it can be used."""
    try:
        check_full_name(plugin.name)
        initialize = getattr(plugin.plugin, "init_plugin", None)
        if inspect.ismethod(initialize) and initialize.__self__ is plugin.plugin:
            initialize()
    except Exception as error:
        LOG.warning("Left out the extension %s: %s", plugin.name, error)
        return False
    return True


def _package(
    distribution: importlib.metadata.Distribution, classes: Mapping[str, type]
) -> ExtensionPackage | None:
    try:
        return ExtensionPackage(
            name=distribution.name,
            version=to_semver(distribution.version),
            classes=classes,
            requirements=_requirements(classes.values()),
        )
    except (GlareMuranoError, TypeError, AttributeError) as error:
        LOG.warning("Left out the extensions of %s: %s", distribution.name, error)
        return None


def _requirements(classes: Iterable[type]) -> dict[str, VersionSpec]:
    """Return the ranges that satisfy the requirements of all classes."""
    ranges: dict[str, dict[str, None]] = collections.defaultdict(dict)
    for python_class in classes:
        for fqn, written in getattr(python_class, "murano_requirements", {}).items():
            spec = VersionSpec.of(None if written is None else str(written))
            ranges[fqn][spec.canonical] = None
    return {fqn: VersionSpec.of(",".join(specs)) for fqn, specs in ranges.items()}
