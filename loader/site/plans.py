# SPDX-License-Identifier: Apache-2.0

"""The versions that fit together: the plan for each release, by the rule of services and engines.

A plan is made from the releases of the catalogue alone. An engine plans with pins, and with all
objects of an environment, so its answer can differ.
"""

import collections
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from glare_murano.package import Unplannable, VersionSpec, parse_version
from glare_murano.resolver import Demand
from glare_murano.wire import Query, Release
from loader import errors, resolution
from loader.catalogs.base import Catalog, newest_first
from loader.site.relations import Summary

# The longest time for one plan, in seconds.
_SECONDS = 2.0


class Releases(Catalog):
    """The releases of a catalogue of pages, for plans.

    :param packages: FQN -> version -> summary.
    :param yanked: FQN -> version -> why the release was yanked.
    """

    def __init__(
        self,
        packages: Mapping[str, Mapping[str, Summary]],
        yanked: Mapping[str, Mapping[str, str]],
    ) -> None:
        super().__init__("this catalogue")
        self._releases = {
            fqn: newest_first(
                _release(fqn, version, summary, yanked[fqn][version])
                for version, summary in releases.items()
                if "problems" not in summary
            )
            for fqn, releases in packages.items()
        }

    def releases(self, fqn: str) -> Iterable[Release]:
        """Return all releases of a package, the newest first."""
        return self._releases.get(fqn, ())

    def releases_defining(self, class_name: str) -> Iterable[Release]:
        """Return no releases, since a plan for packages looks for no class."""
        return ()

    def fetch(self, release: Release) -> Iterable[bytes]:
        """Refuse: plans need no archives."""
        raise errors.CatalogError(f"{release} is not fetched from pages")


def make(catalog: Releases, fqn: str, version: str) -> dict[str, Any]:
    """Return the plan for a release as JSON: the chosen versions, what is missing, or a problem."""
    query = Query(((fqn, VersionSpec.exactly(parse_version(version))),), why=True)
    try:
        found = resolution.resolve([catalog], query, _SECONDS)
    except Unplannable as error:
        return {"problem": str(error), "chosen": [], "missing": []}
    return {
        "problem": "",
        "chosen": [
            {
                "fqn": choice.release.fqn,
                "version": str(choice.release.version),
                "ranges": [*_ranges(choice.demands)],
                "reason": resolution.explain(choice),
            }
            for choice in found.chosen
            if choice.release.fqn != fqn or str(choice.release.version) != version
        ],
        "missing": [
            {"fqn": missing.demand.fqn, "ranges": [*_ranges([missing.demand])]}
            for missing in found.unsatisfied
        ],
    }


def users(catalog: Releases, newest: Mapping[str, str]) -> dict[tuple[str, str], list[str]]:
    """Return which packages use which releases, by the plans for their newest releases.

    :param newest: FQN -> the newest version of the package.
    :returns: FQN and version of a release -> the sorted FQNs of the packages that use it, directly
        or through others.
    """
    found = collections.defaultdict[tuple[str, str], list[str]](list)
    for fqn in sorted(newest):
        for each in make(catalog, fqn, newest[fqn])["chosen"]:
            found[each["fqn"], each["version"]].append(fqn)
    return dict(found)


def _ranges(demands: Iterable[Demand]) -> Iterator[list[str]]:
    """Yield the FQN and the version of each requiring release, and its range."""
    for each in demands:
        if each.requirer is not None:
            yield [each.requirer.fqn, str(each.requirer.version), each.spec.text]


def _release(fqn: str, version: str, summary: Summary, yanked: str) -> Release:
    requirements = {name: VersionSpec.of(text) for name, text in summary["requirements"].items()}
    classes = frozenset(summary["classes"])
    mapping = types.MappingProxyType(requirements)
    return Release(fqn, parse_version(version), mapping, classes, f"{fqn} {version}", yanked=yanked)
