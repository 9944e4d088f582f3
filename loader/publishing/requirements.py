# SPDX-License-Identifier: Apache-2.0

"""Check whether the service to which packages are published satisfies their requirements.

The service checks requirements as well, when it activates or publishes a package. Its operator
decides whether an unsatisfied requirement is refused. This module follows the operator's choice,
before anything is uploaded.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from glare_murano import wire
from glare_murano.package import InvalidName, Version, VersionSpec
from glare_murano.package.manifest import CORE_LIBRARY, PROVIDED_HINT, check_fqn
from glare_murano.wire import Query
from loader import errors, resolution
from loader.authoring.local_packages import LocalPackage
from loader.catalogs.base import Catalog
from loader.catalogs.stored_package import StoredPackage, Visibility
from loader.publishing import publication
from loader.publishing.target import Target

LOG = logging.getLogger(__name__)

# A function that is called with a sentence about a requirement that the service does not enforce.
Warn = Callable[[str], object]

# The visibility of a package -> where its required packages have to be, as a part of a message.
_PLACES: Mapping[Visibility, str] = {"private": "in", "public": "among the public packages of"}
_CORE_LIBRARY_REMEDY = (
    f"{CORE_LIBRARY} is Murano's core library, which every package requires: an administrator "
    f"publishes it from Murano's sources, such as by \"openstack murano package publish --public "
    f'--as-version 0.16.0 murano-16.0.0/meta/{CORE_LIBRARY}"'
)


def find(
    packages: Iterable[LocalPackage],
    target: Target,
    catalog: Catalog,
    available: Iterable[LocalPackage],
    visibility: Visibility,
    warn: Warn = LOG.warning,
) -> list[LocalPackage]:
    """Find the available packages that have to be published as well.

    The packages to publish, the packages in the target, and the extension plug-ins that the target
    lists have to satisfy all requirements. If none of them satisfies a requirement, the newest
    available package in the required range is returned. Then the requirements of this package are
    checked as well. ``satisfies`` has the rules for private and yanked packages.

    :param packages: the packages to publish.
    :param catalog: a catalogue of the target, with the releases that the user's project can load.
    :param available: packages that may be published as well.
    :param visibility: the visibility that the packages get.
    :param warn: a function that is called for each requirement that nothing satisfies, if the
        target does not enforce it.
    :raises PublishError: if nothing satisfies some requirements, and the target enforces them; the
        message has all of them.
    """
    offered, present = publication.by_name(available), publication.by_name(packages)
    found: list[LocalPackage] = []
    problems: list[tuple[str, bool]] = []
    waiting = list(packages)
    while waiting:
        wanted = [(p, fqn, spec) for p in waiting for fqn, spec in p.requirements.items()]
        # The search includes the packages themselves, since ``publication.plan`` compares them.
        known = target.named({fqn for _, fqn, _ in wanted} | {p.fqn for p in waiting})
        waiting = []
        for package, fqn, spec in wanted:
            stored = [each for each in known[fqn] if each.status == "active"]
            newest = spec.select(offered.get(fqn, ()))
            if spec.select(present.get(fqn, ())) or any(
                satisfies(each, spec, visibility) for each in stored
            ):
                continue
            if newest is not None:
                waiting.append(offered[fqn][newest])
                present.setdefault(fqn, {})[newest] = offered[fqn][newest]
            elif not is_external(catalog, fqn, spec):
                versions = {
                    **_marked(stored, visibility),
                    **dict.fromkeys(present.get(fqn, ()), ""),
                }
                problem = (
                    f"{package.place}: {package} requires {fqn} in the range {spec}, which was "
                    f"not found {_PLACES[visibility]} {target.repository.name} (available: "
                    f"{_listed(versions)}); {remedy(fqn, versions)}"
                )
                problems.append((problem, any(satisfies(s, spec, "private") for s in stored)))
        found += waiting
    if problems:
        _decide(problems, target.repository.checks(), visibility, warn)
    return found


def _decide(
    problems: Iterable[tuple[str, bool]],
    checks: Mapping[str, str],
    visibility: Visibility,
    warn: Warn,
) -> None:
    """Raise an error for unsatisfied requirements that the service refuses; warn of the others.

    :param problems: a pair for each unsatisfied requirement: a message, and whether a package
        satisfies the requirement, but is not public.
    :param checks: the service's checks, as ``Repository.checks`` returns them.
    :param visibility: the visibility of the requiring packages.
    :param warn: a function that is called with each message that is only a warning.
    :raises PublishError: if the service refuses some requirements; the message has all of them.
    """
    refused: list[str] = []
    accepted: list[str] = []
    for problem, is_hidden in problems:
        is_refused = is_enforced(checks, visibility, is_hidden=is_hidden)
        (refused if is_refused else accepted).append(problem)
    for problem in _with_one_remedy(accepted):
        warn(problem)
    if refused:
        raise publication.PublishError(_with_one_remedy(refused))


def is_enforced(checks: Mapping[str, str], visibility: Visibility, *, is_hidden: bool) -> bool:
    """Return whether the service refuses a package with an unsatisfied requirement.

    :param checks: the service's checks, as ``Repository.checks`` returns them.
    :param visibility: the visibility of the requiring package.
    :param is_hidden: whether a package satisfies the requirement, but is not public.
    """
    names = ["check_requirements"] * (not is_hidden)
    names += ["check_public_requirements"] * (visibility == "public")
    return any(checks[name] == wire.ENFORCED for name in names)


def satisfies(stored: StoredPackage, spec: VersionSpec, visibility: Visibility) -> bool:
    """Return whether a stored, active package satisfies a requirement.

    For a public package, only public packages satisfy a requirement. A yanked package satisfies
    only a range that is exactly its version.

    :param spec: the required range.
    :param visibility: the visibility of the requiring package.
    """
    if _is_hidden(stored, visibility):
        return False
    return spec.is_exactly(stored.version) if stored.yanked else spec.match(stored.version)


def is_external(catalog: Catalog, fqn: str, spec: VersionSpec) -> bool:
    """Return whether the service lists an extension plug-in that satisfies a requirement.

    :raises CatalogError: if the service does not answer.
    """
    return bool(resolution.resolve([catalog], Query(((fqn, spec),))).external)


def remedy(fqn: str, versions: Collection[Version]) -> str:
    """Return what to do about a requirement that is not satisfied.

    :param versions: the existing versions of the required package.
    """
    if fqn == CORE_LIBRARY and not versions:
        return _CORE_LIBRARY_REMEDY
    try:
        check_fqn(fqn)
    except InvalidName:
        # Only an extension plug-in may have hyphens in its name, and it cannot be published.
        return PROVIDED_HINT
    return "publish it as well" if versions else f"publish it as well; {PROVIDED_HINT}"


def _is_hidden(stored: StoredPackage, visibility: Visibility) -> bool:
    """Return whether a required package is not public, but the requiring package is public.

    :param stored: the required package.
    :param visibility: the visibility of the requiring package.
    """
    return visibility == "public" and stored.visibility != "public"


def _marked(stored: Iterable[StoredPackage], visibility: Visibility) -> dict[Version, str]:
    """Return a note for each version of a package, for messages.

    A note is empty, or says why the version may not satisfy a requirement, such as `` (yanked)``.

    :param stored: the versions of the package in the service.
    :param visibility: the visibility of the requiring package.
    """
    marked = {}
    # The owner's private package and the public one may have the same version.
    for package in sorted(stored, key=lambda package: package.visibility == "public"):
        reasons = {"yanked": package.yanked, "private": _is_hidden(package, visibility)}
        given = ", ".join(reason for reason, is_given in reasons.items() if is_given)
        marked[package.version] = f" ({given})" if given else ""
    return marked


def _listed(versions: Mapping[Version, str]) -> str:
    newest_first = sorted(versions, key=lambda version: version.precedence_key, reverse=True)
    return errors.listed(f"{version}{versions[version]}" for version in newest_first)


def _with_one_remedy(problems: Sequence[str]) -> list[str]:
    """Remove the long remedy for the core library from all problems except the last with it."""
    ending = f"; {_CORE_LIBRARY_REMEDY}"
    last = next((problem for problem in reversed(problems) if problem.endswith(ending)), None)
    return [each if each is last else each.removesuffix(ending) for each in problems]
