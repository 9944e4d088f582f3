# SPDX-License-Identifier: Apache-2.0

"""Plan which versions are loaded together with each release, by the rules of ``resolver``.

A plan contains only releases of the catalogue. An engine may choose other versions, since it also
has pinned versions, and plans for all objects of an environment.
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
# After this number of plans of a package that took too long, no more are made for it.
_MAX_FAILURES = 3


class Releases(Catalog):
    """The releases that the pages show, as a catalogue that the resolver can read.

    Releases that could not be read are left out.

    :param packages: FQN -> version -> summary.
    :param yanked: FQN -> version -> why the release was yanked; empty if it is not yanked.
    """

    def __init__(
        self,
        packages: Mapping[str, Mapping[str, Summary]],
        yanked: Mapping[str, Mapping[str, str]],
    ) -> None:
        super().__init__("this catalogue")
        # FQN -> how many plans for its releases took too long.
        self.failures = collections.Counter[str]()
        self._releases = {
            fqn: newest_first(
                _release(fqn, version, summary, yanked[fqn][version])
                for version, summary in releases.items()
                if "problems" not in summary
            )
            for fqn, releases in packages.items()
        }

    def releases(self, fqn: str) -> Iterable[Release]:
        """Return all readable releases of a package, the newest first."""
        return self._releases.get(fqn, ())

    def releases_defining(self, class_name: str) -> Iterable[Release]:
        """Return nothing, since these plans do not look up classes."""
        return ()

    def fetch(self, release: Release) -> Iterable[bytes]:
        """Raise an error, since plans need no archives.

        :raises CatalogError: always.
        """
        raise errors.CatalogError(f"{release} is not fetched from pages")


def make(catalog: Releases, fqn: str, version: str) -> dict[str, Any]:
    """Plan the requirements of a release, and return the plan as JSON.

    :returns: a mapping with the other releases of the plan as ``chosen``, and the unsatisfied
        requirements as ``missing``. If planning exceeds a limit, these are empty, and ``problem``
        is the message; otherwise ``problem`` is empty.
    """
    query = Query(((fqn, VersionSpec.exactly(parse_version(version))),), why=True)
    if catalog.failures[fqn] >= _MAX_FAILURES:
        return _without_plan(
            "No plan was made, since the plans of several other versions took too long."
        )
    try:
        found = resolution.resolve([catalog], query, _SECONDS)
    except Unplannable as error:
        catalog.failures[fqn] += 1
        return _without_plan(str(error))
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


def _without_plan(problem: str) -> dict[str, Any]:
    return {"problem": problem, "chosen": [], "missing": []}


def users(catalog: Releases, newest: Mapping[str, str]) -> dict[tuple[str, str], list[str]]:
    """Return the users of each release: the packages whose plans contain the release.

    A package can use a release directly, or because a package that it requires needs the release.
    Only the plan for the newest release of each package counts.

    :param newest: FQN -> the newest version of the package.
    :returns: FQN and version of a release -> the sorted FQNs of its users.
    """
    found = collections.defaultdict[tuple[str, str], list[str]](list)
    for fqn in sorted(newest):
        for each in make(catalog, fqn, newest[fqn])["chosen"]:
            found[each["fqn"], each["version"]].append(fqn)
    return dict(found)


def _ranges(demands: Iterable[Demand]) -> Iterator[list[str]]:
    """Yield for each demand the FQN and the version of the requiring release, and the range.

    A demand of the query itself is left out.
    """
    for each in demands:
        if each.requirer is not None:
            yield [each.requirer.fqn, str(each.requirer.version), each.spec.text]


def _release(fqn: str, version: str, summary: Summary, yanked: str) -> Release:
    requirements = {name: VersionSpec.of(text) for name, text in summary["requirements"].items()}
    classes = frozenset(summary["classes"])
    mapping = types.MappingProxyType(requirements)
    return Release(fqn, parse_version(version), mapping, classes, f"{fqn} {version}", yanked=yanked)
