# SPDX-License-Identifier: Apache-2.0

"""The parts of Glare's objects that this project uses, as protocols.

Glare has no type annotations, so that its own classes check nothing.
"""

from collections.abc import Mapping
from typing import Any, Protocol


class RequestContext(Protocol):
    """The caller of a request; glare.api.middleware.context.RequestContext."""

    project_id: str | None
    is_admin: bool


class Artifact(Protocol):
    """An artifact of the type ``murano``; see ``artifact``."""

    id: str
    name: str
    version: str
    owner: str
    status: str
    visibility: str
    requirements: Mapping[str, str]
    archive: Mapping[str, Any] | None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, as JSON."""
