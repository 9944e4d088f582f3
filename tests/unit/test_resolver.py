# SPDX-License-Identifier: Apache-2.0

"""Planning a closure: the rule, in small graphs and in random ones."""

import cProfile
import itertools
import pstats
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glare_murano import hitting_set, resolver
from glare_murano.budget import Budget
from glare_murano.package import VersionSpec, parse_version
from glare_murano.package.versions import SortedVersions
from loader import resolution
from tests import effort

CHAIN = resolver.MAX_PACKAGES


def calls(work):
    """Return how many functions, Python's own included, are called."""
    with cProfile.Profile() as profile:
        work()
    return pstats.Stats(profile).total_calls


class Catalogue:
    """Packages as data: FQN -> version -> requirements."""

    def __init__(self, packages):
        self._packages = {
            fqn: {
                parse_version(version): {
                    name: VersionSpec.of(text) for name, text in requirements.items()
                }
                for version, requirements in versions.items()
            }
            for fqn, versions in packages.items()
        }
        self.requested = []
        self.read = []

    def versions(self, fqns):
        self.requested.append(list(fqns))
        return {
            fqn: resolver.newest_first(self._packages[fqn]) for fqn in fqns if fqn in self._packages
        }

    def requirements(self, releases):
        self.read.append([str(release) for release in releases])
        return {release: self._packages[release.fqn][release.version] for release in releases}

    def holds(self, demand):
        return any(map(demand.spec.match, self._packages.get(demand.fqn, ())))


def _parsed(versions):
    return {fqn: [parse_version(text) for text in texts] for fqn, texts in versions.items()}


def planned(packages, roots, pins=None, exact_only=(), headers=(), provided=None):
    """The closure, and its catalogue."""
    catalogue = Catalogue(packages)
    found = resolver.plan(
        [(fqn, VersionSpec.of(text)) for fqn, text in roots.items()],
        _parsed(pins or {}),
        catalogue,
        headers=headers,
        provided=_parsed(provided or {}),
        is_exact_only=lambda release: str(release) in exact_only,
    )
    return found, catalogue


def taken(packages, roots, pins=None, exact_only=()):
    found, _ = planned(packages, roots, pins, exact_only)
    result = {}
    for release in found.releases:
        result.setdefault(release.fqn, []).append(str(release.version))
    return {fqn: sorted(versions, reverse=True) for fqn, versions in result.items()}


def why(packages, roots, fqn, pins=None, exact_only=(), headers=()):
    """The reasons for a package's chosen versions, and the kept ranges."""
    found, _ = planned(packages, roots, pins, exact_only, headers)

    def texts(demands):
        return [f"{demand} of {demand.requirer}" for demand in demands]

    return {
        str(release.version): (
            texts(reasons.kept),
            [
                ([str(v) for v in passed.versions], passed.reason, texts(passed.demands))
                for passed in reasons.passed_over
            ],
        )
        for release, reasons in found.why.items()
        if release.fqn == fqn
    }


DB = {"1.0": {}, "1.2": {}, "1.3": {}, "2.0": {}}


