# SPDX-License-Identifier: Apache-2.0

"""Define protocols for Glare's objects, which have no type annotations of their own."""

from collections.abc import Collection, Mapping
from typing import Any, Protocol


class RequestContext(Protocol):
    """The user who sends a request; see ``glare.api.middleware.context.RequestContext``."""

    project_id: str | None
    is_admin: bool


class Artifact(Protocol):
    """An artifact of the type ``murano``; see ``artifact.MuranoPackageArtifact``."""

    id: str
    name: str
    version: str
    owner: str
    status: str
    visibility: str
    class_definitions: Collection[str]
    inherits: Mapping[str, str]
    requirements: Mapping[str, str]
    yanked: str
    archive: Mapping[str, Any] | None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as a JSON object."""

    def obj_clone(self) -> "Artifact":
        """Return a copy."""


class Readable(Protocol):
    """A file that Glare reads from its beginning to its end."""

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, or no bytes at the end."""
