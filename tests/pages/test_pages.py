# SPDX-License-Identifier: Apache-2.0

"""Each page for readers is followed from its first command to its last one.

The host, the services and the programs are real. A page whose commands change a host, such as a
guide to install a service, has a test of its own, which takes the commands from the page.
"""

import contextlib
import os
import pathlib
import sys
from collections.abc import Iterator, Mapping

import pytest
import yaml

from tests import processes
from tests.integration import cloud
from tests.pages import page, terminal
from tests.pages.reader import Reader

SOURCE = processes.ROOT / "doc" / "source"
FIRST_STEPS = SOURCE / "start" / "first-steps.rst"

# By what a reader needs.
_ALONE = ("start/first-steps", "tutorials/release")
_AFTER_FIRST_STEPS = ("tutorials/two-majors", "tutorials/conflict", "tutorials/closed-site")
_IN_A_CLOUD = ("tutorials/first-package", "tutorials/moving")
_GUIDES_ALONE = ("guides/authors/testing", "guides/authors/server")
_GUIDES_AFTER_FIRST_STEPS = ("guides/authors/authoring", "guides/authors/lockfiles")

# Somebody who follows a guide has the commands installed.
_INSTALLED = {"PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}


@contextlib.contextmanager
def _reading(folder: pathlib.Path, variables: Mapping[str, str]) -> Iterator[Reader]:
    """Yield somebody in a clone of this project.

    :param variables: more variables of the terminal.
    """
    clone = folder / "clone"
    clone.mkdir()
    # What a page writes must not stay, and everything else is the same.
    for entry in processes.ROOT.iterdir():
        (clone / entry.name).symlink_to(entry)
    port, second = processes.free_port(), processes.free_port()
    names = {
        "--state-dir /tmp/glare": f"--state-dir {folder}/glare --port {port}",
        "/tmp/glare": f"{folder}/glare",
        "/tmp/site": f"{folder}/site",
        "--port 9595": f"--port {second}",
        "127.0.0.1:9494": f"127.0.0.1:{port}",
        "127.0.0.1:9595": f"127.0.0.1:{second}",
    }
    kept = {key: os.environ[key] for key in ("PATH", "LANG", "NO_PROXY") if key in os.environ}
    # In a pipe, Python would write its output after its errors.
    ours = {"HOME": str(folder), "PYTHONUNBUFFERED": "1"}
    with terminal.opened(clone, {**kept, **ours, **variables}) as opened:
        yield Reader(opened, clone, names)


@pytest.fixture(scope="module")
def clouds_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """A ``clouds.yaml`` with a cloud that has Murano."""
    folder = tmp_path_factory.mktemp("cloud")
    with cloud.running(folder) as running:
        file = folder / "clouds.yaml"
        entry = {"auth": running.identity.credentials("one"), "identity_api_version": 3}
        file.write_text(yaml.safe_dump({"clouds": {"mycloud": entry}}))
        yield file


def _guide(path: pathlib.Path) -> list[page.Block]:
    """Return the commands of a guide, and its files. What else it shows is an excerpt."""
    return [block for block in page.blocks(path) if block.caption or block.language == "console"]


def _follow_first_steps(reader: Reader) -> None:
    # The first step, the demo, leaves nothing but the environment, which is there.
    steps = page.blocks(FIRST_STEPS, "2. Start a service", "4. See which versions fit together")
    reader.follow(FIRST_STEPS, steps)


@pytest.mark.parametrize("name", _ALONE)
def test_a_page_holds(tmp_path: pathlib.Path, name: str) -> None:
    path = SOURCE / f"{name}.rst"
    with _reading(tmp_path, {}) as reader:
        reader.follow(path, page.blocks(path))


@pytest.mark.parametrize("name", _AFTER_FIRST_STEPS)
def test_a_page_holds_after_the_first_steps(tmp_path: pathlib.Path, name: str) -> None:
    path = SOURCE / f"{name}.rst"
    with _reading(tmp_path, {}) as reader:
        _follow_first_steps(reader)
        reader.follow(path, page.blocks(path))


@pytest.mark.parametrize("name", _GUIDES_ALONE)
def test_a_guide_holds(tmp_path: pathlib.Path, name: str) -> None:
    path = SOURCE / f"{name}.rst"
    with _reading(tmp_path, _INSTALLED) as reader:
        reader.follow(path, _guide(path))


@pytest.mark.parametrize("name", _GUIDES_AFTER_FIRST_STEPS)
def test_a_guide_holds_after_the_first_steps(tmp_path: pathlib.Path, name: str) -> None:
    path = SOURCE / f"{name}.rst"
    with _reading(tmp_path, {}) as reader:
        _follow_first_steps(reader)
        reader.follow(path, _guide(path))


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", _IN_A_CLOUD)
def test_a_page_holds_in_a_cloud(
    tmp_path: pathlib.Path, clouds_file: pathlib.Path, name: str
) -> None:
    path = SOURCE / f"{name}.rst"
    with _reading(tmp_path, {"OS_CLIENT_CONFIG_FILE": str(clouds_file)}) as reader:
        reader.follow(path, page.blocks(path))


def test_every_tutorial_is_followed() -> None:
    found = {f"tutorials/{path.stem}" for path in (SOURCE / "tutorials").glob("*.rst")}
    assert found <= {*_ALONE, *_AFTER_FIRST_STEPS, *_IN_A_CLOUD}
    assert len(found) == 6
