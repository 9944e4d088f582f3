# SPDX-License-Identifier: Apache-2.0

"""Moves of pins: what a table changes, what objects follow, and what an environment refuses."""

import copy
import pathlib
from collections.abc import Mapping
from typing import Any

import pytest

import loader
from glare_murano import resolver
from glare_murano.package import Version
from glare_murano.wire import Query
from loader import resolution
from loader.environments import object_model, pin_moves
from loader.resolution import Resolution
from tests.unit import published

_FOUND: published.Packages = {
    "org.db": {version: {} for version in ("1.0.0", "1.2.0", "1.2.1", "2.0.0", "2.1.0")},
    "org.shop": {"1.0.0": {"org.db": "2"}},
    "org.wiki": {version: {"org.db": ">=1,<2"} for version in ("1.0.0", "1.1.0")},
    "org.unused": {"1.0.0": {}},
}
_CATALOG = published.catalog(_FOUND)
_PINS = {"org.db": ["1.2.0", "2.0.0"], "org.shop": ["1.0.0"], "org.wiki": ["1.0.0"]}


def deployed(text: str) -> dict[str, Any]:
    """Return an object, as the engine writes it, of ``FQN VERSION``."""
    fqn, version = text.split()
    return {"?": {"type": f"{fqn}.Thing/{version}@{fqn}", "id": text}}


@pytest.fixture
def model() -> dict[str, Any]:
    applications = [
        {**deployed("org.wiki 1.0.0"), "database": deployed("org.db 1.2.0")},
        {**deployed("org.shop 1.0.0"), "database": deployed("org.db 2.0.0")},
    ]
    return {"Objects": applications, "ObjectsCopy": [deployed("org.db 1.2.0")], "Attributes": []}


@pytest.fixture
def pins() -> loader.Pins:
    return loader.Pins(_PINS)


def read(table: object) -> Mapping[str, set[str]]:
    moves = pin_moves.read_moves(table, loader.Pins(_PINS))
    return {fqn: set(map(str, versions)) for fqn, versions in moves.items()}


def plan(model: Mapping[str, Any], pins: loader.Pins) -> Resolution:
    headers = tuple(object_model.object_headers(model))
    return resolution.resolve([_CATALOG], Query(classes=headers, pins=pins.table))


@pytest.mark.parametrize(
    ("table", "moves"),
    [
        ({}, {}),
        (_PINS, {}),
        ({**_PINS, "org.db": ["2.0.0", "1.2"]}, {}),
        ({"org.db": ["1.0.0", "2.0.0"]}, {"org.db": {"1.0.0", "2.0.0"}}),
        ({"org.wiki": "1.1.0"}, {"org.wiki": {"1.1.0"}}),
        ({"org.wiki": None, "org.db": []}, {"org.wiki": set(), "org.db": set()}),
        # What is not pinned takes the newest anyway.
        ({"org.new": None}, {}),
    ],
)
def test_a_table_moves_the_pins_that_it_changes(table: object, moves: object) -> None:
    assert read(table) == moves


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (None, "_pins: expected packages with their versions, not None"),
        (["org.db"], r"_pins: expected packages with their versions, not \['org\.db'\]"),
        ({"org.db": 1.2}, r"'org\.db': expected a list of versions, not '1\.2'"),
        ({"org.db": [1.2]}, r"'org\.db': expected a version, not '1\.2'"),
        ({"org.db": "newest"}, "'newest' is not a valid version"),
        ({"org.db": ">=1"}, "'>=1' is not a valid version"),
        ({"org db": "1.0.0"}, "'org db' is not a valid name"),
    ],
)
def test_an_invalid_table_is_refused(table: object, reason: str) -> None:
    with pytest.raises(loader.GlareMuranoError, match=reason):
        read(table)


