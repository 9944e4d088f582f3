# SPDX-License-Identifier: Apache-2.0

"""The fixation table: its form, its changes, and the errors of invalid tables."""

import pytest

import loader
from glare_murano.package import Version, VersionSpec

_TABLE = {"org.db": ["1.0.0", "1.10.0"], "org.wiki": ["2.0.0"]}


@pytest.fixture
def pins() -> loader.Pins:
    pins = loader.Pins()
    pins.load(_TABLE)
    return pins


def test_a_table_is_dumped_as_loaded(pins: loader.Pins) -> None:
    other = loader.Pins()
    other.load({fqn: iter(versions) for fqn, versions in reversed(pins.dump().items())})

    assert other.dump() == _TABLE
    assert pins.select("org.db", VersionSpec.of("1")) == Version("1.10.0")


def test_a_table_replaces_the_earlier_table(pins: loader.Pins) -> None:
    pins.load({"org.db": ["2.0.0"], "org.log": []})

    assert pins.dump() == {"org.db": ["2.0.0"]}
    assert pins.select("org.db", VersionSpec.of("1")) is None
    assert pins.select("org.wiki", VersionSpec.of("*")) is None


def test_a_table_is_sorted_by_name_and_version(pins: loader.Pins) -> None:
    pins.use("org.db", Version("1.9.0"))
    pins.use("org.db", Version("1.10.0-rc.1"))
    pins.use("org.app", Version("1.0.0"))

    assert list(pins.dump().items()) == [
        ("org.app", ["1.0.0"]),
        ("org.db", ["1.0.0", "1.9.0", "1.10.0-rc.1", "1.10.0"]),
        ("org.wiki", ["2.0.0"]),
    ]


@pytest.mark.parametrize(
    ("table", "reported"),
    [
        ({"org.db": None}, r"'org\.db': expected a list of versions, not None"),
        ({"org.db": "1.0.0"}, r"'org\.db': expected a list of versions, not '1\.0\.0'"),
        ({"org.db": 1}, r"'org\.db': expected a list of versions, not '1'"),
        ({"org.db": {"1.0.0": None}}, r"'org\.db': expected a list of versions, not "),
        ({"org.db": [None]}, r"'org\.db': expected a version, not None"),
        ({"org.db": [1.1]}, r"'org\.db': expected a version, not '1\.1'"),
        ({"org.db": ["1.0.0", "x"]}, r"'org\.db': 'x' is not a valid version"),
        ({None: ["1.0.0"]}, "the name of a package, not None"),
        (None, "packages with their versions, not None"),
        (["org.db"], r"packages with their versions, not .*org\.db"),
        ({"org.db": ["1" * 9999]}, r"'1{80}\.\.\.' is not a valid version"),
        ({"o" * 9999: None}, r"'o{80}\.\.\.': expected"),
    ],
)
def test_an_invalid_table_is_refused_and_changes_nothing(
    pins: loader.Pins, table: object, reported: str
) -> None:
    with pytest.raises(loader.InvalidPins, match=reported):
        pins.load(table)  # type: ignore[arg-type]

    assert pins.dump() == _TABLE


def test_compaction_removes_unused_pins(pins: loader.Pins) -> None:
    pins.use("org.db", Version("1.10.0"))
    pins.use("org.log", Version("3.0.0"))

    pins.compact()

    assert pins.dump() == {"org.db": ["1.10.0"], "org.log": ["3.0.0"]}
    assert pins.select("org.db", VersionSpec.of("1.0")) is None
    assert pins.select("org.wiki", VersionSpec.of("*")) is None


def test_versions_used_after_compaction_are_pinned(pins: loader.Pins) -> None:
    pins.use("org.db", Version("1.0.0"))
    pins.compact()
    pins.use("org.db", Version("1.1.0"))
    pins.use("org.new", Version("1.0.0"))
    expected = {"org.db": ["1.0.0", "1.1.0"], "org.new": ["1.0.0"]}

    assert pins.dump() == expected
    pins.compact()
    assert pins.dump() == expected


def test_a_yanked_version_is_pinned_for_later_deployments_alone(pins: loader.Pins) -> None:
    pins.load({})
    pins.use("org.db", Version("1.1.0"))
    pins.use("org.db", Version("1.2.0"), is_yanked=True)

    assert pins.select("org.db", VersionSpec.of("1")) == Version("1.1.0")
    for _ in range(2):
        assert pins.dump() == {"org.db": ["1.1.0", "1.2.0"]}
        pins.compact()


def test_without_use_compaction_removes_every_pin(pins: loader.Pins) -> None:
    pins.compact()

    assert pins.dump() == {}


def test_nothing_changes_frozen_pins(pins: loader.Pins) -> None:
    pins.use("org.db", Version("1.10.0"))
    pins.freeze()

    pins.compact()
    pins.use("org.db", Version("2.0.0"))

    assert pins.dump() == _TABLE


def test_of_pins_that_differ_in_build_metadata_the_same_is_always_selected() -> None:
    """A set has another order in each process."""
    pins = loader.Pins()
    pins.load({f"a{most}": [f"1.0.0+b{n}" for n in range(most + 1)] for most in range(9)})

    found = [str(pins.select(f"a{most}", VersionSpec.of("1"))) for most in range(9)]

    assert found == [f"1.0.0+b{most}" for most in range(9)]