class TestPlan:
    def test_one_range_takes_the_newest_release_in_it(self):
        assert taken({"db": DB}, {"db": "1"}) == {"db": ["1.3.0"]}

    def test_requirements_are_followed_all_the_way_down(self):
        packages = {"a": {"1": {"b": "1"}}, "b": {"1": {"db": "<2"}}, "db": DB}
        assert taken(packages, {"a": "*"}) == {"a": ["1.0.0"], "b": ["1.0.0"], "db": ["1.3.0"]}

    def test_one_version_that_satisfies_all_is_taken_before_two(self):
        packages = {"a": {"1": {"db": "1"}}, "b": {"1": {"db": "<=1.2"}}, "db": DB}
        assert taken(packages, {"a": "*", "b": "*"})["db"] == ["1.2.0"]

    def test_two_versions_are_taken_side_by_side_where_none_satisfies_both(self):
        packages = {"a": {"1": {"db": "1"}}, "b": {"1": {"db": "2"}}, "db": DB}
        assert taken(packages, {"a": "*", "b": "*"})["db"] == ["2.0.0", "1.3.0"]

    def test_a_pin_comes_before_a_newer_version(self):
        assert taken({"db": DB}, {"db": "1"}, {"db": ["1.0.0"]}) == {"db": ["1.0.0"]}

    def test_a_pin_out_of_the_range_does_not_count(self):
        assert taken({"db": DB}, {"db": "2"}, {"db": ["1.0.0"]}) == {"db": ["2.0.0"]}

    def test_a_pin_satisfies_its_range_and_another_version_the_rest(self):
        packages = {"a": {"1": {"db": "1"}}, "b": {"1": {"db": ">=1.2"}}, "db": DB}
        assert taken(packages, {"a": "*", "b": "*"}, {"db": ["1.0.0"]})["db"] == ["2.0.0", "1.0.0"]

    def test_of_pins_that_differ_in_build_metadata_always_the_same_is_taken(self):
        versions = ["1.0.0", "1.0.0+a", "1.0.0+b"]
        for pins in itertools.permutations(versions):
            found = taken({"db": {v: {} for v in versions}}, {"db": "1"}, {"db": pins})
            assert found == {"db": ["1.0.0+b"]}

    @pytest.mark.parametrize("text", ["1.0.0", "==1.0.0+a", "=1.0.0+b"])
    def test_a_range_that_is_exactly_a_pin_takes_it(self, text):
        versions = ["1.0.0", "1.0.0+a", "1.0.0+b"]
        found = taken({"db": {v: {} for v in versions}}, {"db": text}, {"db": versions})
        assert found == {"db": [text.strip("=")]}

    def test_an_exact_range_takes_another_build_only_without_its_pin(self):
        packages = {"db": {v: {} for v in ("1.0.0", "1.0.0+a")}}
        assert taken(packages, {"db": "1.0.0"}, {"db": ["1.0.0+a"]}) == {"db": ["1.0.0+a"]}

    def test_a_yanked_pin_satisfies_its_exact_range(self):
        packages = {"db": {v: {} for v in ("1.0.0", "1.0.0+a")}}
        found = taken(packages, {"db": "1.0.0"}, {"db": ["1.0.0", "1.0.0+a"]}, ["db 1.0.0"])
        assert found == {"db": ["1.0.0"]}

    def test_a_pin_that_is_gone_is_reported(self):
        found, _ = planned({"db": DB}, {"db": "1"}, {"db": ["1.1.0"]})
        assert [str(u.demand) for u in found.unsatisfied] == ["db 1"]

    def test_what_nothing_requires_any_more_drops_out_with_what_only_it_required(self):
        # The newest "a" is given up for an older one, which does not need "c".
        packages = {
            "a": {"1": {}, "2": {"c": "*"}},
            "b": {"1": {"a": "1"}},
            "c": {"1": {"d": "*"}},
            "d": {"1": {}},
        }
        assert taken(packages, {"a": "*", "b": "*"}) == {"a": ["1.0.0"], "b": ["1.0.0"]}

    def test_packages_that_rule_each_other_out_come_to_an_end(self):
        packages = {"a": {"1": {}, "2": {"b": "1"}}, "b": {"1": {}, "2": {"a": "1"}}}
        assert taken(packages, {"a": "*", "b": "*"}) == {"a": ["1.0.0"], "b": ["2.0.0"]}

    def test_no_version_is_passed_over_for_a_reason_that_has_gone(self):
        packages = {
            "p": {"2": {}, "3": {}},
            "t": {"1": {}, "2": {"p": "<3"}},
            "u": {"1": {"w": "*"}},
            "w": {"1": {"t": "<2"}},
        }
        found = taken(packages, {"p": "*", "t": "*", "u": "*"})
        assert (found["t"], found["p"]) == (["1.0.0"], ["3.0.0"])

    def test_no_version_of_a_cycle_is_passed_over_for_a_reason_that_has_gone(self):
        packages = {
            "p0": {"1.0.0": {}, "1.1.0": {"p1": "1"}},
            "p1": {"1.1.0": {"p0": "1.0"}, "2.0.0": {}, "2.1.0": {"p0": "1.0"}},
        }
        # The older p0 is required by the p1 that is chosen.
        found = taken(packages, {"p0": ">=1", "p1": ">=1"})
        assert found == {"p0": ["1.0.0"], "p1": ["2.1.0"]}

    def test_an_exact_only_version_serves_only_its_pin_and_its_exact_range(self):
        packages = {"a": {"1": {"db": "==1.3.0"}}, "b": {"1": {"db": "1"}}, "db": DB}
        exact_only = {"db 1.3.0", "db 2.0.0"}
        assert taken(packages, {"db": "*"}, exact_only=exact_only) == {"db": ["1.2.0"]}
        assert taken(packages, {"db": "2"}, exact_only=exact_only) == {}
        assert taken(packages, {"db": "1"}, {"db": ["1.3.0"]}, exact_only) == {"db": ["1.3.0"]}
        found, _ = planned(packages, {"a": "*", "b": "*"}, exact_only=exact_only)
        upon = {str(r): [str(d.requirer) for d in of] for r, of in found.releases.items()}
        assert upon["db 1.3.0"] == ["a 1.0.0"]
        assert upon["db 1.2.0"] == ["b 1.0.0"]

    def test_what_leads_round_in_a_circle_is_taken_side_by_side(self):
        # Each "c" requires the other one, the older by way of "b".
        packages = {"b": {"1": {"c": "2"}}, "c": {"1": {"b": "*"}, "2": {"c": "1"}}}
        assert taken(packages, {"c": "*"}) == {"b": ["1.0.0"], "c": ["2.0.0", "1.0.0"]}

    def test_a_circle_that_nothing_leads_to_any_more_is_left(self):
        packages = {
            "a": {"1": {}, "2": {"x": "*"}},
            "b": {"1": {"a": "1"}},
            "x": {"1": {"y": "*"}},
            "y": {"1": {"x": "*"}},
        }
        assert taken(packages, {"a": "*", "b": "*"}) == {"a": ["1.0.0"], "b": ["1.0.0"]}

    def test_a_circle_is_a_closure(self):
        packages = {"a": {"1": {"b": "1"}}, "b": {"1": {"a": "1"}}}
        assert taken(packages, {"a": "1"}) == {"a": ["1.0.0"], "b": ["1.0.0"]}

    def test_a_package_satisfies_a_requirement_on_itself(self):
        packages = {"a": {"1.0": {"a": "1"}, "1.1": {"a": "1"}}}
        assert taken(packages, {"a": "1.0"}) == {"a": ["1.0.0"]}

    def test_a_pre_release_satisfies_its_implicit_requirement_on_itself(self):
        packages = {"a": {"2.0.0-rc.1": {"a": "2"}, "2.1": {"a": "2"}}}
        assert taken(packages, {"a": "2.0.0-rc.1"}) == {"a": ["2.0.0-rc.1"]}

    def test_another_range_upon_itself_is_a_requirement(self):
        packages = {"a": {"1.0": {"a": "1"}, "2.0": {"a": "1"}}}
        assert taken(packages, {"a": "2"}) == {"a": ["2.0.0", "1.0.0"]}

    def test_a_closure_has_an_end(self):
        chain = resolver.MAX_PACKAGES + 2
        packages = {f"p{i}": {"1": {f"p{i + 1}": "1"}} for i in range(2, chain)}
        packages["p1"] = {"1": dict.fromkeys(list(packages)[::2], "*")}
        with pytest.raises(resolver.Unplannable, match="more than 5000 packages, among them p999"):
            planned(packages, {"p1": "1"})

    def test_too_many_ranges_are_refused_with_the_package(self):
        # Each range has three of thirty versions.
        versions = [f"1.{minor}.0" for minor in range(30)]
        dice = random.Random(0)
        excluded = [dice.sample(versions, 27) for _ in range(60)]
        ranges = [",".join(f"!={version}" for version in out) for out in excluded]
        packages = {f"a{n}": {"1": {"db": text}} for n, text in enumerate(ranges)}
        packages["db"] = {version: {} for version in versions}
        with pytest.raises(resolver.TooManyVersions) as refusal:
            planned(packages, dict.fromkeys(packages, "1"))
        assert "versions of package db for" in str(refusal.value)
        assert f": {min(ranges)}, " in str(refusal.value)

    def test_what_is_missing_is_reported_with_the_requirer_and_what_there_is(self):
        packages = {"a": {"1": {"b": "*"}}, "b": {"1": {"db": ">=3"}}, "db": DB}
        found, _ = planned(packages, {"a": "1"})
        (missing,) = found.unsatisfied
        assert str(missing.demand) == "db >=3"
        assert str(missing.demand.requirer) == "b 1.0.0"
        assert [str(v) for v in missing.available] == ["2.0.0", "1.3.0", "1.2.0", "1.0.0"]

    def test_the_chain_of_an_answer_that_goes_round_or_leads_nowhere_has_an_end(self):
        a, b = (resolver.PackageVersion(fqn, parse_version("1")) for fqn in "ab")
        of_a, of_b = (resolver.Demand(r.fqn, VersionSpec.of("1"), by) for r, by in ((a, b), (b, a)))

        assert resolution.chain_of(of_a, {a: of_a, b: of_b}.get) == (of_b, of_a)
        assert resolution.chain_of(of_a, {}.get) == (of_a,)

    def test_everybody_who_requires_a_release_is_listed(self):
        packages = {"a": {"1": {"db": "1"}}, "b": {"1": {"db": "1.3"}}, "db": DB}
        found, _ = planned(packages, {"a": "*", "b": "*"})
        (release,) = [release for release in found.releases if release.fqn == "db"]
        demands = {(str(d.requirer), str(d.spec)) for d in found.releases[release]}
        assert demands == {("a 1.0.0", "1"), ("b 1.0.0", "1.3")}

    def test_a_level_is_requested_at_once_and_each_package_once(self):
        packages = {
            "a": {"1": {"c": "*", "d": "*"}},
            "b": {"1": {"d": "*", "e": "*"}},
            "c": {"1": {"a": "*"}},
            "d": {"1": {}},
            "e": {"1": {}},
        }
        _, catalogue = planned(packages, {"a": "*", "b": "*"})
        assert catalogue.requested == [["a", "b"], ["c", "d", "e"]]
        assert catalogue.read == [["a 1.0.0", "b 1.0.0"], ["c 1.0.0", "d 1.0.0", "e 1.0.0"]]

    def test_each_release_is_requested_once(self):
        packages = {"a": {"1": {"db": "1", "b": "*"}}, "b": {"1": {"db": "2"}}, "db": DB}
        _, catalogue = planned(packages, {"a": "*"})
        # Another version of a chosen package is required in a later round.
        assert catalogue.read == [["a 1.0.0"], ["b 1.0.0", "db 1.3.0"], ["db 2.0.0"]]

    def test_nothing_is_required(self):
        assert taken({}, {}) == {}


