# SPDX-License-Identifier: Apache-2.0

"""Explain whether a loader would choose a package in a repository."""

from glare_murano.package import VersionSpec
from glare_murano.wire import Query
from loader import resolution
from loader.catalogs.base import Catalog
from loader.repository.stored_package import StoredPackage
from loader.resolution import Choice, Resolution


def explain(package: StoredPackage, spec: VersionSpec, catalog: Catalog) -> str:
    """Return ``yes`` if a package is chosen for a range, else ``no`` with the reason.

    The service is queried, since it knows the operator's reserved names.

    :param catalog: the releases of the service, for the user's project.
    :raises CatalogError: if the service does not answer.
    """
    if package.status != "active":
        return f"no, it is {package.status}"
    query = Query(((package.fqn, spec),), why=True)
    resolved = resolution.resolve([catalog], query)
    choice = resolved.assigned(package.fqn, spec, None)
    if choice is not None and choice.release.id == package.id:
        return "yes"
    return f"no, {_reason(package, spec, resolved, choice)}"


def _reason(
    package: StoredPackage, spec: VersionSpec, resolved: Resolution, choice: Choice | None
) -> str:
    for excluded in resolved.excluded:
        if excluded.id == package.id:
            return excluded.reason
    if not spec.match(package.version):
        return f"it is not in the range {spec}"
    if package.yanked and not spec.is_exactly(package.version):
        return f"it was yanked: {package.yanked}"
    if choice is None:
        return "the user's project cannot use it"
    return f"{choice.release} of project {choice.release.owner} is chosen"


def range_of(package: StoredPackage, spec: VersionSpec) -> VersionSpec:
    """Return the given range; for any version, return the range of the package's major version."""
    if spec.text != "*":
        return spec
    version = package.version
    # A pre-release is not in the range of its major version.
    return (
        VersionSpec.exactly(version) if version.prerelease else VersionSpec.of(str(version.major))
    )
