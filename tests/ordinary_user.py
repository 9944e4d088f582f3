# SPDX-License-Identifier: Apache-2.0

"""Run pytest as an ordinary user: ``python -m tests.ordinary_user ARGUMENT...``.

``root`` may read the memory of other processes and the files of other users, so tests of walls
between processes need a user without such rights. If this program runs as ``root``, it runs pytest
as another user, who has only a number, from a copy of this checkout, its environment and Python.
"""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping

from tests import processes

# A number that no user of a host has.
_USER = 64321
# What the tests need besides the files that git knows.
_CORE_LIBRARY = ".cache/murano-16.0.0/meta"
# Large parts of Python that the tests do not need.
_LEFT_OUT = shutil.ignore_patterns("site-packages", "test", "idlelib", "__pycache__")


def main(arguments: list[str]) -> int:
    """Run pytest, and return its exit status.

    :param arguments: the arguments of pytest.
    """
    command = ["-m", "pytest", "-p", "no:cacheprovider", *arguments]
    if os.geteuid() != 0:
        return subprocess.run([sys.executable, *command], cwd=processes.ROOT).returncode
    with _copies() as folder:
        as_user = [f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups", "--no-new-privs"]
        python = folder / "environment" / "bin" / "python"
        return subprocess.run(
            ["setpriv", *as_user, str(python), *command],
            cwd=folder / "checkout",
            env={**os.environ, **_environment(folder)},
        ).returncode


def _environment(folder: pathlib.Path) -> Mapping[str, str]:
    """Return the environment variables of the other user."""
    (folder / "home").mkdir()
    (folder / "tmp").mkdir()
    return {
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "PYTHONPATH": str(folder / "checkout"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": str(folder / "python" / "lib"),
        "PATH": os.pathsep.join([str(folder / "environment" / "bin"), os.environ["PATH"]]),
    }


@contextlib.contextmanager
def _copies() -> Iterator[pathlib.Path]:
    """Copy Python, its environment and this checkout; yield the directory of the copies."""
    with tempfile.TemporaryDirectory(prefix="ordinary-user-") as name:
        folder = pathlib.Path(name)
        _copy_python(folder / "python")
        _copy_environment(folder / "environment", folder / "python")
        _copy_checkout(folder / "checkout")
        for path in (folder, *folder.rglob("*")):
            os.chown(path, _USER, _USER, follow_symlinks=False)
        yield folder


def _copy_python(target: pathlib.Path) -> None:
    base = pathlib.Path(sys.base_prefix)
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (target / "bin").mkdir(parents=True)
    shutil.copy(base / "bin" / name, target / "bin" / name)
    shutil.copytree(base / "lib" / name, target / "lib" / name, symlinks=True, ignore=_LEFT_OUT)
    for library in (base / "lib").glob("libpython*.so*"):
        shutil.copy(library, target / "lib" / library.name)


def _copy_environment(target: pathlib.Path, python: pathlib.Path) -> None:
    shutil.copytree(sys.prefix, target, symlinks=True)
    configuration = target / "pyvenv.cfg"
    text = re.sub("(?m)^home = .*", f"home = {python / 'bin'}", configuration.read_text())
    configuration.write_text(text)
    executable = target / "bin" / "python"
    executable.unlink()
    executable.symlink_to(next((python / "bin").iterdir()))


def _copy_checkout(target: pathlib.Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=processes.ROOT, check=True, capture_output=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(processes.ROOT / name, path, follow_symlinks=False)
    shutil.copytree(processes.ROOT / _CORE_LIBRARY, target / _CORE_LIBRARY)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
