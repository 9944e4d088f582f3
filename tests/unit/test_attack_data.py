# SPDX-License-Identifier: Apache-2.0

"""The corpus of attacks as data: complete, and each with the module that stops it."""

import collections

from tests.integration import attacks
from tests.integration.attacks import Attack
from tests.processes import ROOT

# Without a change of this project.
_MURANO = "murano.dsl.reflection"
ALL = list(attacks.attacks())


def _names(chosen: "filter[Attack]") -> list[str]:
    return [attack.name for attack in chosen]


def test_there_are_enough_attacks_of_each_outcome() -> None:
    outcomes = collections.Counter(attack.stopped for attack in ALL)

    assert len(ALL) >= 120
    assert outcomes.keys() == {"upload", "task", "without effect"}


def test_each_attack_has_a_name_of_its_own() -> None:
    counted = collections.Counter(attack.slug for attack in ALL)

    assert [slug for slug, count in counted.items() if count > 1] == []


def test_each_attack_that_is_stopped_has_a_message() -> None:
    wrong = filter(lambda each: bool(each.message) == (each.stopped == "without effect"), ALL)

    assert _names(wrong) == []


def test_each_attack_names_the_module_that_stops_it() -> None:
    modules = {attack.module for attack in ALL}
    paths = {name: ROOT / name.replace(".", "/") for name in modules - {_MURANO}}

    assert [
        name
        for name, path in paths.items()
        if not (path.is_dir() or path.with_suffix(".py").is_file())
    ] == []


def test_each_place_is_replaced() -> None:
    places = {"victim": "0123456789abcdef", "trap": "1"}
    unknown = filter(lambda each: b"@" in b"".join(each.build(places).values()), ALL)

    assert _names(unknown) == []
