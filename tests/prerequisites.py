# SPDX-License-Identifier: Apache-2.0

"""Programs, services and files that tests need on this host.

A missing one fails the test with one line, which says how to get it. ``python -m
tests.prerequisites`` prints that line for each service and program.
"""

import functools
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import sqlalchemy

CACHE = pathlib.Path(__file__).parents[1] / ".cache"
MURANO = CACHE / "murano-16.0.0"
CORE_LIBRARY = MURANO / "meta"
SWIFT = CACHE / "swift" / "bin"
# Another release of Glance is tried by another environment.
GLANCE = pathlib.Path(os.environ.get("GLANCE_BIN") or CACHE / "glance" / "bin")
DASHBOARD = CACHE / "dashboard" / "bin"
HEAT = CACHE / "heat" / "bin"
DEVSTACK = CACHE / "devstack"
AXE = CACHE / "axe-core" / "package" / "axe.min.js"

# Of the databases that every server has.
_MARIADB = "mysql+pymysql://root@127.0.0.1/mysql"
_POSTGRESQL = "postgresql+psycopg2://postgres@127.0.0.1/postgres"

_SETTINGS = "doc/source/maintainers/contributing.rst describes its settings"

_PACKAGES = "bindep.txt lists all packages"

# Programs of the distribution -> their packages. bindep.txt lists these packages and those of the
# services.
PROGRAMS = {"curl": "curl", "git": "git", "mariadb": "mariadb-client"}


def core_library() -> pathlib.Path:
    """Return the directory of Murano's core library."""
    if not (CORE_LIBRARY / "io.murano").is_dir():
        _fail(f"Murano's core library is not in {CORE_LIBRARY}: run 'make core-library'")
    return CORE_LIBRARY


def swift() -> pathlib.Path:
    """Return the directory of Swift's and Keystone's programs."""
    if not (SWIFT / "swift-proxy-server").is_file():
        _fail(f"Swift is not in {SWIFT}: run 'make swift'")
    return SWIFT


def glance() -> pathlib.Path:
    """Return the directory of Glance's programs."""
    if not (GLANCE / "glance-manage").is_file():
        _fail(f"Glance is not in {GLANCE}: run 'make glance'")
    return GLANCE


def dashboard() -> pathlib.Path:
    """Return the directory of Horizon's programs."""
    if not (DASHBOARD / "python").is_file():
        _fail(f"murano-dashboard is not in {DASHBOARD}: run 'make dashboard'")
    return DASHBOARD


def heat() -> pathlib.Path:
    """Return the directory of Heat's programs."""
    if not (HEAT / "heat-manage").is_file():
        _fail(f"Heat is not in {HEAT}: run 'make heat'")
    return HEAT


def devstack() -> pathlib.Path:
    """Return the directory of DevStack's repository."""
    if not (DEVSTACK / "stack.sh").is_file():
        _fail(f"DevStack is not in {DEVSTACK}: run 'make devstack'")
    return DEVSTACK


def axe() -> pathlib.Path:
    """Return the script of axe-core, which checks pages."""
    if not AXE.is_file():
        _fail(f"axe-core is not in {AXE}: run 'make browser'")
    return AXE


def program(name: str, package: str) -> str:
    """Return the path of a program.

    :param package: the distribution's package that installs it.
    """
    path = shutil.which(name) or shutil.which(name, path=str(pathlib.Path(sys.executable).parent))
    if path is None:
        _fail(f"the program {name} is missing: install {package} ({_PACKAGES})")
    return str(path)


def mariadb() -> "sqlalchemy.engine.Engine":
    """Return an engine that can create databases in MariaDB."""
    return _database("MariaDB", _MARIADB, "mariadb-server")


def postgresql() -> "sqlalchemy.engine.Engine":
    """Return an engine that can create databases in PostgreSQL."""
    return _database("PostgreSQL", _POSTGRESQL, "postgresql")


def rabbitmqctl(*arguments: str) -> str:
    """Run a command of RabbitMQ, and return its output."""
    command = [program("rabbitmqctl", "rabbitmq-server"), "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        error = " ".join((done.stderr or done.stdout).split())
        _fail(
            f"'{' '.join(command)}' failed: start rabbitmq-server, and run the tests as root "
            f"({error[:200]})"
        )
    return done.stdout


def rabbitmq() -> None:
    """Check that RabbitMQ answers."""
    rabbitmqctl("list_vhosts")


def _database(name: str, url: str, package: str) -> "sqlalchemy.engine.Engine":
    # Not for the tests that run without it.
    import sqlalchemy

    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    problem = ""
    try:
        engine.connect().close()
    except sqlalchemy.exc.OperationalError as error:
        problem = " ".join(str(error.orig).split())
    # Not in the handler, or pytest would print that exception as well.
    if problem:
        _fail(
            f"no connection to {name}: install and start {package} ({_PACKAGES}); {_SETTINGS} "
            f"({problem})"
        )
    return engine


def _fail(reason: str) -> None:
    pytest.fail(reason, pytrace=False)


def _reason(check: Callable[[], object]) -> str:
    """Return the line with which a check fails, or an empty string."""
    try:
        check()
    except pytest.fail.Exception as failure:
        return str(failure)
    return ""


def main() -> str:
    """Return one line for each missing service, program and file."""
    checks = [functools.partial(program, *names) for names in PROGRAMS.items()]
    services = (mariadb, postgresql, rabbitmq, swift, glance, dashboard, heat)
    return missing(*checks, *services, core_library)


def missing(*checks: Callable[[], object]) -> str:
    """Return a line for each check that fails."""
    return "\n".join(filter(None, map(_reason, checks)))


if __name__ == "__main__":
    sys.exit(main() or None)