def chain(length, version, text, last=None):
    """A chain of packages, each requiring the next in a range."""
    packages = {f"p{i}": {version: {f"p{i + 1}": text}} for i in range(length - 1)}
    return {**packages, f"p{length - 1}": {version: last or {}}}


class TestWhy:
    def test_the_newest_needs_no_reason(self):
        assert why({"db": DB}, {"db": "*"}, "db") == {"2.0.0": ([], [])}

    def test_each_range_that_excludes_newer_versions_is_named(self):
        packages = {"a": {"1": {"db": "1"}}, "b": {"1": {"db": "<=1.2"}}, "db": DB}
        assert why(packages, {"a": "*", "b": "*"}, "db") == {
            "1.2.0": (
                [],
                [
                    (["2.0.0"], "range", ["db 1 of a 1.0.0", "db <=1.2 of b 1.0.0"]),
                    (["1.3.0"], "range", ["db <=1.2 of b 1.0.0"]),
                ],
            )
        }

    def test_a_pin_is_named(self):
        assert why({"db": DB}, {"db": "1"}, "db", {"db": ["1.2.0"]}) == {
            "1.2.0": (
                [],
                [(["2.0.0"], "range", ["db 1 of None"]), (["1.3.0"], "pin", ["db 1 of None"])],
            )
        }

    def test_an_exact_only_version_is_named(self):
        found = why({"db": DB}, {"db": "*"}, "db", exact_only=["db 2.0.0"])
        assert found == {"1.3.0": ([], [(["2.0.0"], "exact_only", ["db * of None"])])}

    def test_a_version_without_the_class_is_named(self):
        header = resolver.Header("db", VersionSpec.of("*"), frozenset([parse_version("1.2")]))
        assert why({"db": DB}, {}, "db", headers=[header]) == {
            "1.2.0": ([], [(["2.0.0", "1.3.0"], "class", ["db * of None"])])
        }

    def test_a_kept_range_is_marked(self):
        # The newest p excludes itself by way of x, which only it requires.
        packages = {"p": {"1": {}, "2": {"x": "*"}}, "x": {"1": {"p": "<2"}}}
        assert why(packages, {"p": "*"}, "p") == {
            "1.0.0": (["p <2 of x 1.0.0"], [(["2.0.0"], "range", ["p <2 of x 1.0.0"])])
        }

    def test_the_twenty_newest_versions_are_named(self):
        versions = {f"1.{minor}": {} for minor in range(60)}
        (_, [(named, _, _)]) = why({"db": versions}, {"db": "1.0"}, "db")["1.0.0"]
        assert named == [f"1.{minor}.0" for minor in range(59, 39, -1)]


