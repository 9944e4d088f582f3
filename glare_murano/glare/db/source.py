# SPDX-License-Identifier: Apache-2.0

"""What a closure is planned from, asked of Glare's own database.

A level of the graph takes two statements at most, one for versions and one for
requirements that the process has not read before, however many packages and
versions there are. What the caller could not list is not there.
"""

import collections
import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from glare.db.sqlalchemy import models

from glare_murano.glare.db import metadata
from glare_murano.glare.db.metadata import Details
from glare_murano.glare.db.queries import among, looked_up, usable, version_of
from glare_murano.package import Version, VersionSpec
from glare_murano.resolver import PackageVersion, Requirements, newest_first
from glare_murano.wire import Release

# The table, since rows of mapped classes take longer.
_properties = models.ArtifactProperty.__table__.c

_DEFINING = sa.select(_properties.string_value, _properties.artifact_id).where(
    _properties.name == "class_definitions", among(_properties.string_value)
)


@dataclasses.dataclass(frozen=True)
class Found:
    """An artifact that the caller can use."""

    id: str
    release: PackageVersion
    owner: str
    visibility: str


class GlareSource:
    """Versions and requirements that one caller can see.

    :ivar found: every artifact that was asked for so far.
    """

    def __init__(
        self,
        connection: Any,
        context: Any,
        *,
        see_all: bool,
        project_id: str | None,
        prereleases: bool,
        given: str | None = None,
    ) -> None:
        """Make a source; nothing is asked yet.

        :param connection: one to Glare's database, in a transaction.
        :param see_all: whether a list call of the caller would show the
            artifacts of all projects.
        :param project_id: whose private packages may be used, if not all
            that the caller sees.
        :param prereleases: whether pre-releases count.
        :param given: the id of an artifact that is there, be it a draft.
        """
        self._context = context
        self._see_all = see_all
        self._project_id = project_id
        self._prereleases = prereleases
        self._connection = connection
        self._given = given
        # By the ids of artifacts.
        self._details: dict[str, Details] = {}
        # The names of packages of which something was read.
        self._read_before: set[str] = set()
        self.found: dict[PackageVersion, Found] = {}

    def versions(self, fqns: Collection[str]) -> Mapping[str, Sequence[Version]]:
        """See the protocol ``Source``."""
        known = self._learn("name", fqns)
        # A database may compare without regard to case.
        return {fqn: newest_first(known[fqn]) for fqn in fqns if fqn in known}

    def given(self) -> PackageVersion | None:
        """The release of the artifact given.

        :returns: None if the caller cannot see it, or none is given.
        """
        if self._given is not None:
            self._learn("id", [self._given])
        found = (artifact.release for artifact in self.found.values() if artifact.id == self._given)
        return next(found, None)

    def defining(self, class_names: Collection[str]) -> Mapping[str, Collection[PackageVersion]]:
        """The releases that define each of the classes."""
        defined = collections.defaultdict(set)
        for class_name, artifact_id in looked_up(self._connection, _DEFINING, class_names):
            defined[artifact_id].add(class_name)
        self._learn("id", defined)
        found: dict[str, set[PackageVersion]] = collections.defaultdict(set)
        for artifact in self.found.values():
            for class_name in defined.get(artifact.id, ()):
                found[class_name].add(artifact.release)
        return found

    def requirements(
        self, releases: Collection[PackageVersion]
    ) -> Mapping[PackageVersion, Requirements]:
        """See the protocol ``Source``."""
        return {
            release: {fqn: VersionSpec.of(text) for fqn, text in said.requirements.items()}
            for release, said in self.details(releases).items()
        }

    def details(self, releases: Collection[PackageVersion]) -> Mapping[PackageVersion, Details]:
        """What a loader needs to know of each of the releases that has an archive."""
        unknown = [release for release in releases if self.found[release].id not in self._details]
        if unknown:
            fqns = {release.fqn for release in unknown}
            if fqns & self._read_before:
                # A choice has changed, and may again: now all that there are.
                unknown = list(self.found)
            self._read_before |= fqns
            self._read({self.found[release].id for release in unknown} - self._details.keys())
        # By its id: of one release, a better artifact may be found later.
        ids = {release: self.found[release].id for release in releases}
        return {release: self._details[id_] for release, id_ in ids.items() if id_ in self._details}

    def releases(self, versions: Collection[PackageVersion]) -> Iterator[Release]:
        """Yield each version that has an archive, with all that a loader needs to know."""
        for version, details in self.details(versions).items():
            found = self.found[version]
            yield Release(
                version.fqn,
                version.version,
                {fqn: VersionSpec.of(text) for fqn, text in details.requirements.items()},
                frozenset(details.classes),
                id=found.id,
                digest=details.digest,
                size=details.size,
                owner=found.owner,
                visibility=found.visibility,
            )

    def _read(self, ids: Collection[str]) -> None:
        self._details.update(metadata.of_active(self._connection, set(ids) - {self._given}))
        if self._given is not None and self._given in ids:
            # It may be a draft, which can change.
            self._details.update(metadata.read(self._connection, [self._given]))

    def _learn(self, column: str, values: Iterable[str]) -> dict[str, set[Version]]:
        """Find artifacts that can be used, and remember the best of each release."""
        versions: dict[str, set[Version]] = collections.defaultdict(set)
        for row in usable(
            self._connection, self._context, self._see_all, column, values, self._given
        ):
            release = PackageVersion(row.name, version_of(row))
            artifact = Found(row.id, release, row.owner, row.visibility)
            if self._is_usable(artifact):
                versions[row.name].add(release.version)
                best = self.found.get(release)
                if best is None or self._preference(artifact) > self._preference(best):
                    self.found[release] = artifact
        return versions

    def _is_usable(self, artifact: Found) -> bool:
        if artifact.id == self._given:
            return True
        if artifact.release.version.prerelease and not self._prereleases:
            return False
        return self._project_id is None or (
            artifact.visibility == "public" or artifact.owner == self._project_id
        )

    def _preference(self, artifact: Found) -> tuple[bool, bool, bool, str]:
        """The one given, then the project's own, a public one, and another's."""
        project = self._project_id or self._context.project_id
        return (
            artifact.id == self._given,
            artifact.owner == project,
            artifact.visibility == "public",
            artifact.id,
        )
