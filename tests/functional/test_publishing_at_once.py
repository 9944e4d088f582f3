# SPDX-License-Identifier: Apache-2.0

"""Several programs that publish the same packages at once, and many packages."""

import concurrent.futures
import pathlib
import threading

import pytest

from glare_murano import wire
from loader.authoring import local_packages
from loader.catalogs.glare import GlareCatalog, GlareRepository
from loader.publishing import publication, requirements
from loader.publishing.publication import PublishError, State, Step
from loader.publishing.target import Target
from tests import packages
from tests.functional.client import Client
from tests.functional.openstack_command import OpenStack

pytestmark = pytest.mark.programs


class _Publisher:
    """A program that publishes a tree."""

    def __init__(self, glare: Client, project: str, tree: pathlib.Path, folder: pathlib.Path):
        folder.mkdir()
        self.url, self.session = glare.url, glare.session()
        self.repository = GlareRepository(self.session, endpoint=self.url, project_id=project)
        self.packages = local_packages.read_all([tree], folder)

    def plan(self) -> list[Step]:
        return publication.plan(Target(self.repository), self.packages, "private")

    def go_on(self, steps: list[Step]) -> str:
        """Upload and publish; returns the error."""
        try:
            uploaded = publication.upload(self.repository, steps)
        except PublishError as error:
            return str(error)
        publication.publish(self.repository, uploaded, "private")
        return ""


@pytest.fixture
def publishers(glare: Client, project: str, name: str, tmp_path: pathlib.Path) -> list[_Publisher]:
    """Two programs with the same tree of four packages."""
    tree = tmp_path / "tree"
    for number in range(4):
        packages.write(tree / f"p{number}", packages.content(f"{name}{number}"))
    folders = tmp_path / "first", tmp_path / "second"
    return [_Publisher(glare, project, tree, folder) for folder in folders]


def _names(glare: Client, name: str, status: str) -> list[tuple[str, str]]:
    return glare.names(name=f"like:{name}%", status=status)


def test_two_programs_at_once_both_succeed(
    glare: Client, name: str, publishers: list[_Publisher]
) -> None:
    plans = [publisher.plan() for publisher in publishers]
    barrier = threading.Barrier(2)

    def run(publisher: _Publisher, steps: list[Step]) -> str:
        barrier.wait()
        return publisher.go_on(steps)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        problems = list(pool.map(run, publishers, plans))
    assert problems == ["", ""]
    assert len(_names(glare, name, "active")) == 4
    assert {step.state for step in publishers[1].plan()} == {State.PUBLISHED}


def test_packages_that_another_program_publishes_meanwhile_are_no_error(
    publishers: list[_Publisher],
) -> None:
    late = publishers[0].plan()
    assert publishers[1].go_on(publishers[1].plan()) == ""
    assert publishers[0].go_on(late) == ""
    assert {step.state for step in publishers[0].plan()} == {State.PUBLISHED}


def test_a_publication_searches_the_service_once(publishers: list[_Publisher]) -> None:
    publisher = publishers[0]
    repository, sent = publisher.repository, publisher.repository._client._counters
    target = Target(repository)

    catalog = GlareCatalog(publisher.session, endpoint=publisher.url)
    assert requirements.find(publisher.packages, target, catalog, (), "private") == []
    steps = publication.plan(target, publisher.packages, "private")
    assert sent.requests == 1

    # For each package, a request to create it and one for the archive.
    uploaded = publication.upload(repository, steps)
    publication.publish(repository, uploaded, "private")
    assert sent.requests == 1 + 2 * len(steps) + 1


def test_an_archive_that_another_program_replaces_is_reported(
    glare: Client, publishers: list[_Publisher]
) -> None:
    publisher = publishers[0]
    uploaded = publication.upload(publisher.repository, publisher.plan())
    replaced = uploaded[2]
    other = packages.package(replaced.fqn, Author="Another")
    assert glare.upload(replaced.id, other).status_code == 200

    with pytest.raises(PublishError) as refused:
        publication.publish(publisher.repository, uploaded, "private")

    (problem,) = refused.value.problems
    assert f"has {replaced} with other files (artifact {replaced.id})" in problem


def test_more_packages_than_a_request_carries_are_published(
    openstack: OpenStack,
    glare: Client,
    name: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "MAX_PUBLICATIONS", 2)
    # Each requires the next, so the last is published first.
    for number in range(5):
        require = {f"{name}{number + 1}": "1"} if number < 4 else {}
        files = packages.content(f"{name}{number}", Require=require)
        packages.write(tmp_path / "tree" / f"p{number}", files)
    rows = openstack.json("package", "publish", tmp_path / "tree")
    assert [row["Name"][-1] for row in rows] == list("43210")
    assert len(_names(glare, name, "active")) == 5


def test_packages_that_require_each_other_are_published_by_one_request(
    openstack: OpenStack,
    glare: Client,
    name: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "MAX_PUBLICATIONS", 2)
    # By number, the second and the third would be in different requests.
    for number, required in enumerate((0, 2, 1)):
        require = {f"{name}{required}": "1"} if required else {}
        files = packages.content(f"{name}{number}", Require=require)
        packages.write(tmp_path / "tree" / f"p{number}", files)
    openstack.ok("package", "publish", tmp_path / "tree")
    assert len(_names(glare, name, "active")) == 3


def test_requirements_of_a_directory_may_require_each_other(
    openstack: OpenStack, name: str, tmp_path: pathlib.Path
) -> None:
    def write(folder: str, package: str, require: str) -> pathlib.Path:
        files = packages.content(package, Require={require: "1"})
        return packages.write(tmp_path / folder / package, files)

    root = write("root", name, f"{name}.a")
    write("libraries", f"{name}.a", f"{name}.b")
    write("libraries", f"{name}.b", f"{name}.a")
    write("libraries", f"{name}.unused", name)
    rows = openstack.json("package", "publish", root, "--with-requirements", tmp_path / "libraries")
    assert {row["Name"] for row in rows} == {name, f"{name}.a", f"{name}.b"}


def test_warnings_of_a_manifest_are_shown(
    openstack: OpenStack, name: str, tmp_path: pathlib.Path
) -> None:
    path = packages.write(tmp_path / "package", packages.content(name, Unknown="value"))
    result = openstack.ok("package", "publish", path)
    assert f"{path}: " in result.err
    assert "Unknown" in result.err


def test_names_and_descriptions_in_other_scripts_are_published_and_shown(
    openstack: OpenStack, name: str, tmp_path: pathlib.Path
) -> None:
    keys = {"Name": "Wörterbuch 辞書", "Description": "Ein Wörterbuch:\n辞書", "Author": "Łukasz"}
    content = packages.content(name, Tags=["größe"], **keys)
    openstack.ok("package", "publish", packages.write(tmp_path / "Wörter", content))
    shown = openstack.json("package", "show", name)
    assert [shown[key] for key in ("display_name", "description", "author", "tags")] == [
        *keys.values(),
        ["größe"],
    ]
    assert keys["Name"] in openstack.ok("package", "list", name).out
    assert keys["Name"] in openstack.ok("package", "list", "--tag", "größe").out