def shared(length):
    """Packages that one requires, and that all require one."""
    names = [f"p{i}" for i in range(length - 2)]
    packages = {name: {"1": {"core": "0"}} for name in names}
    return {**packages, "p0": {"1": dict.fromkeys(names[1:], "1")}, "core": {"0.1": {}}}


def changes(length):
    """A cycle: once the newest have been chosen, each gives way to an older one."""
    newest, older = chain(length, "2", "*", {"p0": "<2"}), chain(length, "1", "<2")
    return {name: {**newest[name], **older[name]} for name in newest}


@pytest.mark.programs
class TestCosts:
    """Ten times as many packages cost at most twelve times as many calls of functions.

    Calls are counted, since seconds also depend on the machine.
    """

    @pytest.mark.parametrize(
        "packages",
        [
            pytest.param(lambda length: chain(length, "1", "1"), id="chain"),
            pytest.param(lambda length: chain(length, "1", "1", {"p0": "1"}), id="cycle"),
            pytest.param(shared, id="shared"),
            pytest.param(changes, id="changes"),
        ],
    )
    def test_grow_with_the_packages(self, packages):
        few, many = (
            calls(lambda n=n: planned(packages(n), {"p0": "*"})) for n in (CHAIN // 10, CHAIN)
        )
        assert many < 12 * few

    def test_the_largest_plan_is_made(self):
        found, _ = planned(changes(CHAIN), {"p0": "*"})
        assert {str(release.version) for release in found.releases} == {"1.0.0"}
        assert len(found.releases) == CHAIN


VERSIONS = [f"{major}.{minor}.0" for major in range(3) for minor in range(4)]
RANGES = st.sampled_from(
    ["*", "0", "1", "2", "1.1", ">=1", "<2", "<=1.2", ">0.2,<2", "!=1.1.0", ">=0.1,<1.2", "2.3.0"]
)


def fewest_newest(versions, specs):
    """The fewest versions for ranges, as the resolver finds them."""
    ordered = SortedVersions(versions)
    satisfied = ordered.memberships(map(ordered.within, specs))
    newest_first = zip(ordered.newest_first(ordered.every), reversed(satisfied), strict=True)
    return hitting_set.fewest_newest(newest_first, Budget(60, "wait"), "package org.a")


def cover_by_force(versions, specs):
    """The same, by trying all sets of versions."""
    wanted = [spec for spec in specs if any(map(spec.match, versions))]
    for size in range(len(versions) + 1):
        for chosen in itertools.combinations(versions, size):
            if all(any(map(spec.match, chosen)) for spec in wanted):
                return chosen
    raise AssertionError


class TestFewestNewest:
    @settings(max_examples=effort.GRAPHS)
    @given(
        st.sets(st.sampled_from(VERSIONS), max_size=8), st.lists(RANGES, max_size=5, unique=True)
    )
    def test_is_what_trying_all_sets_finds(self, texts, ranges):
        versions = resolver.newest_first(map(parse_version, texts))
        specs = tuple(map(VersionSpec.of, ranges))
        # combinations() gives the newest first, so that its first is the greatest.
        assert fewest_newest(versions, specs) == cover_by_force(versions, specs)

    def test_many_ranges_of_one_version_are_decided_at_once(self):
        texts = [f"1.{minor}.0" for minor in range(60)]
        specs = tuple(VersionSpec.of(f"=={text}") for text in texts)
        versions = resolver.newest_first(map(parse_version, texts))
        assert fewest_newest(versions, specs) == versions

    def test_the_search_ends_after_a_number_of_steps(self, monkeypatch):
        texts = [f"1.{minor}.0" for minor in range(6)]
        # Each range excludes two versions, so that no version satisfies all ranges.
        pairs = itertools.combinations(texts, 2)
        specs = [VersionSpec.of(f">=1,!={one},!={other}") for one, other in pairs]
        versions = resolver.newest_first(map(parse_version, texts))
        expected = fewest_newest(versions, specs)
        steps = itertools.count(1)
        with monkeypatch.context() as patch:
            patch.setattr(Budget, "check", lambda *_: next(steps))
            fewest_newest(versions, specs)
        taken = next(steps) - 1

        monkeypatch.setattr(hitting_set, "_MAX_STEPS", taken)
        assert fewest_newest(versions, specs) == expected
        monkeypatch.setattr(hitting_set, "_MAX_STEPS", taken - 1)
        with pytest.raises(hitting_set.TooManyVersions, match=f"{taken - 1} combinations"):
            fewest_newest(versions, specs)

    def test_a_refusal_names_the_first_ranges(self, monkeypatch):
        monkeypatch.setattr(hitting_set, "_MAX_STEPS", 0)
        texts = [f"1.{minor}.0" for minor in range(4)]
        pairs = list(itertools.combinations(texts, 2))
        packages = {
            f"p{number}": {"1": {"db": f">=1,!={one},!={other}"}}
            for number, (one, other) in enumerate(pairs)
        }
        packages["db"] = {text: {} for text in texts}
        with pytest.raises(hitting_set.TooManyVersions) as refusal:
            planned(packages, dict.fromkeys(sorted(packages.keys() - {"db"}), "*"))
        named = ", ".join(f">=1,!={one},!={other}" for one, other in pairs[:5])
        assert str(refusal.value).endswith(f"write these ranges less strictly: {named} and 1 more")

    def test_many_different_ranges_are_satisfied(self):
        draw = random.Random(0)
        texts = [f"1.{minor}.0" for minor in range(24)]
        excluded = [[text for text in texts if draw.random() < 2 / 3] for _ in range(40)]
        specs = [VersionSpec.of(",".join([">=1", *(f"!={t}" for t in each)])) for each in excluded]
        found = fewest_newest(resolver.newest_first(map(parse_version, texts)), specs)
        assert len(found) == 5
        assert all(any(map(spec.match, found)) for spec in specs)


NAMES = ["a", "b", "c", "d", "e"]
GRAPHS = st.dictionaries(
    st.sampled_from(NAMES),
    st.dictionaries(
        st.sampled_from(VERSIONS),
        st.dictionaries(st.sampled_from(NAMES), RANGES, max_size=3),
        max_size=4,
    ),
)
ROOTS = st.dictionaries(st.sampled_from(NAMES), RANGES, max_size=3)
PINS = st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(VERSIONS), max_size=2))


