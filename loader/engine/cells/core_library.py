# SPDX-License-Identifier: Apache-2.0

"""Keep Murano's core library in the warm process, with all its classes, for the cells.

To make these classes takes a twentieth of the processor time of a deployment of 20 packages, and is
the same in each task. Classes of other packages are not kept: their base classes belong to the
versions of other packages that a task uses.
"""

from typing import cast

from glare_murano.wire import Release
from loader.archive_indexes import Identity
from loader.engine.adapter import EnginePackage, EnginePackageLoader
from loader.formats.base import Package

_kept: dict[Identity, EnginePackage] = {}


class _NoTask:
    """The loader of a core library that no task uses yet."""

    def is_core_library(self, _: Package) -> bool:
        return True


def keep(identity: Identity, package: Package) -> None:
    """Make all classes of a core library, and keep them.

    :param identity: the identity of the package's archive.
    :param package: a core library that can be trusted.
    :raises Exception: if a class cannot be made; then nothing is kept.
    """
    release = Release(package.full_name, package.version, {}, frozenset(package.classes))
    made = EnginePackage(cast(EnginePackageLoader, _NoTask()), package, release)
    made.define_classes()
    _kept[identity] = made


def take(identity: Identity) -> EnginePackage | None:
    """Return what is kept for an archive, for one task; None if nothing is kept.

    A second task of the same cell gets None, since it must not change the objects of the first.
    """
    return _kept.pop(identity, None)
