# SPDX-License-Identifier: Apache-2.0

"""Find the smallest version that is enough for changes, and judge a declared version.

The rules are those of the specification "Murano versioning", "Murano packages versioning", and
of SemVer 2:

* The greatest part of all changes is raised: 1.2.3 becomes 2.0.0, 1.3.0 or 1.2.4.
* Below 1.0.0, nothing is stable yet (SemVer, item 4). The minor part takes the place of the
  major part, as in Cargo: a change that breaks users raises 0.2.3 to 0.3.0, and any other change
  raises it to 0.2.4. Likewise, 0.0.3 becomes 0.1.0 or 0.0.4, since the range ``0.0`` of the
  specification contains all of 0.0.x.
* 0.0.0 turns versioning off ("Developer impact"): after it, every version is enough.
* A pre-release promises nothing yet (SemVer, item 9): after 2.0.0-rc.1, 2.0.0 is enough for every
  change, and so is a later pre-release of 2.0.0. A pre-release is enough if the version without
  its suffix is enough: 2.0.0-rc.1 is enough where 2.0.0 is required. In all other cases, suffixes
  have no meaning for Murano.
* Build metadata does not count, since the range ``==2.0.0`` contains every build of 2.0.0. The
  range ``==2.0.0+b`` contains only the build ``b``.
"""

import dataclasses

from glare_murano.package import Version
from loader.compatibility.changes import Part

# This version turns versioning off: any change is allowed after it.
UNVERSIONED = Version("0.0.0")


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The judgement on whether the version of a release is enough for its changes.

    :param part: the part of the version that the changes require to be raised.
    :param old: the version before the changes.
    :param declared: the version of the release.
    :param smallest: the smallest version that is enough.
    """

    part: Part
    old: Version
    declared: Version
    smallest: Version

    @property
    def is_enough(self) -> bool:
        """Whether the declared version is enough for the changes."""
        if _plain(self.old) == UNVERSIONED:
            return True
        # The suffix is ignored below, so a pre-release must also be newer than the old version.
        is_newer: bool = self.declared > self.old
        return is_newer and bool(_plain(self.declared) >= self.smallest)

    @property
    def is_unversioned(self) -> bool:
        """Whether the release has no version yet, as in a directory ``dev``."""
        is_unversioned: bool = self.declared == UNVERSIONED
        return is_unversioned

    def __str__(self) -> str:
        raised = raised_part(self.old, self.part)
        reason = f"after {self.old}, the changes need a new {raised} version"
        if raised is not self.part:
            reason += f" (below 1.0.0, the {raised} number stands for the {self.part} one)"
        if self.is_enough:
            text = f"version {self.declared} is enough: {reason}, at least {self.smallest}"
        elif self.is_unversioned:
            text = f"the release of these changes needs {self.smallest} or newer: {reason}"
        else:
            text = f"version {self.declared} is not enough: {reason}; use {self.smallest} or newer"
        return f"{text}{self._note_on_builds}"

    @property
    def _note_on_builds(self) -> str:
        """A note on ranges and build metadata; empty if no version has build metadata."""
        found = next((each for each in (self.declared, self.old) if each.build), None)
        if found is None:
            return ""
        without = found.truncate("prerelease")
        return f"; the range =={without} contains every build of {without}, =={found} only this one"


def raised_part(old: Version, part: Part) -> Part:
    """Return the part of a version number that has to be raised.

    :param old: the version before the changes.
    :param part: the part that the changes require. Below 1.0.0, the next smaller part is raised
        instead of a major or minor part.
    """
    if old.major or part is Part.PATCH:
        return part
    return Part.MINOR if part is Part.MAJOR else Part.PATCH


def smallest_version(old: Version, part: Part) -> Version:
    """Return the smallest version that is enough for changes.

    :param old: the version before the changes.
    :param part: the part that the changes require.
    """
    major, minor, patch = old.major, old.minor, old.patch
    if old.prerelease or _plain(old) == UNVERSIONED:
        return _plain(old)
    raised = raised_part(old, part)
    if raised is Part.MAJOR:
        return Version(f"{major + 1}.0.0")
    if raised is Part.MINOR:
        return Version(f"{major}.{minor + 1}.0")
    return Version(f"{major}.{minor}.{patch + 1}")


def _plain(version: Version) -> Version:
    return Version(f"{version.major}.{version.minor}.{version.patch}")
