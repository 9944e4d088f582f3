# SPDX-License-Identifier: Apache-2.0

"""Check requests that publish, remove, hide or yank packages.

A request changes one or more packages. The checks treat these packages as they will be after the
request, and return the locks that the request needs; see ``package_locks``.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from glare_murano.package import Version
from glare_murano.resolver import PackageVersion
from glare_murano.selection import ACTIVE, DEACTIVATED, DRAFTED
from glare_murano.service.database import Database, PackageRecord
from glare_murano.service.package_locks import PackageLocks
from glare_murano.service.refusals import RefusedRequest, collected, conflict
from glare_murano.service.requirement_checks import Checked, FailedCheck, RequirementChecks
from glare_murano.service.settings import Settings

# The state after a deletion; the other states are those of ``selection``.
DELETED = "deleted"


class ReleaseChange(NamedTuple):
    """What a request changes in one package: the state, the visibility, the members or the yank.

    :ivar before: the package before the request.
    :ivar after: the package after the request.
    :ivar was: the state before the request: ``DRAFTED``, ``ACTIVE``, ``DEACTIVATED`` or
        ``DELETED``.
    :ivar becomes: the state after the request.
    :ivar keeping: the projects, besides the owner, that can see the package after the request. None
        if no project loses access to the package.
    :ivar is_yanked: whether the request yanks the package.
    """

    before: Checked
    after: Checked
    was: str
    becomes: str
    keeping: Collection[str] | None = None
    is_yanked: bool = False

    @property
    def is_added(self) -> bool:
        """Whether the package becomes active."""
        return self.becomes == ACTIVE != self.was

    @property
    def is_removed(self) -> bool:
        """Whether the package is active before the request, but not after it."""
        return self.was == ACTIVE != self.becomes

    @property
    def becomes_public(self) -> bool:
        """Whether the package becomes public.

        A draft does not count as public, even if its visibility is ``public``. For a package that
        becomes public, ``check`` looks for another public package with the same name and version.
        """
        is_public, was_public = (
            package.visibility == "public" and state in (ACTIVE, DEACTIVATED)
            for package, state in ((self.after, self.becomes), (self.before, self.was))
        )
        return is_public and not was_public

    @property
    def key(self) -> PackageVersion:
        """The FQN and the version of the package."""
        return PackageVersion(self.after.name, Version(self.after.version))


class CheckedChanges(NamedTuple):
    """The result of the checks of a request.

    :ivar locks: the locks that the request needs.
    :ivar problems: why the request is refused, in the order of the checks; empty if it is not
        refused.
    :ivar warning: what the caller should know although the request succeeds; may be empty.
    """

    locks: PackageLocks
    problems: Sequence[RefusedRequest]
    warning: str


def check(
    changes: Collection[ReleaseChange],
    database: Database,
    settings: Settings,
    overrides: bool,
    locked: Collection[str],
) -> CheckedChanges:
    """Check all changes of a request together, and return problems, a warning and needed locks.

    A problem is a requirement that would not be satisfied after the changes, a missing base class,
    or a second public package with the same name and version.

    :param changes: the changes of the request.
    :param overrides: whether the caller overrides the checks of requirements, and may do so.
    :param locked: the ids of the packages that the request has locked; empty before it takes locks.
    :raises RefusedRequest: if the checks take too long.
    """
    added = [change for change in changes if change.is_added]
    becoming_public = [change for change in changes if change.becomes_public]
    public = [
        change.after
        for change in changes
        if change.becomes_public or (change.is_added and change.after.visibility == "public")
    ]
    offered = [change.after for change in changes if change.is_added or change.becomes_public]
    checks = RequirementChecks(database, settings, overrides, offered, locked)
    problems: list[RefusedRequest] = []
    with collected(problems, FailedCheck):
        checks.check_activation([change.after for change in added])
    with collected(problems, FailedCheck):
        checks.check_publication(public)
    for change in changes:
        with collected(problems, FailedCheck):
            if change.is_removed:
                checks.check_removal(change.before)
            elif change.was == change.becomes == ACTIVE and change.keeping is not None:
                checks.check_hiding(change.before, change.keeping)
    namesakes = _find_namesakes(becoming_public, database)
    for change in becoming_public:
        if _is_taken(change, becoming_public, namesakes):
            problems.append(conflict(f"another {change.key} is public already"))
    yanked = (change.before for change in changes if change.is_yanked and change.was == ACTIVE)
    warning = "; ".join(filter(None, map(checks.warning_of_yank, yanked)))
    exclusive = {change.before.id for change in changes} | namesakes.keys()
    locks = PackageLocks(frozenset(exclusive), frozenset(checks.relied_on))
    return CheckedChanges(locks, problems, warning)


def _find_namesakes(
    changes: Collection[ReleaseChange], database: Database
) -> dict[str, PackageRecord]:
    """Return the packages that have the name and version of a changed package, by id.

    The changed packages are included. Drafts that have no archive are left out.
    """
    keys = {change.key for change in changes}
    found = database.find_namesakes(keys) if keys else ()
    # Some databases ignore case, and so return other names as well.
    return {record.id: record for record in found if record.key in keys}


def _is_taken(
    change: ReleaseChange,
    changes: Collection[ReleaseChange],
    namesakes: Mapping[str, PackageRecord],
) -> bool:
    """Return whether another package with the same name and version is or becomes public.

    :param change: the change that makes a package public.
    :param changes: all changes of the request that make packages public.
    :param namesakes: the packages with the name and version of a changed package, by id.
    """
    changed = {each.before.id: each.key for each in changes}
    public = {
        id_: record.key
        for id_, record in namesakes.items()
        if record.visibility == "public" and record.status != DRAFTED
    }
    others = {**public, **changed}
    del others[change.before.id]
    return change.key in others.values()