@pytest.mark.parametrize(
    ("requested", "versions"),
    [
        (["1.0.0", "2.0.0"], ["2.0.0", "1.0.0"]),
        (["1.2.1", "2.1.0"], ["2.1.0", "1.2.1"]),
        (None, ["2.1.0", "1.2.1"]),
    ],
)
def test_a_moved_environment_uses_the_requested_versions_and_no_others(
    model: dict[str, Any], pins: loader.Pins, requested: Any, versions: list[str]
) -> None:
    before = copy.deepcopy(model)
    moves = pin_moves.read_moves({"org.db": requested}, pins)

    moved = pin_moves.apply(moves, pins, model)

    planned = plan(moved, pins)
    assert [*map(str, resolver.newest_first(planned.choices["org.db"]))] == versions
    pin_moves.check(moves, planned, [_CATALOG])
    # For a deployment that fails.
    assert model == before


@pytest.mark.parametrize(
    ("header", "requested", "expected"),
    [
        ("1.2.0", None, "1"),
        ("1.2.0", "1.0.0", "1.0.0"),
        ("1.2.0", ["1.0.0", "1.2.9", "1.3.0"], "1.2.9"),
        ("1.2.0", ["1.0.0", "1.1.0", "3.0.0"], "1.1.0"),
        ("1.2.0", ["3.0.0", "4.0.0"], "4.0.0"),
        ("1.2.0", ["1.2.0", "4.0.0"], "1.2.0"),
        # Those of a client, and of a package that is not moved.
        ("<2", "1.0.0", "<2"),
        ("1.1.0", None, "1.1.0"),
        ("2.0.0-rc.1", None, ">=2.0.0-rc.1,<3"),
    ],
)
def test_an_object_of_a_dropped_pin_gets_the_version_near_it(
    header: str, requested: Any, expected: str
) -> None:
    pins = loader.Pins({"org.db": ["1.2.0", "2.0.0-rc.1"]})
    moves = pin_moves.read_moves({"org.db": requested}, pins)

    moved = pin_moves.apply(moves, pins, {"Objects": deployed(f"org.db {header}")})

    assert moved["Objects"] == {
        "?": {"type": f"org.db.Thing/{expected}@org.db", "id": f"org.db {header}"}
    }


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (
            {"org.db": ["1.0.0"]},
            r"org\.db cannot be pinned to 1\.0\.0: the environment would use 2\.1\.0, 1\.0\.0, by "
            r"these requirements: .*org\.shop .*1\.0\.0.* -> org\.db 2.*; request exactly these",
        ),
        (
            {"org.db": ["1.0.0", "1.2.0", "2.0.0"]},
            r"cannot be pinned to 2\.0\.0, 1\.2\.0, 1\.0\.0: the environment would use 2\.0\.0, 1",
        ),
        (
            {"org.db": ["1.9.0", "2.0.0"]},
            r"org\.db .*==1\.9\.0, pinned to 1\.9\.0, was not found in the shelf \(available: 2",
        ),
        ({"org.unused": "1.0.0"}, r"org\.unused cannot be pinned to 1\.0\.0: no object of the"),
        ({"org.missing": "1.0.0"}, r"package org\.missing .*was not found in the shelf"),
    ],
)
def test_what_the_environment_cannot_use_is_refused(
    model: dict[str, Any], pins: loader.Pins, table: Any, reason: str
) -> None:
    moves = pin_moves.read_moves(table, pins)
    planned = plan(pin_moves.apply(moves, pins, model), pins)

    with pytest.raises(loader.LoaderError, match=reason):
        pin_moves.check(moves, planned, [_CATALOG])


def test_missing_pins_are_found_with_the_available_versions(tmp_path: pathlib.Path) -> None:
    pins = {"org.db": ["1.1.0", "2.0.0"], "org.gone": ["1.0.0"], "org.plugin": ["3.0.0"]}
    with loader.PackageLoader(_CATALOG, tmp_path, pins) as packages:
        packages.provide("org.plugin", Version("3.0.0"))
        found = packages.find_missing_pins()

    assert {str(release): [*map(str, versions)] for release, versions in found.items()} == {
        "org.db 1.1.0": ["2.1.0", "2.0.0", "1.2.1", "1.2.0", "1.0.0"],
        "org.gone 1.0.0": [],
    }
