# SPDX-License-Identifier: Apache-2.0

"""Somebody who reads pages in a clone of this project."""

import contextlib
import os
import pathlib
import sys
from collections.abc import Iterator, Mapping

from tests import processes
from tests.pages import page, terminal
from tests.pages.reader import Reader

SOURCE = processes.ROOT / "doc" / "source"

# Somebody who follows a guide has the commands installed.
INSTALLED = {"PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}

# What pip makes in a clone.
_BUILT = ("AUTHORS", "ChangeLog", "build", "dist")


@contextlib.contextmanager
def reading(
    folder: pathlib.Path, variables: Mapping[str, str], names: Mapping[str, str] | None = None
) -> Iterator[Reader]:
    """Yield somebody in a clone of this project.

    :param variables: more variables of the terminal.
    :param names: the names of this host for those in the page; by default, those of development
        servers.
    """
    clone = folder / "clone"
    clone.mkdir()
    # What a page writes must not stay, and everything else is the same.
    for entry in processes.ROOT.iterdir():
        if entry.name not in _BUILT and entry.suffix != ".egg-info":
            (clone / entry.name).symlink_to(entry)
    kept = {key: os.environ[key] for key in ("PATH", "LANG", "NO_PROXY") if key in os.environ}
    # In a pipe, Python would write its output after its errors.
    ours = {"HOME": str(folder), "PYTHONUNBUFFERED": "1"}
    with terminal.opened(clone, {**kept, **ours, **variables}) as opened:
        yield Reader(opened, clone, names or _names_of_servers(folder))


def _names_of_servers(folder: pathlib.Path) -> dict[str, str]:
    port, second, third = (processes.free_port() for _ in range(3))
    return {
        "--port 8000": f"--port {third}",
        "127.0.0.1:8000": f"127.0.0.1:{third}",
        "--state-dir /tmp/glare": f"--state-dir {folder}/glare --port {port}",
        "/tmp/glare": f"{folder}/glare",
        "/tmp/site": f"{folder}/site",
        "--port 9595": f"--port {second}",
        "127.0.0.1:9494": f"127.0.0.1:{port}",
        "127.0.0.1:9595": f"127.0.0.1:{second}",
    }


def guide(path: pathlib.Path) -> list[page.Block]:
    """Return the commands of a guide, and its files. What else it shows is an excerpt."""
    return [block for block in page.blocks(path) if block.caption or block.language == "console"]
