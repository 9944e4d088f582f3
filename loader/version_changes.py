# SPDX-License-Identifier: Apache-2.0

"""The differences between two choices of versions: of pins, or of lock files."""

import dataclasses
from collections.abc import Collection, Mapping

from glare_murano import resolver
from glare_murano.package import Version

Choices = Mapping[str, Collection[Version]]


@dataclasses.dataclass(frozen=True)
class VersionChange:
    """The change of the versions of one package.

    :param before: its versions, the newest first; none for a new package.
    :param after: its versions then; none for a package that nothing requires any more.
    """

    fqn: str
    before: tuple[Version, ...]
    after: tuple[Version, ...]


def between(before: Choices, after: Choices, replaced: Collection[str] = ()) -> list[VersionChange]:
    """Return the changes between two choices, sorted by FQN.

    >>> between({"org.db": [Version("1.0.0")]}, {"org.db": [Version("1.2.0")]})
    [VersionChange(fqn='org.db', before=(Version('1.0.0'),), after=(Version('1.2.0'),))]

    :param before: FQN -> versions.
    :param replaced: packages that have changed, even if their versions have not.
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
