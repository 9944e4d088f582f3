# SPDX-License-Identifier: Apache-2.0

"""``openstack murano package tree``: what a package requires, and who requires it."""

import pytest

from loader.catalogs.glare import GlareRepository
from loader.commands import dependency_graph
from loader.references import PackageReference
from tests import packages
from tests.functional.client import Client
from tests.functional.conftest import CORE, CORE_VERSION
from tests.functional.openstack_command import OpenStack


@pytest.fixture
def library(glare: Client, name: str) -> str:
    """A library in two versions, of which the package requires the older one."""
    library = f"{name}.library"
    for version in ("1.0.0", "2.0.0"):
        glare.publish(library, version, packages.package(library, version))
    archive = packages.package(name, "1.0.0", Require={library: "<2"})
    glare.publish(name, "1.0.0", archive)
    return library


def test_the_closure_is_a_tree(openstack: OpenStack, name: str, library: str) -> None:
    core = f"{CORE} {CORE_VERSION}  [0]"
    assert openstack.ok("package", "tree", name).out.splitlines() == [
        f"{name} 1.0.0  [*]",
        f"├── {core}",
        f"└── {library} 1.0.0  [<2]",
        f"    └── {core}",
    ]


def test_dependents_are_a_tree(openstack: OpenStack, name: str, library: str) -> None:
    shown = openstack.ok("package", "tree", "--reverse", f"{library}@1").out
    assert shown.splitlines() == [f"{library} 1.0.0", f"└── {name} 1.0.0  [<2]"]
    newest = openstack.ok("package", "tree", "--reverse", library).out
    assert newest.splitlines() == [f"{library} 2.0.0"]


def test_the_dependents_of_a_level_take_one_request(glare: Client, name: str) -> None:
    applications = [f"{name}.app{number}" for number in range(4)]
    glare.publish(name, "1.0.0", packages.package(name, "1.0.0"))
    for fqn in applications:
        glare.publish(fqn, "1.0.0", packages.package(fqn, "1.0.0", Require={name: "1"}))
    portal, every = f"{name}.portal", dict.fromkeys(applications, "1")
    glare.publish(portal, "1.0.0", packages.package(portal, "1.0.0", Require=every))
    repository = GlareRepository(glare.session(), endpoint=glare.url)
    root = repository.find_one(PackageReference.parse(name))
    before = repository._client._counters.requests

    graph = dependency_graph.dependents_of(repository, root)

    assert [(edge.package, edge.required_by) for edge in graph] == [
        (f"{name} 1.0.0", ""),
        *((f"{fqn} 1.0.0", f"{name} 1.0.0") for fqn in applications),
        *((f"{portal} 1.0.0", f"{fqn} 1.0.0") for fqn in applications),
    ]
    # One for each level, and one more that finds nothing.
    assert repository._client._counters.requests - before == 3


def test_a_package_is_shown_with_what_requires_it(
    openstack: OpenStack, name: str, library: str
) -> None:
    assert openstack.json("package", "show", f"{library}@1")["required_by"] == [f"{name} 1.0.0"]
    newest = openstack.json("package", "show", library)
    assert newest["required_by"] == []
    assert newest["requirements"] == {CORE: "0", library: "2"}


def test_a_choice_is_explained(openstack: OpenStack, name: str, library: str) -> None:
    shown = openstack.ok("package", "tree", name, "--why", library).out
    assert shown.splitlines() == [
        f"{name} 1.0.0  [*]",
        f"└── {library} 1.0.0  [<2]",
        f"    passed over: 2.0.0 excluded by <2 of {name} 1.0.0",
    ]


def test_every_format_shows_the_same_edges(openstack: OpenStack, name: str, library: str) -> None:
    edges = {(row["Name"], row["Required By"]) for row in openstack.json("package", "tree", name)}
    assert (library, f"{name} 1.0.0") in edges
    for drawing in ("dot", "mermaid", "svg", "table", "csv", "value", "yaml"):
        drawn = openstack.ok("package", "tree", name, "-f", drawing).out
        assert drawn.count(f"{library} 1.0.0") or drawn.count(library) >= 1, drawing
    refused = openstack.fails("package", "tree", name, "-f", "dot", "-c", "Name")
    assert "leave out -c" in refused.err


def test_the_versions_of_a_missing_package_are_explained(
    openstack: OpenStack, name: str, library: str
) -> None:
    openstack.ok("package", "yank", f"{library}@1.0.0", "--reason", "broken")
    shown = openstack.ok("package", "tree", name, "--why", library).out
    assert shown.splitlines() == [
        f"{name} 1.0.0  [*]",
        f"└── {library} missing  [<2]",
        f"    passed over: 2.0.0 excluded by <2 of {name} 1.0.0; 1.0.0 yanked or a "
        f"pre-release, and not required exactly by <2 of {name} 1.0.0",
    ]
    assert "passed over" not in openstack.ok("package", "tree", name).out


def test_what_is_missing_is_shown(openstack: OpenStack, name: str) -> None:
    missing = openstack.fails("package", "tree", name, code=3)
    assert f"package {name} in the range" in missing.err
