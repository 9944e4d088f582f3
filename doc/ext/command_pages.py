# SPDX-License-Identifier: Apache-2.0

"""Writes a page for each ``openstack`` command of ``setup.cfg``, below ``reference/cli/commands``.

Each page has only a directive of cliff, which reads the help of the command. Git ignores the
pages, so that nothing needs to be changed here for a new command.
"""

import configparser
import pathlib
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
GROUP = "openstack.murano_packages.v1"

_PAGE = """.. autoprogram-cliff:: {group}
   :application: openstack
   :command: {command}
"""


def commands() -> list[str]:
    """Return all commands of ``setup.cfg``, as users type them behind ``openstack``."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lines = setup["entry_points"][GROUP].split("\n")
    names = (line.partition("=")[0].strip() for line in lines)
    return [name.replace("_", " ") for name in names if name]


def write(folder: pathlib.Path) -> None:
    """Write the pages; those of commands that are gone are removed."""
    folder.mkdir(exist_ok=True)
    wanted = {
        f"{command.replace(' ', '-')}.rst": _PAGE.format(group=GROUP, command=command)
        for command in commands()
    }
    for page in folder.glob("*.rst"):
        if page.name not in wanted:
            page.unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text)


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before Sphinx looks for pages."""
    app.connect(
        "builder-inited",
        lambda app: write(pathlib.Path(app.srcdir, "reference", "cli", "commands")),
    )
    return {"parallel_read_safe": True}
