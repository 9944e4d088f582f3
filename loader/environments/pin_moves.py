# SPDX-License-Identifier: Apache-2.0

"""Move pins: give a deployed environment other versions of packages.

After each task, the engine writes a table of the environment's pins into the header of the root
object, under the key ``KEY``. Clients read and change this table through Murano's API. If a client
has changed it, the next deployment changes the pins. This is called a move. The engine and the
preview for clients both use this module, so that they agree.

The table is in the header because Murano's API reads and saves only the ``Objects`` of a model.
Murano 16 drops unknown keys of a header, so the engine writes the key again after each task. Murano
keeps the key ``metadata``, but the table cannot be there: an engine with another package loader
would change the pins, and keep the old table. The next deployment would then take the old table for
a move.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from glare_murano import resolver
from glare_murano.package import Version, VersionSpec, parse_version
from glare_murano.package.errors import InvalidVersion, shown
from glare_murano.package.manifest import check_required_name
from glare_murano.wire import Query
from loader import errors, resolution
from loader.catalogs.base import Catalog
from loader.environments import object_model
from loader.environments.pins import Pins, read_versions
from loader.resolution import Resolution

KEY = "_pins"

# An FQN -> the versions to pin; an empty set means the newest version in range.
Moves = Mapping[str, frozenset[Version]]


def read_moves(table: object, pins: Pins) -> Moves:
    """Return the moves that a table requests: its entries that differ from the pins.

    >>> read_moves({"org.db": None, "org.wiki": "1.1.0"}, Pins({"org.db": ["1.0.0"]}))
    {'org.db': frozenset(), 'org.wiki': frozenset({Version('1.1.0')})}

    :param table: a mapping of an FQN to a version, a list of versions, or None for the newest in
        range. A package that is left out keeps its pins.
    :param pins: the pins before the moves.
    :raises InvalidPins: if the table is not valid.
    :raises InvalidName: if the name of a package is not valid.
    """
    if not isinstance(table, Mapping):
        raise errors.InvalidPins(
            f"{KEY}: expected packages with their versions, not {shown(repr(table))}"
        )
    moves = {}
    for fqn, value in table.items():
        listed = [value] if isinstance(value, str) else [] if value is None else value
        versions = frozenset(read_versions(fqn, listed))
        if versions != pins.table.get(fqn, frozenset()):
            moves[check_required_name(fqn)] = versions
    return moves


def apply(moves: Moves, pins: Pins, model: Mapping[str, Any]) -> dict[str, Any]:
    """Move pins, and return a copy of the model whose objects use the new pins.

    The header of an object has the version of its package. If this version is not pinned any more,
    the header gets one of the requested versions: the newest with the same major and minor number,
    else the newest with the same major number, else the newest. If no version is requested, the
    header gets a range of versions with the same major number.

    :param moves: the requested versions of each package.
    :param pins: the pins, which are changed.
    :param model: the model, which is not changed.
    """
    dropped = {fqn: set(pins.table.get(fqn, ())) - versions for fqn, versions in moves.items()}

    def follow(fqn: str, text: str) -> str:
        try:
            version = parse_version(text)
        except InvalidVersion:
            return text
        return _replacement(version, moves[fqn]) if version in dropped.get(fqn, ()) else text

    moved = copy.deepcopy(dict(model))
    object_model.change_versions(moved, follow)
    pins.load({**pins.dump(), **{fqn: map(str, versions) for fqn, versions in moves.items()}})
    return moved


def check(moves: Moves, planned: Resolution, catalogs: Sequence[Catalog]) -> None:
    """Check that the chosen versions are exactly the requested ones.

    A move to the newest version in range needs no check.

    :param moves: the requested versions of each package.
    :param planned: the packages that were chosen for all objects after the moves.
    :raises NoSuchPackage: if a requested version is missing.
    :raises InvalidPins: if the environment cannot use the requested versions.
    :raises CatalogError: if a catalogue cannot be read.
    """
    for fqn, versions in moves.items():
        choices = planned.choices.get(fqn, {})
        if not versions or versions == choices.keys():
            continue
        for version in resolver.newest_first(versions - choices.keys()):
            _check_available(fqn, version, catalogs)
        wanted = f"{fqn} cannot be pinned to {_listed(versions)}"
        if not choices:
            raise errors.InvalidPins(f"{wanted}: no object of the environment requires it")
        demands = [demand for choice in choices.values() for demand in choice.demands]
        raise errors.InvalidPins(
            f"{wanted}: the environment would use {_listed(choices)}, by these requirements: "
            f"{planned.chains(demands)}; request exactly these versions, or null for the newest "
            f"in range, or move the packages with these requirements"
        )


def near(version: Version, versions: Sequence[Version]) -> Version | None:
    """Return the newest available version that can replace a missing version.

    This is the newest version with the same major and minor number. If there is none, it is the
    newest version with the same major number.

    :param version: the missing version.
    :param versions: the available versions.
    :returns: None if no available version has the same major number.
    """
    specs = VersionSpec.exactly(version).with_fallbacks()[1:]
    return next((found for spec in specs if (found := spec.select(versions))), None)


def _replacement(version: Version, requested: frozenset[Version]) -> str:
    """Return the range for the header of an object whose version is not pinned any more.

    :param version: the version in the header.
    :param requested: the versions to which the pin was moved.
    """
    if requested:
        ordered = resolver.newest_first(requested)
        return str(near(version, ordered) or ordered[0])
    same_major = str(version.major)
    # A pre-release such as 2.0.0-rc.1 is not in the range 2.
    is_in_range = VersionSpec.of(same_major).match(version)
    return same_major if is_in_range else f">={version},<{version.major + 1}"


def _check_available(fqn: str, version: Version, catalogs: Sequence[Catalog]) -> None:
    exactly = VersionSpec.exactly(version)
    found = resolution.resolve(catalogs, Query(((fqn, exactly),)))
    if missing := found.find_missing(fqn, exactly):
        raise found.error(missing, catalogs, pinned=version)


def _listed(versions: Mapping[Version, object] | frozenset[Version]) -> str:
    return errors.listed(map(str, resolver.newest_first(versions)))
