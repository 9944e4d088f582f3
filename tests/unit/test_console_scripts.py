# SPDX-License-Identifier: Apache-2.0

"""Console scripts without the extra that they need."""

import configparser
import pathlib
import re
import subprocess
import sys

import pytest

SETUP = pathlib.Path(__file__).parents[2] / "setup.cfg"
RUN = """
import importlib, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {module!r}:
            raise {error}

sys.meta_path.insert(0, Blocked())
sys.exit(importlib.import_module({entry_module!r}).{function}())
"""


@pytest.mark.parametrize(
    ("script", "module", "remedy"),
    [
        ("murano-glare-engine", "murano", "pip install -c constraints.txt '.[engine]'"),
        ("glare-murano-glance-status", "glance", "pip install '.[glance]' with Glance's own pip"),
        ("glare-murano-manage", "glare", "pip install -c constraints.txt '.[glare]'"),
        ("glare-murano-server", "glare", "pip install -c constraints.txt '.[glare]'"),
        ("glare-murano-status", "glare", "pip install -c constraints.txt '.[glare]'"),
        ("murano-glare-status", "murano", "pip install -c constraints.txt '.[engine]'"),
    ],
)
def test_a_script_names_the_extra_to_install(script: str, module: str, remedy: str) -> None:
    ended = _run(script, module, 'ModuleNotFoundError(f"No module named {name!r}", name=name)')

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"{script}: No module named '{module}")
    assert ended.stderr.endswith(f"; in a clone of glare-murano, run {remedy}\n")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("script", "module"),
    [
        ("glare-murano-manage", "glare"),
        ("glare-murano-server", "glare"),
        ("glare-murano-status", "glare"),
        ("murano-glare-test-runner", "eventlet"),
    ],
)
def test_ctrl_c_during_the_imports_leaves_no_traceback(script: str, module: str) -> None:
    ended = _run(script, module, "KeyboardInterrupt", "org.example.wiki", "--path", ".")

    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def _run(script: str, module: str, error: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script in which the import of a module raises an error.

    :param error: the expression of the error, in which ``name`` is the name of the module.
    """
    setup = configparser.ConfigParser()
    setup.read(SETUP)
    scripts = dict(
        line.split(" = ") for line in setup["entry_points"]["console_scripts"].split("\n") if line
    )
    entry_module, function = scripts[script].split(":")
    code = RUN.format(module=module, error=error, entry_module=entry_module, function=function)
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_page_of_programs_lists_every_script() -> None:
    setup = configparser.ConfigParser()
    setup.read(SETUP)
    scripts = re.findall(r"^([\w-]+) =", setup["entry_points"]["console_scripts"], re.MULTILINE)
    page = SETUP.parent / "doc" / "source" / "reference" / "programs" / "index.rst"
    rows = re.findall(r"^``(.+?)`` +``(\w+)``", page.read_text(), re.MULTILINE)

    assert {program for program, _ in rows} == {"openstack murano", *scripts}
    assert {extra for _, extra in rows} == set(setup["extras"])
