# SPDX-License-Identifier: Apache-2.0

"""Planning a closure: the rule, in small graphs and in random ones."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glare_murano import resolver
from glare_murano.package import VersionSpec, parse_version
from tests import effort


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

    def versions(self, fqns):
        self.requested.append(list(fqns))
        return {
            fqn: resolver.newest_first(self._packages[fqn]) for fqn in fqns if fqn in self._packages
        }

    def requirements(self, releases):
        return {release: self._packages[release.fqn][release.version] for release in releases}

    def holds(self, demand):
        return any(map(demand.spec.match, self._packages.get(demand.fqn, ())))


def planned(packages, roots, pins=None):
    """The closure, and its catalogue."""
    catalogue = Catalogue(packages)
    found = resolver.plan(
        [(fqn, VersionSpec.of(text)) for fqn, text in roots.items()],
        {fqn: [parse_version(v) for v in versions] for fqn, versions in (pins or {}).items()},
        catalogue,
    )
    return found, catalogue


def taken(packages, roots, pins=None):
    found, _ = planned(packages, roots, pins)
    result = {}
    for release in found.releases:
        result.setdefault(release.fqn, []).append(str(release.version))
    return {fqn: sorted(versions, reverse=True) for fqn, versions in result.items()}


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
        assert taken(packages, {"a": "*", "b": "*"}) == {"a": ["1.0.0"], "b": ["1.0.0"]}

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
        with pytest.raises(resolver.Unplannable, match="5000"):
            planned(packages, {"p1": "1"})

    def test_what_is_missing_is_reported_with_the_chain_and_what_there_is(self):
        packages = {"a": {"1": {"b": "*"}}, "b": {"1": {"db": ">=3"}}, "db": DB}
        found, _ = planned(packages, {"a": "1"})
        (missing,) = found.unsatisfied
        assert [str(demand) for demand in missing.chain] == ["a 1", "b *", "db >=3"]
        assert str(missing.demand.requirer) == "b 1.0.0"
        assert [str(v) for v in missing.available] == ["2.0.0", "1.3.0", "1.2.0", "1.0.0"]

    def test_the_chain_of_an_answer_that_goes_round_or_leads_nowhere_has_an_end(self):
        a, b = (resolver.PackageVersion(fqn, parse_version("1")) for fqn in "ab")
        of_a, of_b = (resolver.Demand(r.fqn, VersionSpec.of("1"), by) for r, by in ((a, b), (b, a)))

        assert resolver.chain_of(of_a, {a: of_a, b: of_b}.get) == (of_b, of_a)
        assert resolver.chain_of(of_a, {}.get) == (of_a,)

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

    def test_nothing_is_required(self):
        assert taken({}, {}) == {}


VERSIONS = [f"{major}.{minor}.0" for major in range(3) for minor in range(4)]
RANGES = st.sampled_from(
    ["*", "0", "1", "2", "1.1", ">=1", "<2", "<=1.2", ">0.2,<2", "!=1.1.0", ">=0.1,<1.2", "2.3.0"]
)


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
        assert resolver.fewest_newest(versions, specs) == cover_by_force(versions, specs)

    def test_many_ranges_of_one_version_are_decided_at_once(self):
        texts = [f"1.{minor}.0" for minor in range(60)]
        specs = tuple(VersionSpec.of(f"=={text}") for text in texts)
        versions = resolver.newest_first(map(parse_version, texts))
        assert resolver.fewest_newest(versions, specs) == versions

    def test_what_cannot_be_decided_is_refused(self):
        texts = [f"1.{minor}.0" for minor in range(24)]
        excluded = [
            ",".join(f"!={text}" for text in texts if hash((text, seed)) % 3) for seed in range(40)
        ]
        specs = tuple(VersionSpec.of(f">=1,{text}") for text in excluded)
        versions = resolver.newest_first(map(parse_version, texts))
        try:
            found = resolver.fewest_newest(versions, specs)
        except resolver.Unplannable:
            return
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
        reported = {missing.demand: missing.chain for missing in found.unsatisfied}
        for demand in (*answered, *reported):
            chain = resolver.chain_of(demand, lambda release: found.releases[release][0])
            assert reported.get(demand, chain) == chain
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
