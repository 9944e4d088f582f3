# SPDX-License-Identifier: Apache-2.0

"""Extension plug-ins: classes written in Python that appear as packages.

A Python distribution registers classes in the entry-point group
``io.murano.extensions``, each under the name of a MuranoPL class. Together
they are one package, with the distribution's name and version (specification
"Murano versioning", section "Murano packages versioning"). What the package
requires is said by the classes' attribute ``murano_requirements``, a mapping
of FQN to range. The module knows no engine.
"""

import collections
import dataclasses
import importlib.metadata
import inspect
import itertools
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
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
    """Import the extension plug-ins that are installed.

    What cannot be used is left out with a warning: a plug-in that cannot be
    imported, a name that no class can have, and a class that two
    distributions define.

    :param enabled: names of the distributions whose plug-ins may be used;
        None means all.
    """
    owners = entry_points.owners(NAMESPACE)
    classes: dict[str, dict[str, type]] = collections.defaultdict(dict)
    distributions = {}
    for found in itertools.chain.from_iterable(map(_imported, sorted(owners))):
        distribution = _owner(found.name, owners.get(found.name, []))
        if distribution is None or (enabled is not None and distribution.name not in enabled):
            continue
        if _initialized(found):
            classes[distribution.name][found.name] = found.plugin
            distributions[distribution.name] = distribution
    packages = (_package(distributions[name], defined) for name, defined in classes.items())
    return [package for package in packages if package is not None]


def semantic(text: str) -> Version:
    """The SemVer version of a Python distribution's version.

    ``1.2`` is 1.2.0; a pre-release or development release such as ``1.2rc1``
    is the pre-release 1.2.0-rc.1; what has no place in SemVer becomes build
    metadata.

    :raises InvalidVersion: if the text is no version of a distribution.
    """
    try:
        found = pep440.Version(text)
    except pep440.InvalidVersion:
        return parse_version(text)
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


def _initialized(found: "extension.Extension[Any]") -> bool:
    """Let a plug-in prepare itself, as Murano does; tell whether it can be used."""
    try:
        check_full_name(found.name)
        prepare = getattr(found.plugin, "init_plugin", None)
        if inspect.ismethod(prepare) and prepare.__self__ is found.plugin:
            prepare()
    except Exception as error:
        LOG.warning("Left out the extension %s: %s", found.name, error)
        return False
    return True


def _imported(name: str) -> "list[extension.Extension[Any]]":
    """The plug-in of a name, imported; stevedore lets it end the process."""
    try:
        return list(named.NamedExtensionManager(NAMESPACE, [name], on_load_failure_callback=_warn))
    except SystemExit as error:
        LOG.warning("Left out the extension %s, which would end the process: %s", name, error)
        return []


def _owner(
    name: str, distributions: Sequence[importlib.metadata.Distribution]
) -> importlib.metadata.Distribution | None:
    if len(distributions) == 1:
        return distributions[0]
    names = " and by ".join(distribution.name for distribution in distributions)
    LOG.warning("Left out the class %s, which is defined by %s", name, names or "nobody")
    return None


def _package(
    distribution: importlib.metadata.Distribution, classes: Mapping[str, type]
) -> ExtensionPackage | None:
    try:
        return ExtensionPackage(
            name=distribution.name,
            version=semantic(distribution.version),
            classes=classes,
            requirements=_requirements(classes.values()),
        )
    except (GlareMuranoError, TypeError, AttributeError) as error:
        LOG.warning("Left out the extensions of %s: %s", distribution.name, error)
        return None


def _requirements(classes: Iterable[type]) -> dict[str, VersionSpec]:
    """What the classes require together: every range that one of them states."""
    ranges: dict[str, dict[str, None]] = collections.defaultdict(dict)
    for found in classes:
        for fqn, text in getattr(found, "murano_requirements", {}).items():
            spec = VersionSpec.of(None if text is None else str(text))
            ranges[fqn][spec.canonical] = None
    return {fqn: VersionSpec.of(",".join(texts)) for fqn, texts in ranges.items()}


def _warn(_: Any, failed: importlib.metadata.EntryPoint, error: BaseException) -> None:
    LOG.warning("Left out the extension %s, which cannot be imported: %s", failed.name, error)
