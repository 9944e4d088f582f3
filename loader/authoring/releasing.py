# SPDX-License-Identifier: Apache-2.0

"""Make a release from the directory ``dev`` of a package.

The specification "Murano versioning", "Developer impact", defines the layout. The *tree* of a
package is a directory: it has a directory for each released version, and the directory ``dev``, in
which the package has no version. The trees of other packages are beside it, and each tree is named
after its package. Nothing is published here.
"""

import contextlib
import dataclasses
import os
import pathlib
import shlex
from collections.abc import Mapping

from glare_murano.package import (
    Archive,
    InvalidPackage,
    InvalidVersion,
    Manifest,
    Problem,
    Version,
    VersionSpec,
    parse_version,
    read_contents,
)
from glare_murano.package.archive import Source
from glare_murano.package.manifest import MANIFEST_FILE, with_ranges, with_version
from glare_murano.package.safe_yaml import MAX_SIZE
from glare_murano.package.type_process import describe_for_author
from glare_murano.package.ui_form import FormCheck
from loader import errors
from loader.authoring import local_packages
from loader.catalogs.directory import DEV
from loader.compatibility import UNVERSIONED, Comparison, Requirements, Verdict, compare

_FIRST = Version("0.1.0")
# In the manifest of dev, these ranges mean "no range yet", since packages in dev have no version.
_UNVERSIONED_RANGES = frozenset(map(VersionSpec.of, (None, "0.0", "0.0.0", "*")))


class ReleaseError(errors.LoaderError, ValueError):
    """A release cannot be made."""


@dataclasses.dataclass(frozen=True)
class Release:
    """A release that is ready to be written.

    :param fqn: the name of the package.
    :param version: the version of the release.
    :param directory: the directory for the release, which does not exist yet.
    :param comparison: the comparison with the newest older release; None for the first release.
    :param ranges: a mapping of required packages to ranges: the requirements that have no range in
        ``dev``, and the ranges that they get in the release.
    :param archive: a ZIP file with the files of the release.
    :param warnings: mistakes in the directory ``dev`` that are not refused, such as unknown keys.
    """

    fqn: str
    version: Version
    directory: pathlib.Path
    comparison: Comparison | None
    ranges: Mapping[str, str]
    archive: pathlib.Path
    warnings: tuple[Problem, ...]

    @property
    def verdict(self) -> Verdict | None:
        """Whether the version is enough for the changes; None for the first release."""
        if self.comparison is None:
            return None
        return dataclasses.replace(self.comparison.verdict, declared=self.version)


def prepare(
    tree: pathlib.Path,
    folder: pathlib.Path,
    version: Version | None = None,
    requirements: Requirements | None = None,
) -> Release:
    """Prepare a release; the tree is not changed.

    By default, the version is the smallest one that is enough for the changes since the newest
    release. If the manifest in ``dev`` has a greater version, the release gets this greater
    version. The first release gets the version in ``dev``, or 0.1.0 if ``dev`` has no version.

    :param tree: the directory with ``dev`` and the released versions.
    :param folder: an empty directory for temporary files.
    :param version: the version of the release, instead of the default.
    :param requirements: a function that takes an FQN and a range, and returns the required package.
        It is called if the tree of the required package has no release in the range.
    :raises ReleaseError: if there is nothing to release, if the version was released already, or if
        a required package has no release.
    :raises InvalidPackages: if ``dev`` breaks rules.
    :raises InvalidPackage: if the previous release breaks rules.
    :raises OSError: if a file cannot be read.
    """
    if not (tree / DEV / MANIFEST_FILE).is_file():
        raise ReleaseError(
            f"{tree / DEV} has no {MANIFEST_FILE}; name the tree of a package: it has the package "
            f"in the directory {DEV}, and a directory for each released version"
        )
    # The tree may be "." or "..", so its absolute path is needed for its parent.
    parent = pathlib.Path(os.path.abspath(tree)).parent  # noqa: PTH100
    with Archive.open(tree / DEV) as archive:
        with local_packages.named(tree / DEV):
            contents = read_contents(archive, describe_for_author, FormCheck.ENFORCE)
        manifest = contents.manifest
        ranges = _ranges(parent, manifest)
        data = with_ranges(archive.read(MANIFEST_FILE, MAX_SIZE), ranges)
        released = _released(tree)
        if version in released:
            raise ReleaseError(
                f"{released[version]} is there already, and a released version never changes; "
                f"choose another version"
            )
        before = max((each for each in released if version is None or each < version), default=None)
        comparison = None
        if before is not None:
            unversioned = folder / "unversioned.zip"
            local_packages.pack(archive, unversioned, with_version(data, before))
            _check_changed(tree / DEV, released[before], unversioned)
            comparison = compare(released[before], unversioned, _finder(parent, requirements))
        version = version or _proposed(manifest, comparison)
        data = with_version(data, version)
        _check_edited(data, version, ranges, tree / DEV)
        packed = folder / "release.zip"
        local_packages.pack(archive, packed, data)
    directory = tree / str(version)
    return Release(manifest.fqn, version, directory, comparison, ranges, packed, contents.warnings)


