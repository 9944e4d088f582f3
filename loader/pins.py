# SPDX-License-Identifier: Apache-2.0

"""The fixation table: which versions an environment was deployed with.

A pinned version is used wherever it is in the range asked for, although a
newer one may exist; so what is deployed stays as it is until it is asked to
change. The table's form is that of Murano's object model
(``SystemData.Packages``).
"""

import collections
from collections.abc import Collection, Iterable, Mapping

from glare_murano import resolver
from glare_murano.package import InvalidVersion, Version, VersionSpec, parse_version
from glare_murano.package.errors import quoted
from loader import errors


class Pins:
    """Versions that are pinned, and those of them that were used."""

    def __init__(self) -> None:
        self._pinned: dict[str, set[Version]] = collections.defaultdict(set)
        self._used: dict[str, set[Version]] = collections.defaultdict(set)
        self._frozen = False

    def load(self, table: Mapping[str, Iterable[str]]) -> None:
        """Replace the pins by those of a table.

        :param table: FQN -> versions.
        :raises InvalidPins: if it is no such table; the pins stay as they were.
        """
        if not isinstance(table, Mapping):
            raise errors.InvalidPins(f"expected packages with their versions, not {_shown(table)}")
        read = {fqn: _read(fqn, texts) for fqn, texts in table.items()}
        self._pinned = collections.defaultdict(set, read)

    def dump(self) -> dict[str, list[str]]:
        """The pins as a table: FQN -> versions, both sorted."""
        return {
            fqn: [str(version) for version in sorted(versions, key=lambda v: v.precedence_key)]
            for fqn, versions in sorted(self._pinned.items())
            if versions
        }

    @property
    def table(self) -> Mapping[str, Collection[Version]]:
        """FQN -> the versions that are pinned."""
        return self._pinned

    def select(self, fqn: str, spec: VersionSpec) -> Version | None:
        """The newest pinned version of a package in a range, or None."""
        return spec.select(resolver.newest_first(self._pinned.get(fqn, ())))

    def freeze(self) -> None:
        """Let nothing change the pins any more, neither use nor compaction."""
        self._frozen = True

    def use(self, fqn: str, version: Version) -> None:
        """Pin a version, since it is used from now on."""
        if self._frozen:
            return
        self._pinned[fqn].add(version)
        self._used[fqn].add(version)

    def compact(self) -> None:
        """Drop the pins that nothing has used."""
        if self._frozen:
            return
        self._pinned = collections.defaultdict(
            set, {fqn: set(versions) for fqn, versions in self._used.items()}
        )


def _read(fqn: object, texts: object) -> set[Version]:
    """The pins of one package, which must be told apart from a mistake.

    A pin that is left out would bring another version into an environment,
    unasked.
    """
    if not isinstance(fqn, str):
        raise errors.InvalidPins(f"expected the name of a package, not {_shown(fqn)}")
    # A text would be read letter by letter.
    if isinstance(texts, str | Mapping) or not isinstance(texts, Iterable):
        raise errors.InvalidPins(f"{quoted(fqn)}: expected a list of versions, not {_shown(texts)}")
    versions = set()
    for text in texts:
        # A number may have lost digits: YAML and JSON read 1.10 as 1.1.
        if not isinstance(text, str):
            raise errors.InvalidPins(f"{quoted(fqn)}: expected a version, not {_shown(text)}")
        try:
            versions.add(parse_version(text))
        except InvalidVersion as error:
            raise errors.InvalidPins(f"{quoted(fqn)}: {error}") from error
    return versions


def _shown(value: object) -> str:
    return quoted(value if value is None or isinstance(value, str) else repr(value))
