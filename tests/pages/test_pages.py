# SPDX-License-Identifier: Apache-2.0

"""Each page for readers is followed from its first command to its last one.

The services and the programs are real. ``test_operators`` follows the guides for operators, and
``test_every_command`` checks that no command is left out.
"""

import pathlib
from collections.abc import Callable, Iterator

import pytest
import yaml

from tests.integration import cloud
from tests.pages import clone, page
from tests.pages.reader import Reader

FIRST_STEPS = clone.SOURCE / "start" / "first-steps.rst"

# By what a reader needs.
_ALONE = ("start/first-steps",)
_PUBLISHED_AT_THE_END = "tutorials/release"
_AFTER_FIRST_STEPS = ("tutorials/two-majors", "tutorials/conflict", "tutorials/closed-site")
_IN_A_CLOUD = ("tutorials/first-package", "tutorials/moving")
_GUIDES_ALONE = ("guides/authors/testing", "guides/authors/preview", "guides/authors/server")
_GUIDES_AFTER_FIRST_STEPS = ("guides/authors/authoring", "guides/authors/lockfiles")

FOLLOWED = (
    *_ALONE,
    _PUBLISHED_AT_THE_END,
    *_AFTER_FIRST_STEPS,
    *_IN_A_CLOUD,
    *_GUIDES_ALONE,
    *_GUIDES_AFTER_FIRST_STEPS,
)


@pytest.fixture(scope="module")
def clouds_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """A ``clouds.yaml`` with a cloud that has Murano."""
    folder = tmp_path_factory.mktemp("cloud")
    with cloud.running(folder) as running:
        file = folder / "clouds.yaml"
        entry = {"auth": running.identity.credentials("one"), "identity_api_version": 3}
        file.write_text(yaml.safe_dump({"clouds": {"mycloud": entry}}))
        yield file


def _follow_first_steps(reader: Reader) -> None:
    # The first step, the demo, leaves nothing but the environment, which is there.
    steps = page.blocks(FIRST_STEPS, "2. Start a service", "4. See which versions fit together")
    reader.follow(FIRST_STEPS, steps)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", _ALONE)
def test_a_page_holds(tmp_path: pathlib.Path, name: str) -> None:
    path = clone.SOURCE / f"{name}.rst"
    with clone.reading(tmp_path, {}) as reader:
        reader.follow(path, page.blocks(path))


@pytest.mark.timeout(400)
def test_only_the_end_of_a_page_needs_the_first_steps(tmp_path: pathlib.Path) -> None:
    path = clone.SOURCE / f"{_PUBLISHED_AT_THE_END}.rst"
    with clone.reading(tmp_path, {}) as reader:
        reader.follow(path, page.blocks(path, end="5. Publish"))
        _follow_first_steps(reader)
        reader.follow(path, page.blocks(path, first="5. Publish"))


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("name", "blocks"),
    [
        *((name, page.blocks) for name in _AFTER_FIRST_STEPS),
        *((name, clone.guide) for name in _GUIDES_AFTER_FIRST_STEPS),
    ],
)
def test_a_page_holds_after_the_first_steps(
    tmp_path: pathlib.Path, name: str, blocks: Callable[[pathlib.Path], list[page.Block]]
) -> None:
    path = clone.SOURCE / f"{name}.rst"
    with clone.reading(tmp_path, {}) as reader:
        _follow_first_steps(reader)
        reader.follow(path, blocks(path))


@pytest.mark.parametrize("name", _GUIDES_ALONE)
def test_a_guide_holds(tmp_path: pathlib.Path, name: str) -> None:
    path = clone.SOURCE / f"{name}.rst"
    with clone.reading(tmp_path, clone.INSTALLED) as reader:
        reader.follow(path, clone.guide(path))


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", _IN_A_CLOUD)
def test_a_page_holds_in_a_cloud(
    tmp_path: pathlib.Path, clouds_file: pathlib.Path, name: str
) -> None:
    path = clone.SOURCE / f"{name}.rst"
    with clone.reading(tmp_path, {"OS_CLIENT_CONFIG_FILE": str(clouds_file)}) as reader:
        reader.follow(path, page.blocks(path))
