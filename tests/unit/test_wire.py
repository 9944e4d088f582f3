# SPDX-License-Identifier: Apache-2.0

"""The JSON form of releases, queries and answers: each is read back as it was written."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from glare_murano import wire
from glare_murano.budget import Budget
from glare_murano.eligibility import Excluded
from glare_murano.package import Version, VersionSpec
from glare_murano.resolver import (
    Demand,
    External,
    PackageVersion,
    PassedOver,
    Reason,
    Undefined,
    Unsatisfied,
    Why,
)
from glare_murano.wire import Answer, Query, Release

BUDGET = Budget(3600, "")

NAMES = st.lists(st.sampled_from(["org", "Db", "_x", "on", "a1"]), min_size=1, max_size=4).map(
    ".".join
)
NUMBERS = st.integers(0, 10**6)
VERSIONS = st.builds(
    lambda numbers, tail: Version(".".join(map(str, numbers)) + tail),
    st.tuples(NUMBERS, NUMBERS, NUMBERS),
    st.sampled_from(["", "-rc.1", "+build.5", "-0.x+1"]),
)
RANGES = st.one_of(
    st.sampled_from(["*", "0", "1", "1.10", ">=1.2,<2", "==1.0.0-rc.1"]).map(VersionSpec.of),
    VERSIONS.map(VersionSpec.exactly),
)
DIGESTS = st.integers(0, 2**256 - 1).map("{:064x}".format)
PACKAGE_VERSIONS = st.builds(PackageVersion, NAMES, VERSIONS)
DEMANDS = st.builds(Demand, NAMES, RANGES, st.none() | PACKAGE_VERSIONS)


def _releases(**values: Any) -> st.SearchStrategy[Release]:
    return st.builds(
        Release,
        fqn=NAMES,
        version=VERSIONS,
        requirements=st.dictionaries(NAMES, RANGES, max_size=3),
        classes=st.frozensets(NAMES, max_size=3),
        yanked=st.text(),
        **values,
    )


VISIBILITIES = st.sampled_from(["private", "public"])


# As a catalogue answers them, and as files keep them.
SENT = _releases(
    id=st.text(min_size=1),
    digest=DIGESTS,
    size=st.integers(0, 2**63),
    owner=st.text(),
    visibility=VISIBILITIES,
)
ANY = _releases(
    id=st.text(),
    digest=st.just("") | DIGESTS,
    size=st.none() | st.integers(0, 2**63),
    owner=st.none() | st.text(),
    visibility=st.none() | VISIBILITIES,
)
QUERIES = st.builds(
    Query,
    requirements=st.dictionaries(NAMES, RANGES, max_size=3).map(lambda d: tuple(sorted(d.items()))),
    classes=st.lists(st.tuples(NAMES, RANGES), max_size=3).map(tuple),
    pins=st.dictionaries(NAMES, st.lists(VERSIONS, max_size=2), max_size=3),
    provided=st.dictionaries(NAMES, st.lists(VERSIONS, max_size=2), max_size=3),
    package=st.none() | st.uuids().map(str),
    prereleases=st.booleans(),
    why=st.booleans(),
    project_id=st.none() | st.text(),
    private_overrides=st.booleans(),
)
WHYS = st.builds(
    Why,
    kept=st.lists(DEMANDS, max_size=2).map(tuple),
    passed_over=st.lists(
        st.builds(
            PassedOver,
            st.lists(VERSIONS, max_size=2).map(tuple),
            st.sampled_from(Reason),
            st.lists(DEMANDS, max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
)


def _with_reasons(answer: Answer, whys: list[Why]) -> Answer:
    reasons = {release.key: why for (release, _), why in zip(answer.releases, whys, strict=False)}
    return dataclasses.replace(answer, why=reasons)


ANSWERS = st.builds(
    Answer,
    releases=st.lists(st.tuples(SENT, st.lists(DEMANDS, max_size=3).map(tuple)), max_size=3).map(
        tuple
    ),
    unsatisfied=st.lists(
        st.builds(
            lambda demand, *versions: Unsatisfied(demand, *map(tuple, versions)),
            DEMANDS,
            *[st.lists(VERSIONS, max_size=3)] * 3,
        ),
        max_size=2,
    ).map(tuple),
    undefined=st.lists(
        st.builds(
            Undefined, NAMES, RANGES, st.lists(PACKAGE_VERSIONS.map(str), max_size=2).map(tuple)
        ),
        max_size=2,
    ).map(tuple),
    external=st.lists(st.builds(External, DEMANDS, VERSIONS), max_size=2).map(tuple),
    excluded=st.lists(
        st.builds(
            Excluded,
            PACKAGE_VERSIONS,
            st.text(min_size=1),
            st.text(),
            st.sampled_from(["a reason", "another reason"]),
        ),
        max_size=2,
    ).map(tuple),
)


def _sent(content: Any) -> Any:
    return json.loads(json.dumps(content))


@given(ANY)
def test_a_release_is_read_back_as_it_was_written(release: Release) -> None:
    again = wire.release_from_json(_sent(wire.release_to_json(release)))

    assert again == release
    texts = {fqn: spec.text for fqn, spec in release.requirements.items()}
    assert {fqn: spec.text for fqn, spec in again.requirements.items()} == texts


@given(QUERIES)
def test_a_query_is_read_back_as_it_was_written(query: Query) -> None:
    assert wire.query_from_json(_sent(wire.query_to_json(query)), BUDGET) == query


@given(ANSWERS, st.lists(WHYS, max_size=3))
def test_an_answer_is_read_back_as_it_was_written(answer: Answer, whys: list[Why]) -> None:
    keys = [release.key for release, _ in answer.releases]
    assume(len(set(keys)) == len(keys))
    answer = _with_reasons(answer, whys)

    assert wire.answer_from_json(_sent(wire.answer_to_json(answer, BUDGET))) == answer


def test_the_answer_grows_only_a_little_with_each_demand_on_a_missing_package() -> None:
    versions = [Version(f"1.{minor}.0") for minor in range(200)]
    of_one, of_many = (
        Answer((), tuple(_missing(number, *map(tuple, [versions] * 3)) for number in range(count)))
        for count in (1, 100)
    )
    smaller, larger = (wire.answer_to_json(answer, BUDGET) for answer in (of_one, of_many))

    assert wire.answer_from_json(_sent(larger)) == of_many
    assert len(json.dumps(larger)) < 5 * len(json.dumps(smaller))


def test_the_first_demand_on_a_missing_package_needs_the_versions() -> None:
    content = wire.answer_to_json(Answer((), (_missing(0), _missing(1))), BUDGET)
    del content["unsatisfied"][0]["available"]

    with pytest.raises(wire.Malformed, match=r"^unsatisfied: available is missing$"):
        wire.answer_from_json(content)


def _missing(number: int, *versions: tuple[Version, ...]) -> Unsatisfied:
    requirer = PackageVersion(f"org.p{number}", Version("1.0.0"))
    demand = Demand("org.db", VersionSpec.of(">=3"), requirer)
    return Unsatisfied(demand, *(versions or ((),)))


@pytest.mark.parametrize(
    "query",
    [
        Query(tuple((f"org.p{n}", VersionSpec.of("1")) for n in range(wire.MAX_REQUIREMENTS + 1))),
        Query(classes=(("org.C", VersionSpec.of("1")),) * (wire.MAX_REQUIREMENTS + 1)),
        Query(pins={f"org.p{n}": [] for n in range(wire.MAX_REQUIREMENTS + 1)}),
        Query(pins={"org.p": [Version("1.0.0")] * (wire.MAX_PINS + 1)}),
        Query((("org.p", VersionSpec.of("1")), ("org.p", VersionSpec.of("2")))),
    ],
    ids=["requirements", "classes", "pinned packages", "pins", "two ranges"],
)
def test_a_query_that_no_request_can_carry_is_not_written(query: Query) -> None:
    assert wire.query_to_json(query) is None


RELEASE = {
    "id": "1",
    "name": "org.db",
    "version": "1.0.0",
    "sha256": "0" * 64,
    "size": 1,
    "requirements": {"io.murano": "0"},
    "class_definitions": ["org.db.Thing"],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": None}, "name: expected a string, found nothing"),
        ({"name": ["org.db"]}, "name: expected a string, found a sequence"),
        ({"name": "../db"}, "name: '../db'"),
        ({"version": 1.1}, "version: expected a string, found a number"),
        ({"version": ""}, "version: expected a string, found nothing"),
        ({"requirements": []}, "requirements: expected a mapping, found a sequence"),
        ({"requirements": {"org.a": 1}}, "requirements: org.a: expected a string, found a number"),
        ({"requirements": {"org.a": ">>1"}}, "requirements: org.a: '>>1'"),
        ({"class_definitions": "C"}, "class_definitions: expected a sequence, found a string"),
        ({"sha256": "../../etc"}, "sha256: '../../etc'"),
        ({"size": True}, "size: expected a number of bytes, found a truth value"),
        ({"size": -1}, "size: '-1'"),
        ({"size": float("inf")}, "size: 'inf'"),
        ({"owner": 7}, "owner: expected a string, found a number"),
    ],
)
def test_a_malformed_release_is_refused_by_its_key(change: Any, message: str) -> None:
    with pytest.raises(wire.Malformed) as refusal:
        wire.release_from_json({**RELEASE, **change})

    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize("key", ["name", "version", "requirements", "class_definitions"])
def test_a_missing_key_is_named(key: str) -> None:
    content = {name: value for name, value in RELEASE.items() if name != key}

    with pytest.raises(wire.Malformed, match=f"^{key} is missing$"):
        wire.release_from_json(content)


@pytest.mark.parametrize("key", ["id", "sha256", "size", "owner", "visibility", "required_by"])
def test_an_answer_names_each_archive_and_its_owner(key: str) -> None:
    item = {**RELEASE, "owner": "a", "visibility": "private", "required_by": []}
    del item[key]

    with pytest.raises(wire.Malformed, match=f"^releases: {key} is missing$"):
        wire.answer_from_json({"releases": [item], "unsatisfied": [], "undefined": []})


def test_equal_releases_may_have_base_classes_or_not() -> None:
    """The answer to a dependency query has none."""
    release = Release("org.db", Version("1.0.0"), {}, frozenset(["org.db.Thing"]))
    listed = dataclasses.replace(release, inherits={"org.base.Base": ("org.db.Thing",)})
    assert listed == release
