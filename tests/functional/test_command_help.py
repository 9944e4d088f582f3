# SPDX-License-Identifier: Apache-2.0

"""The help of the commands, and the examples of all pages, which the commands can parse."""

import importlib
import importlib.util
import inspect
import os
import pathlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from cliff.command import Command

from tests.functional.openstack_command import OpenStack
from tests.processes import ROOT

# A whole line, such as "    $ openstack --os-cloud there murano package list".
_EXAMPLE = re.compile(
    r"^ +(?:\$ )?(?:\S+/)?openstack(?: --os-cloud \S+)? (murano .+)$", re.MULTILINE
)


def _command_pages() -> Any:
    """The extension of Sphinx, which is in no package."""
    path = ROOT / "doc" / "ext" / "command_pages.py"
    spec = importlib.util.spec_from_file_location("command_pages", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _classes() -> Iterator[tuple[str, type[Command]]]:
    lines = (ROOT / "setup.cfg").read_text().splitlines()
    for line in lines:
        if found := re.match(r"    (murano_\w+) = (loader\.commands\.\w+):(\w+)$", line):
            module = importlib.import_module(found[2])
            yield found[1].replace("_", " "), getattr(module, found[3])


CLASSES = dict(_classes())


def _examples(text: str) -> list[list[str]]:
    """The arguments of all examples in a text, from ``murano`` on."""
    found = _EXAMPLE.findall(re.sub(r"\\\n\s*(?:> *)?", "", text))
    return [shlex.split(re.split(" (?:>|>>|<|[|]) ", example)[0]) for example in found]


def _parse(words: list[str]) -> None:
    """Parse an example by the command with the longest name that fits."""
    for count in range(len(words), 1, -1):
        name = " ".join(words[:count])
        if name in CLASSES:
            CLASSES[name](None, None).get_parser(name).parse_args(words[count:])  # type: ignore[arg-type]
            return
    # A word for several commands, and their help.
    named = " ".join(word for word in words if word != "--help")
    assert any(name.startswith(f"{named} ") for name in CLASSES), words


def test_every_command_has_a_page_and_pages_of_others_are_removed(tmp_path: pathlib.Path) -> None:
    (tmp_path / "murano-gone.rst").touch()
    _command_pages().write(tmp_path)
    assert {page.stem.replace("-", " ") for page in tmp_path.iterdir()} == set(CLASSES)
    for page in tmp_path.iterdir():
        assert f":command: {page.stem.replace('-', ' ')}\n" in page.read_text()


@pytest.mark.parametrize("name", CLASSES)
def test_the_help_of_a_command_has_an_example_of_it(name: str) -> None:
    examples = _examples(inspect.getdoc(CLASSES[name]) or "")
    assert any(" ".join(words).startswith(name) for words in examples)
    for words in examples:
        _parse(words)


@pytest.mark.parametrize(
    "path",
    [
        str(path.relative_to(ROOT))
        for path in (ROOT / "README.rst", *sorted((ROOT / "doc" / "source").rglob("*.rst")))
        if _examples(path.read_text())
    ],
)
def test_a_page_has_examples_that_the_commands_can_parse(path: str) -> None:
    for words in _examples((ROOT / path).read_text()):
        _parse(words)


def test_bash_completes_commands_and_options(tmp_path: pathlib.Path) -> None:
    openstack = pathlib.Path(sys.executable).with_name("openstack")
    script = tmp_path / "openstack.bash"
    with script.open("w") as file:
        subprocess.run([openstack, "complete"], stdout=file, check=True, cwd=ROOT)

    def completed(*words: str) -> list[str]:
        # The function is in Debian's package bash-completion, and splits the line at spaces.
        line = f"""
            _get_comp_words_by_ref() {{ words=({shlex.join(words)}); cur="${{words[-1]}}"; }}
            source {script}; _openstack; printf "%s\\n" "${{COMPREPLY[@]}}"
        """
        shell = ["bash", "-c", line]
        environment = {**os.environ, "HOME": str(tmp_path)}
        found = subprocess.run(shell, capture_output=True, text=True, check=True, env=environment)
        return found.stdout.split()

    assert {"publish", "show", "yank"} <= set(completed("openstack", "murano", "package", ""))
    assert "--closure" in completed("openstack", "murano", "package", "save", "--")


@pytest.mark.parametrize(
    ("command", "missing"),
    [("catalog render", "<directory>"), ("environment pins update", "<environment>")],
)
def test_only_required_arguments_are_reported_as_missing(
    openstack: OpenStack, command: str, missing: str
) -> None:
    refused = openstack.fails(*command.split(), code=2)
    assert refused.err.endswith(f"the following arguments are required: {missing}\n")
