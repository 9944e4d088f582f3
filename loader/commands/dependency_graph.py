# SPDX-License-Identifier: Apache-2.0

"""Make graphs of the packages that a package requires, and of the packages that require it."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from glare_murano import wire
from glare_murano.package import VersionSpec
from glare_murano.resolver import Demand
from glare_murano.wire import Query
from loader import errors, resolution
from loader.catalogs.base import Catalog
from loader.catalogs.repository import Repository
from loader.catalogs.stored_package import StoredPackage

MISSING = "missing"
EXTERNAL = "in the engine"


@dataclasses.dataclass(frozen=True)
class Requirement:
    """A requirement for a package, and the version that was chosen for it.

    A graph is a list of requirements. Each requirement is an edge from the requiring package to the
    required package, and a row of a table.

    :param fqn: the required package.
    :param version: the chosen version; ``missing`` if no version is in the range. For an extension
        plug-in of the engine, ``in the engine`` follows the version.
    :param range: the range of versions.
    :param required_by: the requiring package, as ``FQN version``; empty if the user has requested
        the required package.
    :param passed_over: the newer versions that were not chosen, with the reasons; for a missing
        package, all its versions.
    :param yanked: why the chosen version was yanked; empty if it was not yanked.
    """

    fqn: str
    version: str
    range: str
    required_by: str
    passed_over: str = ""
    yanked: str = ""

    @property
    def package(self) -> str:
        """The required package, as ``FQN version``."""
        return f"{self.fqn} {self.version}"


def closure(catalog: Catalog, fqn: str, spec: VersionSpec) -> list[Requirement]:
    """Return the dependency graph of the newest version of a package in a range.

    :raises NoSuchPackage: if no version is in the range.
    :raises CatalogError: if the catalogue cannot be read.
    """
    resolved = resolution.resolve([catalog], Query(((fqn, spec),), why=True))
    if resolved.find(fqn, spec) is None:
        missing = resolved.find_missing(fqn, spec)
        if missing is None:
            raise errors.CatalogError(f"{catalog.name} did not say whether {fqn} {spec} exists")
        raise resolved.error(missing, [catalog])
    found = [
        _edge(
            demand,
            str(choice.release.version),
            resolution.explain(choice),
            choice.release.yanked,
        )
        for choice in resolved.chosen
        for demand in choice.demands
    ]
    found += [
        _edge(missing.demand, MISSING, resolution.explain_missing(missing))
        for missing in resolved.unsatisfied
    ]
    found += [_edge(e.demand, f"{e.version} {EXTERNAL}") for e in resolved.external]
    return sorted(found, key=lambda edge: (edge.required_by, edge.fqn, edge.version))


def _edge(demand: Demand, version: str, passed_over: str = "", yanked: str = "") -> Requirement:
    requirer = str(demand.requirer or "")
    return Requirement(demand.fqn, version, demand.spec.text, requirer, passed_over, yanked)


def dependents_of(repository: Repository, package: StoredPackage) -> list[Requirement]:
    """Return the graph of the packages that require a package, directly or through others.

    In this graph, an edge leads from the required to the requiring package: ``fqn`` and ``version``
    name the requiring package, and ``required_by`` names the required package.

    :raises CatalogError: if the service does not answer.
    """
    found = [Requirement(package.fqn, str(package.version), "", "", yanked=package.yanked)]
    level, seen = [package], {package.id}
    while level:
        # One search finds the packages that require any of the packages in ``level``.
        requirers = list(repository.requiring({required.fqn for required in level}))
        requirers.sort(key=lambda requirer: requirer.version.precedence_key, reverse=True)
        requirers.sort(key=lambda requirer: requirer.fqn)
        pairs = [(required, requirer) for required in level for requirer in requirers]
        level = []
        for required, requirer in pairs:
            spec = range_of(requirer, required.fqn)
            if spec is None or not spec.match(required.version):
                continue
            edge = Requirement(
                *(requirer.fqn, str(requirer.version), spec.text, str(required)),
                yanked=requirer.yanked,
            )
            if edge not in found:
                found.append(edge)
            if requirer.id not in seen:
                seen.add(requirer.id)
                level.append(requirer)
    return found


def turned(graph: Sequence[Requirement]) -> list[Requirement]:
    """Turn a graph from ``dependents_of``, so that its edges lead to the required packages.

    Packages that no other package in the graph requires become roots: the field ``required_by`` of
    their edges is empty.
    """
    known = {edge.package: edge for edge in graph}
    required = {edge.required_by for edge in graph}
    roots = [edge for package, edge in known.items() if package not in required]
    return [dataclasses.replace(edge, range="", required_by="") for edge in roots] + [
        dataclasses.replace(
            known[edge.required_by], range=edge.range, required_by=edge.package, passed_over=""
        )
        for edge in graph
        if edge.required_by
    ]


def requirers(repository: Repository, package: StoredPackage) -> Iterator[StoredPackage]:
    """Yield the active packages that require a package, in a range that contains its version.

    :param package: the required package.
    :raises CatalogError: if the service does not answer.
    """
    for requirer in repository.requiring([package.fqn]):
        spec = range_of(requirer, package.fqn)
        if spec is not None and spec.match(package.version):
            yield requirer


def range_of(requirer: StoredPackage, fqn: str) -> VersionSpec | None:
    """Return the range in which a package requires another package; None without a requirement.

    A package's requirement for itself is ignored.

    :param fqn: the name of the required package.
    :raises Malformed: if the service sends no valid range.
    """
    ranges = wire.get(requirer.fields, "requirements", wire.ranges_from_json)
    return None if requirer.fqn == fqn else ranges.get(fqn)


def paths_to(graph: Sequence[Requirement], fqn: str) -> list[Requirement]:
    """Return the requirements on all paths from the root of a graph to a package, in any version.

    :raises NotFound: if the graph does not contain the package.
    """
    wanted = {edge.package for edge in graph if edge.fqn == fqn}
    if not wanted:
        raise errors.NotFound(f"{fqn} is not required; check the name")
    waiting = list(wanted)
    while waiting:
        package = waiting.pop()
        requirers = {edge.required_by for edge in graph if edge.package == package} - wanted
        wanted |= requirers
        waiting += requirers
    return [edge for edge in graph if edge.package in wanted]


def by_requirer(graph: Iterable[Requirement]) -> Mapping[str, Sequence[Requirement]]:
    """Group the requirements in a graph by the package that has them, as ``FQN version``.

    The packages that the user has requested are in the group of the empty string.
    """
    found: dict[str, list[Requirement]] = {}
    for edge in graph:
        found.setdefault(edge.required_by, []).append(edge)
    return found
