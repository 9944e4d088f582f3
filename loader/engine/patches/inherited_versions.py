# SPDX-License-Identifier: Apache-2.0

"""Let a class inherit one version of another class where one version satisfies all ranges."""

import collections
import math
from collections.abc import Collection, Mapping
from typing import Any

import semantic_version
from murano.dsl import murano_type

from glare_murano.budget import Budget
from glare_murano.hitting_set import fewest_newest
from glare_murano.package.versions import SortedVersions, VersionSpec


def merge_inherited_versions() -> None:
    """Let a class inherit only one version of a package, if one satisfies all ancestors' ranges.

    The specification "Murano versioning", section "Side by side", requires this. If there is no
    such version, the versions count as unrelated classes. Murano 16 compares classes with names
    when it replaces a version, and fails with a ``TypeError``. It also fails if all ancestors use
    one version, but with different ranges. Here, the fewest versions that satisfy all ranges are
    inherited.
    """

    def build_parent_remappings(murano_class: Any) -> dict[Any, Any]:
        replacements = _replacements(_inherited_ranges(murano_class))
        return {
            ancestor: replacement.find_class(ancestor.name, search_requirements=False)
            for ancestor in murano_class.ancestors()
            if (replacement := replacements.get(ancestor.package)) is not None
            and ancestor.name in replacement.classes
        }

    murano_type.MuranoClass._build_parent_remappings = build_parent_remappings


def _inherited_ranges(murano_class: Any) -> dict[Any, VersionSpec]:
    """Return the packages from which a class inherits, each with the range that subclasses require.

    :returns: package -> the intersection of the ranges that the class and its ancestors require.
        Two versions of a package are two keys. The package of the class itself is a key, too: its
        range contains only its own version.
    """
    own = murano_class.package
    ranges: dict[Any, set[str]] = collections.defaultdict(set, {own: {f"=={own.version}"}})
    for child in (murano_class, *murano_class.ancestors()):
        for parent in child.parents:
            if parent.package is not child.package:
                ranges[parent.package].add(str(child.package.requirements[parent.package.name]))
    return {package: VersionSpec.of(",".join(specs)) for package, specs in ranges.items()}


def _replacements(ranges: Mapping[Any, VersionSpec]) -> dict[Any, Any]:
    """Return the packages to replace, each with the other version that replaces it.

    After the replacement, the fewest versions of each package remain.

    :param ranges: the packages and ranges that ``_inherited_ranges`` returns.
    """
    versions: dict[str, dict[semantic_version.Version, Any]] = collections.defaultdict(dict)
    for package in ranges:
        versions[package.name][package.version] = package
    kept = {
        name: _fewest(name, found, [ranges[package] for package in found.values()])
        for name, found in versions.items()
    }
    chosen = ((package, spec.select(kept[package.name])) for package, spec in ranges.items())
    return {p: versions[p.name][version] for p, version in chosen if version != p.version}


def _fewest(
    name: str, versions: Collection[semantic_version.Version], specs: Collection[VersionSpec]
) -> Collection[semantic_version.Version]:
    ordered = SortedVersions(versions)
    satisfied = ordered.memberships(map(ordered.within, specs))
    newest_first = zip(ordered.newest_first(ordered.every), reversed(satisfied), strict=True)
    # This search has no limit, since the task that runs it has a time limit.
    return fewest_newest(newest_first, Budget(math.inf, ""), name)
