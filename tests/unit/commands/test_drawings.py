# SPDX-License-Identifier: Apache-2.0

"""Drawings of dependency graphs, and what they escape."""

import xml.etree.ElementTree

import pytest

from loader import errors
from loader.commands import dependency_graph, drawings
from loader.commands.dependency_graph import Requirement
from tests import svg

# The wiki and the blog require the database, which is in a cycle with its driver.
GRAPH = [
    Requirement("org.wiki", "1.1.0", "*", ""),
    Requirement("org.blog", "2.0.0", "2", "org.wiki 1.1.0"),
    Requirement("org.db", "1.3.0", ">=1,<2", "org.wiki 1.1.0", "2.0.0 excluded by <2"),
    Requirement("org.db", "1.3.0", "1", "org.blog 2.0.0", "2.0.0 excluded by <2"),
    Requirement("org.driver", "missing", "3", "org.db 1.3.0"),
]


def test_a_tree_shows_the_requirements_of_a_package_once() -> None:
    assert drawings.tree(GRAPH).splitlines() == [
        "org.wiki 1.1.0  [*]",
        "├── org.blog 2.0.0  [2]",
        "│   └── org.db 1.3.0  [1]",
        "│       passed over: 2.0.0 excluded by <2",
        "│       └── org.driver missing  [3]",
        "└── org.db 1.3.0  [>=1,<2] (*)",
        "    passed over: 2.0.0 excluded by <2",
    ]


def test_a_cycle_is_drawn_once() -> None:
    graph = [
        Requirement("org.a", "1.0.0", "*", ""),
        Requirement("org.b", "1.0.0", "1", "org.a 1.0.0"),
        Requirement("org.a", "1.0.0", "1", "org.b 1.0.0"),
    ]
    assert drawings.tree(graph).splitlines()[-1] == "    └── org.a 1.0.0  [1] (*)"
    drawn = drawings.svg(graph)
    assert drawn.count(">org.a</text>") == drawn.count(">org.b</text>") == 1
    assert drawn.count('class="arrow"') == drawn.count('class="arrow back"') == 1


def test_dot_quotes_names_and_ranges() -> None:
    graph = [Requirement("a", "1", "", ""), Requirement('b"]; c [x="\\', "1", '"', "a 1")]
    drawn = drawings.dot(graph)
    assert r'"a 1" -> "b\"]; c [x=\"\\ 1" [label="\""];' in drawn


def test_mermaid_escapes_what_it_would_read() -> None:
    graph = [Requirement("a", "1", "", ""), Requirement('b"]|', "1", "<2", "a 1")]
    assert 'p0 -->|"#60;2"| p1' in drawings.mermaid(graph)
    assert 'p1["b#34;#93;#124; 1"]' in drawings.mermaid(graph)


def test_svg_is_well_formed_with_any_name() -> None:
    graph = [
        Requirement("a", "1", "", ""),
        Requirement("<script>alert('&\"')</script>", "1", "<2", "a 1"),
    ]
    drawn = drawings.svg(graph)
    assert "<script>" not in drawn
    texts = [element.text for element in xml.etree.ElementTree.fromstring(drawn).iter()]
    assert "<script>alert('&\"')</script>" in texts


def test_svg_tells_versions_yanks_and_missing_packages_by_words_and_borders() -> None:
    graph = [
        Requirement("org.wiki", "1.1.0", "*", ""),
        Requirement("org.db", "1.3.0", "1", "org.wiki 1.1.0", yanked="loses data " * 9),
        Requirement("org.db", "2.0.0", "2", "org.db 1.3.0"),
        Requirement("org.driver", "missing", "3", "org.db 2.0.0"),
    ]
    assert svg.forms(drawings.svg(graph)) == {
        ("org.wiki", "1.1.0"): "first",
        (
            "org.db",
            "1.3.0",
            "one of 2 versions",
            "yanked: loses data loses data loses...",
        ): "dashed double",
        ("org.db", "2.0.0", "one of 2 versions"): "double",
        ("org.driver", "missing"): "dotted",
    }


def test_arrows_lead_to_the_required_package_also_from_its_dependents() -> None:
    dependents = [
        Requirement("org.db", "1.3.0", "", "", yanked="old"),
        Requirement("org.wiki", "1.1.0", ">=1", "org.db 1.3.0"),
        Requirement("org.blog", "2.0.0", "1", "org.db 1.3.0"),
    ]
    assert dependency_graph.turned(dependents) == [
        Requirement("org.wiki", "1.1.0", "", ""),
        Requirement("org.blog", "2.0.0", "", ""),
        Requirement("org.db", "1.3.0", ">=1", "org.wiki 1.1.0", yanked="old"),
        Requirement("org.db", "1.3.0", "1", "org.blog 2.0.0", yanked="old"),
    ]


def test_paths_to_a_package_leave_out_all_others() -> None:
    paths = dependency_graph.paths_to(GRAPH, "org.db")
    assert [edge.fqn for edge in paths] == ["org.wiki", "org.blog", "org.db", "org.db"]
    with pytest.raises(errors.NotFound, match=r"org\.none is not required"):
        dependency_graph.paths_to(GRAPH, "org.none")


def test_a_long_chain_is_drawn() -> None:
    graph = [Requirement("org.p0", "1.0.0", "", "")]
    graph += [
        Requirement(f"org.p{number}", "1.0.0", "1", f"org.p{number - 1} 1.0.0")
        for number in range(1, 1500)
    ]
    assert len(drawings.tree(graph).splitlines()) == 1500


def test_a_terminal_without_other_characters_gets_ascii() -> None:
    drawn = drawings.in_ascii(drawings.tree(GRAPH))
    assert drawn.isascii()
    assert len(drawn) == len(drawings.tree(GRAPH))
