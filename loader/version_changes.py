# SPDX-License-Identifier: Apache-2.0

"""Find which versions differ between two sets of pins, or between two lock files."""

import dataclasses
from collections.abc import Collection, Mapping

from glare_murano import resolver
from glare_murano.package import Version

Choices = Mapping[str, Collection[Version]]


@dataclasses.dataclass(frozen=True)
class VersionChange:
    """A package whose versions have changed.

    :param fqn: the name of the package.
    :param before: the old versions, the newest first; empty for a new package.
    :param after: the new versions, the newest first; empty if nothing requires the package any
        more.
    """

    fqn: str
    before: tuple[Version, ...]
    after: tuple[Version, ...]


def between(before: Choices, after: Choices, replaced: Collection[str] = ()) -> list[VersionChange]:
    """Return the packages whose versions have changed, sorted by FQN.

    >>> between({"org.db": [Version("1.0.0")]}, {"org.db": [Version("1.2.0")]})
    [VersionChange(fqn='org.db', before=(Version('1.0.0'),), after=(Version('1.2.0'),))]

    :param before: a mapping of FQNs to the old versions.
    :param after: a mapping of FQNs to the new versions.
    :param replaced: names of packages that count as changed even if their versions are the same.
    """
    changes = (
        VersionChange(
            fqn,
            resolver.newest_first(before.get(fqn, ())),
            resolver.newest_first(after.get(fqn, ())),
        )
        for fqn in sorted({*before, *after})
    )
    return [c for c in changes if c.before != c.after or c.fqn in replaced]