def check_version(release: Release) -> None:
    """Check that the version of a release is enough for its changes.

    :raises ReleaseError: if the version is too small.
    """
    verdict = release.verdict
    if verdict is not None and not verdict.is_enough:
        raise ReleaseError(f"{verdict}, or --force")


def write(release: Release) -> None:
    """Write the directory of a release; a failed attempt leaves no new directory.

    :raises OSError: if the directory exists already, or cannot be written.
    """
    with Archive.open(release.archive) as archive:
        archive.unpack(release.directory)


def _released(tree: pathlib.Path) -> dict[Version, pathlib.Path]:
    """Return a mapping of the released versions in a tree to their directories.

    The mapping is empty if the tree is missing.
    """
    found = {}
    for path in tree.iterdir() if tree.is_dir() else ():
        with contextlib.suppress(InvalidVersion):
            if (path / MANIFEST_FILE).is_file():
                found[parse_version(path.name)] = path
    return found


def _ranges(parent: pathlib.Path, manifest: Manifest) -> dict[str, str]:
    """Choose ranges for the requirements of a manifest that have no range.

    Each range is compatible with the newest release in the tree of the required package.

    :param parent: the directory with the trees of all packages.
    :returns: a mapping of FQNs to ranges, without the packages that have no tree.
    :raises ReleaseError: if the tree of a required package has no release.
    """
    found = {}
    for fqn in manifest.document.get("Require") or ():
        is_open = manifest.requirements[fqn] in _UNVERSIONED_RANGES
        if fqn == manifest.fqn or not is_open:
            continue
        versions = _released(parent / fqn)
        if versions:
            found[fqn] = _compatible_range(max(versions))
        elif (parent / fqn / DEV / MANIFEST_FILE).is_file():
            raise ReleaseError(
                f"{manifest.fqn} requires {fqn}, which has no release in {parent / fqn}; "
                f"release it first, or write its range into {MANIFEST_FILE}"
            )
    return found


def _compatible_range(version: Version) -> str:
    """Return the range that is compatible with a version, such as ``>=1.4,<2`` for 1.4.2."""
    start = f"{version.major}.{version.minor}"
    if version.prerelease:
        start = str(version)
    end = str(version.major + 1) if version.major else f"0.{version.minor + 1}"
    return f">={start},<{end}"


def _finder(parent: pathlib.Path, requirements: Requirements | None) -> Requirements:
    """Return a function that finds a required package.

    This function first searches the trees of all packages. If no release there is in the range, it
    calls ``requirements``.

    :param parent: the directory with the trees.
    :param requirements: a function that finds packages elsewhere; None to search nowhere else.
    """

    def find(fqn: str, spec: VersionSpec) -> Source | None:
        versions = _released(parent / fqn)
        newest = spec.select(versions)
        if newest is not None:
            return versions[newest]
        return requirements(fqn, spec) if requirements is not None else None

    return find


def _proposed(manifest: Manifest, comparison: Comparison | None) -> Version:
    declared = manifest.version
    if comparison is None:
        return _FIRST if declared == UNVERSIONED else declared
    return max(declared, comparison.required_version(comparison.old_version))


def _check_changed(dev: pathlib.Path, before: pathlib.Path, packed: pathlib.Path) -> None:
    if local_packages.repacked_digest(before) == local_packages.repacked_digest(packed):
        command = f"openstack murano package publish {shlex.quote(str(dev.parent))}"
        raise ReleaseError(
            f"there is nothing to release: {dev} has the files of {before}; to publish the "
            f'versions of the tree, run "{command}"'
        )


def _check_edited(
    data: bytes, version: Version, ranges: Mapping[str, str], dev: pathlib.Path
) -> None:
    """Check that an edit of a manifest has set the version and the ranges.

    YAML anchors in a manifest can prevent this.

    :param data: the content of the edited manifest.
    :param ranges: a mapping of FQNs to the ranges that were set.
    :param dev: the directory of the manifest before the edit, for the message.
    :raises ReleaseError: if the edited manifest has other values, or is not valid.
    """
    with contextlib.suppress(InvalidPackage):
        edited = Manifest.parse(data)
        written = {fqn: VersionSpec.of(text) for fqn, text in ranges.items()}
        if edited.version == version and edited.requirements.items() >= written.items():
            return
    raise ReleaseError(
        f"Version and Require cannot be set in {dev / MANIFEST_FILE}; write them as plain strings, "
        f"without anchors"
    )
