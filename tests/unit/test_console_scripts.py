# SPDX-License-Identifier: Apache-2.0

"""Console scripts without the extra that they need."""

import configparser
import pathlib
import subprocess
import sys

import pytest

SETUP = pathlib.Path(__file__).parents[2] / "setup.cfg"
RUN = """
import importlib, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {module!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
sys.exit(importlib.import_module({entry_module!r}).{function}())
"""


@pytest.mark.parametrize(
    ("script", "module", "extra"),
    [
        ("murano-glare-engine", "murano", "engine"),
        ("glare-murano-manage", "glare", "glare"),
        ("glare-murano-server", "glare", "glare"),
    ],
)
def test_a_script_names_the_extra_to_install(script: str, module: str, extra: str) -> None:
    setup = configparser.ConfigParser()
    setup.read(SETUP)
    scripts = dict(
        line.split(" = ") for line in setup["entry_points"]["console_scripts"].split("\n") if line
    )
    entry_module, function = scripts[script].split(":")
    code = RUN.format(module=module, entry_module=entry_module, function=function)

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"{script}: No module named '{module}")
    assert ended.stderr.endswith(f"pip install 'glare-murano[{extra}]'\n")
    assert len(ended.stderr.splitlines()) == 1
