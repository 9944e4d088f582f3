# SPDX-License-Identifier: Apache-2.0

"""Check the requirements of packages to publish: which are satisfied, available or missing."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from glare_murano.package import Version, VersionSpec
from glare_murano.package.manifest import CORE_LIBRARY
from glare_murano.wire import Query
from loader import errors, resolution
from loader.authoring.local_packages import LocalPackage
from loader.catalogs.base import Catalog
from loader.catalogs.stored_package import StoredPackage, Visibility
from loader.publishing import publication
from loader.publishing.target import Target

# Visibility of a package -> where the packages that it requires have to be, for messages.
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
) -> list[LocalPackage]:
    """Return the available packages that must be published beside other packages.

    The packages themselves, the target, or an extension plug-in that the servers list may
    satisfy a requirement. If they do not, the newest available package in the range is returned.
    Only public packages satisfy the requirements of a public package. A yanked package satisfies
    only the range of exactly its version.

    :param catalog: the releases in the target that the user's project can load.
    :raises PublishError: if nothing satisfies some requirements; the message has all of them.
    """
    offered, present = publication.by_name(available), publication.by_name(packages)
    found: list[LocalPackage] = []
    problems: list[str] = []
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
                problems.append(
                    f"{package.place}: {package} requires {fqn} in the range {spec}, which was "
                    f"not found {_PLACES[visibility]} {target.repository.name} (available: "
                    f"{_listed(versions)}); {_remedy(fqn, versions)}"
                )
        found += waiting
    if problems:
        raise publication.PublishError(_with_one_remedy(problems))
    return found


def satisfies(stored: StoredPackage, spec: VersionSpec, visibility: Visibility) -> bool:
    """Return whether an active package satisfies a requirement.

    Only public packages satisfy the requirements of a public package. A yanked package
    satisfies only the range of exactly its version.

    :param visibility: the visibility of the requiring package.
    """
    if _is_hidden(stored, visibility):
        return False
    return spec.is_exactly(stored.version) if stored.yanked else spec.match(stored.version)


def is_external(catalog: Catalog, fqn: str, spec: VersionSpec) -> bool:
    """Return whether the servers list an extension plug-in that satisfies a requirement.

    :raises CatalogError: if the service does not answer.
    """
    return bool(resolution.resolve([catalog], Query(((fqn, spec),))).external)


def _is_hidden(stored: StoredPackage, visibility: Visibility) -> bool:
    """Return whether a package is private, but is required by a public package."""
    return visibility == "public" and stored.visibility != "public"


def _marked(stored: Iterable[StoredPackage], visibility: Visibility) -> dict[Version, str]:
    """Return version -> a note for messages, such as `` (yanked)``; may be empty."""
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


def _remedy(fqn: str, versions: Collection[Version]) -> str:
    return _CORE_LIBRARY_REMEDY if fqn == CORE_LIBRARY and not versions else "publish it as well"


def _with_one_remedy(problems: Sequence[str]) -> list[str]:
    """Remove the long remedy for the core library from all problems but the last that has it."""
    ending = f"; {_CORE_LIBRARY_REMEDY}"
    last = next((problem for problem in reversed(problems) if problem.endswith(ending)), None)
    return [each if each is last else each.removesuffix(ending) for each in problems]
