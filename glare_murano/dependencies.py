# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What a closure is planned from, asked of Glare's own database.

A level of the graph takes two statements, one for versions and one for
requirements, however many packages and versions there are; the releases that
come out take one more. What the caller could not list is not there.
"""

import collections
import dataclasses
import functools
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import sqlalchemy as sa
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models

from glare_murano import fields
from glare_murano.package import Version
from glare_murano.package import VersionSpec
from glare_murano.package.closure import Release
from glare_murano.package.closure import Requirements
from glare_murano.package.closure import newest_first
from glare_murano.rows import VERSION
from glare_murano.rows import among
from glare_murano.rows import checked
from glare_murano.rows import looked_up
from glare_murano.rows import version_of

_REQUIREMENTS = "requirements"
_CLASSES = "class_definitions"

# Tables, since rows of mapped classes take longer.
_properties = models.ArtifactProperty.__table__.c
_blobs = models.ArtifactBlob.__table__.c

_DEFINING = sa.select(_properties.string_value, _properties.artifact_id).where(
    _properties.name == _CLASSES, among(_properties.string_value)
)

# The rows of requirements and of classes, both read at once.
_PROPERTIES = sa.select(
    _properties.artifact_id, _properties.name, _properties.key_name, _properties.string_value
).where(
    among(_properties.artifact_id),
    checked(_properties.name.in_([_REQUIREMENTS, _CLASSES])),
)

_ARCHIVES = sa.select(_blobs.artifact_id, _blobs.sha256, _blobs.size).where(
    among(_blobs.artifact_id),
    checked(_blobs.name == fields.ARCHIVE),
    checked(_blobs.status == "active"),
)


class _Viewer(NamedTuple):
    """As much of a context as Glare's rule of what a caller can list asks for."""

    is_admin: bool
    project_id: Any


@functools.lru_cache
def _artifacts(column: str, sees_all: bool, has_project: bool) -> Any:
    """The statement that gives artifacts which can be used, and the caller sees.

    It is the same for all callers of a kind, so that it is worked out once.

    :param column: what they are looked up by.
    """
    condition = sa.select(models.Artifact.id).where(
        models.Artifact.type_name == fields.TYPE_NAME,
        sa.or_(
            models.Artifact.status == "active",
            sa.and_(
                models.Artifact.id == sa.bindparam("given"), models.Artifact.status != "deleted"
            ),
        ),
    )
    viewer = _Viewer(sees_all, sa.bindparam("project") if has_project else None)
    # Glare's own rule of what a caller can list.
    condition = database._apply_query_base_filters(condition, viewer)
    return sa.select(
        models.Artifact.id,
        models.Artifact.name,
        *VERSION,
        models.Artifact.owner,
        models.Artifact.visibility,
    ).where(among(getattr(models.Artifact, column)), checked(condition.whereclause))


@dataclasses.dataclass(frozen=True)
class Found:
    """An artifact that the caller can use."""

    id: str
    release: Release
    owner: str
    visibility: str


@dataclasses.dataclass(frozen=True)
class Details:
    """What a loader needs to know of an artifact.

    :param digest: the SHA-256 of its archive, in hexadecimal.
    :param size: of its archive, in bytes.
    """

    classes: tuple[str, ...]
    digest: str
    size: int


class GlareSource:
    """Versions and requirements that one caller can see.

    :ivar found: every artifact that was asked for so far.
    """

    def __init__(
        self,
        session: Any,
        context: Any,
        *,
        see_all: bool,
        project_id: str | None,
        prereleases: bool,
        given: str | None = None,
    ) -> None:
        """Make a source; nothing is asked yet.

        :param session: a session of Glare's database, in a transaction.
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
        self._session = session
        self._given = given
        self._requirements: dict[Release, dict[str, VersionSpec]] = {}
        self._classes: dict[Release, list[str]] = collections.defaultdict(list)
        self.found: dict[Release, Found] = {}

    def versions(self, fqns: Collection[str]) -> Mapping[str, Sequence[Version]]:
        """See the protocol ``Source``."""
        known = self._learn("name", fqns)
        # A database may compare without regard to case.
        return {fqn: newest_first(known[fqn]) for fqn in fqns if fqn in known}

    def given(self) -> Release | None:
        """The release of the artifact given.

        :returns: None if the caller cannot see it, or none is given.
        """
        if self._given is not None:
            self._learn("id", [self._given])
        found = (artifact.release for artifact in self.found.values() if artifact.id == self._given)
        return next(found, None)

    def defining(self, class_names: Collection[str]) -> Mapping[str, Collection[Release]]:
        """The releases that define each of the classes."""
        defined = collections.defaultdict(set)
        for class_name, artifact_id in looked_up(self._session, _DEFINING, class_names):
            defined[artifact_id].add(class_name)
        self._learn("id", defined)
        found: dict[str, set[Release]] = collections.defaultdict(set)
        for artifact in self.found.values():
            for class_name in defined.get(artifact.id, ()):
                found[class_name].add(artifact.release)
        return found

    def requirements(self, releases: Collection[Release]) -> Mapping[Release, Requirements]:
        """See the protocol ``Source``."""
        unknown = [release for release in releases if release not in self._requirements]
        if unknown:
            if {release.fqn for release in unknown} & {known.fqn for known in self._requirements}:
                # A choice has changed, and may again: now all that there are.
                unknown = [release for release in self.found if release not in self._requirements]
            by_id = {self.found[release].id: release for release in unknown}
            self._requirements.update({release: {} for release in unknown})
            for row in looked_up(self._session, _PROPERTIES, by_id):
                release = by_id[row.artifact_id]
                if row.name == _REQUIREMENTS:
                    spec = VersionSpec.of(row.string_value)
                    self._requirements[release][row.key_name] = spec
                else:
                    self._classes[release].append(row.string_value)
        return {release: self._requirements[release] for release in releases}

    def details(self, releases: Collection[Release]) -> Mapping[Release, Details]:
        """What a loader needs to know of each of the releases that has an archive."""
        by_id = {self.found[release].id: release for release in releases}
        blobs = list(looked_up(self._session, _ARCHIVES, by_id))
        # Before its archive is there, a draft may say what it likes.
        self.requirements([by_id[blob.artifact_id] for blob in blobs])
        return {
            by_id[blob.artifact_id]: Details(
                tuple(sorted(self._classes[by_id[blob.artifact_id]])), blob.sha256, blob.size
            )
            for blob in blobs
        }

    def _learn(self, column: str, values: Iterable[str]) -> dict[str, set[Version]]:
        """Find artifacts that can be used, and remember the best of each release."""
        project = self._context.project_id
        sees_all = self._see_all or self._context.is_admin
        statement = _artifacts(column, sees_all, project is not None)
        versions: dict[str, set[Version]] = collections.defaultdict(set)
        for row in looked_up(self._session, statement, values, given=self._given, project=project):
            release = Release(row.name, version_of(row))
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
