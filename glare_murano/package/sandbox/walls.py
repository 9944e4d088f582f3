# SPDX-License-Identifier: Apache-2.0

"""Restrict which files, ports and processes a child process can reach.

Landlock, which is a part of the Linux kernel, enforces the restrictions, also for ``root``. What it
can restrict depends on the kernel: files since Linux 5.13, connections by TCP since 6.7, and
signals since 6.12. Without Landlock, this module restricts nothing.

A restricted process can still use the files that were open before. No kernel before ABI 10 of
Landlock restricts UDP. What Landlock cannot restrict, such as ``chmod``, ``system_calls`` refuses.
"""

import contextlib
import functools
import os
import pathlib
import pwd
import sys
from collections.abc import Iterable, Iterator

import landlockpy
from landlockpy import AccessFS, AccessNet, Scope

_READ = AccessFS.READ_FILE | AccessFS.READ_DIR
# What a child can do in its own directory. It cannot make devices or sockets there, and cannot
# execute programs.
_OWN = (
    _READ
    | AccessFS.WRITE_FILE
    | AccessFS.TRUNCATE
    | AccessFS.REFER
    | AccessFS.MAKE_REG
    | AccessFS.MAKE_DIR
    | AccessFS.MAKE_SYM
    | AccessFS.REMOVE_FILE
    | AccessFS.REMOVE_DIR
)
# Besides Python's own directories, modules read these files when they are imported or called.
_SYSTEM = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/share/zoneinfo",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
    "/proc/self",
)


def abi() -> int:
    """Return the version of Landlock's interface; 0 if this process cannot use Landlock.

    Linux 5.13 has version 1, Linux 6.7 version 4, and Linux 6.12 version 6.
    """
    # The filter of system calls of a container may refuse the query.
    with contextlib.suppress(OSError):
        return landlockpy.abi_version()
    return 0


def prepare() -> None:
    """Do in the warm process what each child would have to do again.

    The list of directories is kept, so this is called after all imports. A child that made the list
    would also copy the memory pages of most modules.
    """
    # Load the C library that finds the version.
    abi()
    _directories_of_modules()


def restrict(directory: str, readable: Iterable[str], ports: Iterable[int]) -> None:
    """Restrict this process, and the processes that it will start, for ever.

    This process can read the files of Python, of its modules and of the given paths, and can write
    into one directory. It can connect by TCP only to the given ports, and cannot accept
    connections. It can send signals to itself and its own processes only. Without Landlock, nothing
    is restricted.

    :param directory: the directory into which this process can write.
    :param readable: paths of further files and directories. Missing ones are left out.
    :param ports: ports of any host.
    :raises OSError: if the kernel has Landlock, but the restriction fails.
    """
    if not abi():
        return
    with landlockpy.Ruleset(scoped=Scope.SIGNAL | Scope.ABSTRACT_UNIX_SOCKET) as rules:
        for path in {*_SYSTEM, *_directories_of_modules(), *readable}:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                rules.allow_path(path, _READ if os.path.isdir(path) else AccessFS.READ_FILE)
        rules.allow_path(os.devnull, AccessFS.READ_FILE | AccessFS.WRITE_FILE)
        rules.allow_path(directory, _OWN)
        for port in ports:
            rules.allow_port(port, AccessNet.CONNECT_TCP)
        rules.restrict()


@functools.cache
def _directories_of_modules() -> list[str]:
    """Return the directories and ZIP files of Python's modules, without those inside another one.

    The user's home directory and the directories around it are left out, such as ``/``, which is
    the working directory of many services. Missing paths and relative ones are left out as well.
    """
    home = _home()
    found = {
        path.resolve() for path in map(pathlib.Path, _paths_of_modules()) if path.is_absolute()
    }
    # An entry of ``sys.path`` may be inside of a ZIP file, or of a directory that is closed to this
    # user.
    existing = {path for path in found if os.access(path, os.F_OK)}
    usable = {path for path in existing if not (home and home.is_relative_to(path))}
    return [str(path) for path in usable if usable.isdisjoint(path.parents)]


def _home() -> pathlib.Path | None:
    """Return the user's home directory. A child has another directory in ``HOME``."""
    # A user that has only a number has no home directory.
    with contextlib.suppress(KeyError):
        return pathlib.Path(pwd.getpwuid(os.getuid()).pw_dir).resolve()
    return None


def _paths_of_modules() -> Iterator[str]:
    """Yield the paths from which Python imports modules."""
    yield from sys.path
    # The packages of an editable installation can be outside of these directories.
    for name, module in [*sys.modules.items()]:
        if "." not in name:
            yield from getattr(module, "__path__", ())