class TestRandomGraphs:
    @settings(max_examples=effort.GRAPHS)
    @given(GRAPHS, ROOTS, PINS)
    def test_every_range_is_answered_or_reported(self, packages, roots, pins):
        found, catalogue = planned(packages, roots, pins)
        answered = {demand: release for release, upon in found.releases.items() for demand in upon}
        reported = {missing.demand for missing in found.unsatisfied}
        expected = {resolver.Demand(fqn, VersionSpec.of(text), None) for fqn, text in roots.items()}
        for release in found.releases:
            for fqn, spec in catalogue.requirements([release])[release].items():
                if fqn != release.fqn or not spec.match(release.version):
                    expected.add(resolver.Demand(fqn, spec, release))
        assert expected == answered.keys() | reported
        assert not answered.keys() & reported
        for demand, release in answered.items():
            assert demand.spec.match(release.version)

    @settings(max_examples=effort.GRAPHS)
    @given(GRAPHS, ROOTS)
    def test_what_is_reported_is_missing(self, packages, roots):
        found, catalogue = planned(packages, roots)
        assert not [m for m in found.unsatisfied if catalogue.holds(m.demand)]

    @settings(max_examples=effort.GRAPHS)
    @given(GRAPHS, ROOTS, PINS)
    def test_every_release_is_required_by_a_chain_from_a_root(self, packages, roots, pins):
        found, _ = planned(packages, roots, pins)
        answered = {demand: release for release, upon in found.releases.items() for demand in upon}
        reported = [missing.demand for missing in found.unsatisfied]
        for demand in (*answered, *reported):
            chain = resolution.chain_of(demand, lambda release: found.releases[release][0])
            assert chain[-1] == demand
            assert chain[0].requirer is None
            assert chain[0].fqn in roots
            for before, after in itertools.pairwise(chain):
                assert answered[before] == after.requirer
        assert all(found.releases.values())

    @settings(max_examples=effort.GRAPHS)
    @given(GRAPHS, ROOTS, PINS, st.randoms())
    def test_the_order_of_what_is_given_does_not_count(self, packages, roots, pins, random):
        def shuffled(mapping):
            items = [(k, shuffled(v) if isinstance(v, dict) else v) for k, v in mapping.items()]
            random.shuffle(items)
            return dict(items)

        assert taken(packages, roots, pins) == taken(shuffled(packages), shuffled(roots), pins)


