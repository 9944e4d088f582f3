# SPDX-License-Identifier: Apache-2.0

"""The processor time of plans in one process, without a catalogue's own time."""

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence

from benchmarks.measure import Figure, seconds
from glare_murano import resolver
from glare_murano.package import Version, VersionSpec

_SIZE = resolver.MAX_PACKAGES
_OLDER = VersionSpec.of("<2")
_VERSIONS = (Version("2.0.0"), Version("1.0.0"))


class _Ring:
    """A ring of packages whose newest versions require the next, the older ones below 2."""

    def __init__(self, versions: Sequence[Version]) -> None:
        self._versions = versions

    def versions(self, fqns: Collection[str]) -> Mapping[str, Sequence[Version]]:
        return dict.fromkeys(fqns, self._versions)

    def requirements(
        self, releases: Collection[resolver.PackageVersion]
    ) -> Mapping[resolver.PackageVersion, resolver.Requirements]:
        return {release: self._required_by(release) for release in releases}

    def _required_by(self, release: resolver.PackageVersion) -> resolver.Requirements:
        number = int(release.fqn.removeprefix("p")) + 1
        if release.version == _VERSIONS[0] and number < _SIZE:
            return {f"p{number}": VersionSpec.of("*")}
        return {f"p{number % _SIZE}": _OLDER}


def planning() -> Iterator[Figure]:
    """Plan a ring of packages, and one in which each gives way to its older version."""
    roots = [("p0", VersionSpec.of("*"))]
    for title, versions, goal in (
        ("packages in a ring", _VERSIONS[1:], 0.5),
        ("packages in a ring, all of which change", _VERSIONS, 0.9),
    ):
        source = _Ring(versions)
        value = seconds(functools.partial(resolver.plan, roots, {}, source))
        yield Figure(f"plan of {_SIZE:,} {title}", value, "s", goal)


BENCHMARKS = (planning,)
