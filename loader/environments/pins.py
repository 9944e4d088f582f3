# SPDX-License-Identifier: Apache-2.0

"""The pins of an environment (Murano calls them the fixation table).

Pins are the versions of packages that earlier deployments have used. If a range contains a pinned
version, this version is chosen, even if a newer one exists. So an environment changes only on
request. The table of pins has the same form as in Murano's object model (``SystemData.Packages``).
"""

from collections.abc import Collection, Iterable, Mapping

from glare_murano import resolver
from glare_murano.package import InvalidVersion, Version, VersionSpec, parse_version
from glare_murano.package.errors import quoted
from loader import errors


class Pins:
    """The pinned versions of packages.

    >>> pins = Pins({"org.db": ["1.0.0"]})
    >>> with PackageLoader(DirectoryCatalog("packages"), "cache", pins) as packages:
    ...     packages.load("org.db")
    <MuranoPLPackage org.db 1.0.0>
    """

    def __init__(self, table: Mapping[str, Iterable[str]] | None = None) -> None:
        """Make pins from a table.

        :param table: a mapping of FQNs to versions; by default, no version is pinned.
        :raises InvalidPins: if the table is not valid.
        """
        self._pinned: dict[str, set[Version]] = {}
        self._used: dict[str, set[Version]] = {}
        self._frozen = False
        if table is not None:
            self.load(table)

    def __repr__(self) -> str:
        return f"Pins({self.dump()})"

    def load(self, table: Mapping[str, Iterable[str]]) -> None:
        """Replace all pins with the pins in a table.

        >>> pins.load({"org.db": ["2.0.0"]})
        >>> pins
        Pins({'org.db': ['2.0.0']})

        :param table: a mapping of FQNs to versions.
        :raises InvalidPins: if the table is not valid; the pins do not change in this case.
        """
        if not isinstance(table, Mapping):
            raise errors.InvalidPins(f"expected packages with their versions, not {_shown(table)}")
        self._pinned = {fqn: read_versions(fqn, versions) for fqn, versions in table.items()}
        self._used = {}

    def dump(self) -> dict[str, list[str]]:
        """Return the pins as a mapping of FQNs to versions, both sorted.

        >>> pins.dump()
        {'org.db': ['1.2.0']}
        """
        found = {
            fqn: self._pinned.get(fqn, set()) | self._used.get(fqn, set())
            for fqn in sorted({*self._pinned, *self._used})
        }
        return {
            fqn: [str(version) for version in sorted(versions, key=lambda v: v.precedence_key)]
            for fqn, versions in found.items()
            if versions
        }

    @property
    def table(self) -> Mapping[str, Collection[Version]]:
        """The pinned versions, by FQN."""
        return self._pinned

    def select(self, fqn: str, spec: VersionSpec) -> Version | None:
        """Return the newest pinned version of a package in a range; None if none is in the range.

        >>> pins.select("org.db", VersionSpec.of("1"))
        Version('1.2.0')
        """
        return spec.select(resolver.newest_first(self._pinned.get(fqn, ())))

    def use(self, fqn: str, version: Version, is_yanked: bool = False) -> None:
        """Pin a version, and mark the pin as used in this deployment.

        After ``freeze``, this method has no effect.

        >>> pins.use("org.db", Version("1.0.0"))
        >>> pins
        Pins({'org.db': ['1.0.0', '1.2.0']})

        :param is_yanked: whether the version is yanked. If it is, ``select`` and ``table`` do not
            return the pin in this deployment, but ``dump`` keeps it for later deployments.
        """
        if self._frozen:
            return
        # The tables are replaced, not changed, since other threads may read them.
        self._used = _with(self._used, fqn, version)
        if not is_yanked:
            self._pinned = _with(self._pinned, fqn, version)

    def compact(self) -> None:
        """Remove the pins that this deployment has not used.

        >>> pins.use("org.wiki", Version("1.1.0"))
        >>> pins.compact()
        >>> pins
        Pins({'org.wiki': ['1.1.0']})
        """
        if not self._frozen:
            self._pinned = {fqn: set(versions) for fqn, versions in self._used.items()}

    def freeze(self) -> None:
        """Keep the pins as they are: after this call, ``use`` and ``compact`` have no effect.

        >>> pins.freeze()
        >>> pins.compact()
        >>> pins
        Pins({'org.db': ['1.2.0']})
        """
        self._frozen = True


def _with(table: Mapping[str, set[Version]], fqn: str, version: Version) -> dict[str, set[Version]]:
    return {**table, fqn: {*table.get(fqn, ()), version}}


def read_versions(fqn: object, versions: object) -> set[Version]:
    """Parse the pinned versions of a package.

    Invalid pins are refused. If they were ignored, the environment could get other versions.

    :raises InvalidPins: if the pins are not a list of versions.
    """
    if not isinstance(fqn, str):
        raise errors.InvalidPins(f"expected the name of a package, not {_shown(fqn)}")
    # A string is refused, since it would be read letter by letter.
    if isinstance(versions, str | Mapping) or not isinstance(versions, Iterable):
        raise errors.InvalidPins(
            f"{quoted(fqn)}: expected a list of versions, not {_shown(versions)}"
        )
    read = set()
    for version in versions:
        # A number is refused, since it may have lost digits: YAML and JSON read 1.10 as 1.1.
        if not isinstance(version, str):
            raise errors.InvalidPins(f"{quoted(fqn)}: expected a version, not {_shown(version)}")
        try:
            read.add(parse_version(version))
        except InvalidVersion as error:
            raise errors.InvalidPins(f"{quoted(fqn)}: {error}") from error
    return read


def _shown(value: object) -> str:
    return quoted(value if value is None or isinstance(value, str) else repr(value))