def test_only_a_package_of_the_engine_satisfies_ranges_upon_its_name():
    packages = {
        "app": {"1.0.0": {"plug-in": "1", "lib": "*"}},
        "lib": {"1.0.0": {"plug-in": ">=2"}, "0.9.0": {"missing": "1"}},
        "plug-in": {"1.9.0": {"missing": "1"}, "2.0.0": {}},
    }

    provided = {"plug-in": ["1.2.0", "1.4.0"]}
    found, _ = planned(packages, {"app": "*"}, provided=provided)

    assert list(map(str, found.releases)) == ["app 1.0.0", "lib 1.0.0"]
    (external,) = found.external
    assert (str(external.demand), str(external.demand.requirer)) == ("plug-in 1", "app 1.0.0")
    assert str(external.version) == "1.4.0"
    (missing,) = found.unsatisfied
    assert (str(missing.demand), missing.available) == ("plug-in >=2", ())
    assert list(map(str, missing.provided)) == ["1.4.0", "1.2.0"]

    # Not even by a pin.
    pins = {"plug-in": ["2.0.0"]}
    found, _ = planned(packages, {"app": "*"}, pins, provided=provided)
    assert list(map(str, found.releases)) == ["app 1.0.0", "lib 1.0.0"]

    found, _ = planned(packages, {"plug-in": ">=3"}, provided={"plug-in": ["1.4.0"]})
    (missing,) = found.unsatisfied
    assert list(map(str, missing.provided)) == ["1.4.0"]


