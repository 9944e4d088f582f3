# SPDX-License-Identifier: Apache-2.0

"""Check a lock file for missing, replaced, yanked and outdated releases.

Nothing is downloaded, and the file is not changed.
"""

import collections
import dataclasses
from collections.abc import Iterable, Sequence

from glare_murano import resolver
from glare_murano.package import Version
from glare_murano.resolver import PackageVersion
from glare_murano.wire import Release
from loader import errors
from loader.catalogs.base import Catalog
from loader.lockfiles.lock import Lock
from loader.resolution import as_catalogs


@dataclasses.dataclass(frozen=True)
class CheckedRelease:
    """A locked release, compared with the catalogues.

    :param release: the release in the lock.
    :param fault: why the archive cannot be fetched; empty if it can be fetched.
    :param yanked: why the release was yanked; empty if it was not.
    :param newer: the newest version of the package that was not yanked, even if no required range
        contains this version; None if this version is not newer than the locked one.
    """

    release: Release
    fault: str
    yanked: str
    newer: Version | None


def check(lock: Lock, catalogs: Catalog | Iterable[Catalog]) -> list[CheckedRelease]:
    """Compare all releases of a lock with catalogues.

    >>> [(str(c.release), c.fault, c.newer) for c in check(lock, DirectoryCatalog("packages"))]
    [('org.db 1.2.0', '', Version('2.0.0'))]

    :returns: one result for each release, in the order of the lock.
    :raises CatalogError: if a catalogue cannot be read.
    """
    fqns = list(dict.fromkeys(release.fqn for release in lock.releases))
    found: dict[PackageVersion, list[Release]] = collections.defaultdict(list)
    for catalog in as_catalogs(catalogs):
        for release in catalog.releases_of(fqns):
            found[release.key].append(release)
    newest = resolver.newest_first
    offered = {
        fqn: newest(
            key.version
            for key, releases in found.items()
            if key.fqn == fqn and not all(r.yanked for r in releases)
        )
        for fqn in fqns
    }
    return [_check(release, found[release.key], offered[release.fqn]) for release in lock.releases]


def require_available(checked: Sequence[CheckedRelease]) -> None:
    """Check that all archives of a lock can be fetched.

    :param checked: the results of ``check``.
    :raises LockError: if some archives cannot be fetched.
    """
    if faulty := [c for c in checked if c.fault]:
        names = errors.listed(f"{c.release} ({c.fault})" for c in faulty)
        raise errors.LockError(
            f"{len(faulty)} of {len(checked)} locked releases cannot be fetched: {names}; publish "
            f"the locked archives again, or update these packages in the lock file"
        )


def _check(
    locked: Release, candidates: Sequence[Release], offered: Sequence[Version]
) -> CheckedRelease:
    fault, yanked = "not found", ""
    for release in candidates:
        if release.digest == locked.digest:
            fault, yanked = "", release.yanked
            break
        fault = f"another archive, {release.digest or 'without digest'}"
    is_newer = offered and offered[0].precedence_key > locked.version.precedence_key
    return CheckedRelease(locked, fault, yanked, offered[0] if is_newer else None)