def test_the_releases_of_a_class_are_requested_once_for_all_objects() -> None:
    requested = []

    def defining(class_name: str) -> list[list[resolver.PackageVersion]]:
        requested.append(class_name)
        versions = map(parse_version, ("1", "2", "2.1"))
        return [[resolver.PackageVersion("org.a", version) for version in versions]]

    ranges = map(VersionSpec.of, ("1", "2", ">=1", "3"))
    headers, undefined = resolver.find_headers(
        [("org.a.A", each) for each in ranges], defining, {}, lambda _: False, Budget(60, "")
    )

    assert requested == ["org.a.A"]
    assert len({id(header.defining) for header in headers}) == 1
    assert [each.available for each in undefined] == [("org.a 2.1.0", "org.a 2.0.0", "org.a 1.0.0")]


def test_of_packages_that_define_a_class_in_one_version_a_pinned_or_valid_one_is_found() -> None:
    one, two = (resolver.PackageVersion(f"org.{name}", parse_version("1")) for name in ("a", "b"))
    classes = [("org.A", VersionSpec.of("1"))]

    def found(pins: dict[str, list[Any]], *exact_only: resolver.PackageVersion) -> list[str]:
        headers, _ = resolver.find_headers(
            classes, lambda _: [[one, two]], pins, exact_only.__contains__, Budget(60, "")
        )
        return [header.fqn for header in headers]

    assert found({}) == ["org.b"]
    assert found({"org.a": [one.version]}) == ["org.a"]
    assert found({}, two) == ["org.a"]
    assert found({}, one, two) == []
